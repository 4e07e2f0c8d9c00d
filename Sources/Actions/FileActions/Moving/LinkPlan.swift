import FileEvents
import System

/// The symbolic links of an archive, which are made when all else is there.
///
/// So nothing is ever written through one of them.
struct LinkPlan {
    /// By their paths below the folder, as the archive writes them.
    private(set) var targets: [PathBytes: PathBytes] = [:]

    /// More in a row are a loop, as for the kernel.
    private static let mostSteps = 40

    subscript(path: PathBytes) -> PathBytes? {
        get { targets[path] }
        set { targets[path] = newValue }
    }

    /// The first link, by name, that leads out of the folder, or may do so once something is made where it leads.
    var leadingOut: PathBytes? { targets.keys.sorted().first { !staysInside($0) } }

    private func staysInside(_ link: PathBytes) -> Bool {
        guard let target = targets[link], target.bytes.first != .slash, !target.bytes.isEmpty else { return false }
        var place = Array(link.bytes.split(separator: .slash).dropLast())
        var rest = Array(target.bytes.split(separator: .slash).reversed())
        var steps = 0
        while let part = rest.popLast() {
            if part.elementsEqual([.dot]) { continue }
            if part.elementsEqual([.dot, .dot]) {
                guard place.popLast() != nil else { return false }
                continue
            }
            place.append(part)
            guard let next = targets[PathBytes(place.joined(separator: [.slash]))] else { continue }
            steps += 1
            guard steps <= Self.mostSteps, next.bytes.first != .slash else { return false }
            place.removeLast()
            rest += next.bytes.split(separator: .slash).reversed()
        }
        return true
    }
}
