import System

/// The symbolic links of an archive, which are created after all other entries.
///
/// Therefore nothing is ever written through one of them.
struct LinkPlan {
    /// The targets as specified in the archive, by the path of the link below the directory.
    private(set) var targets: [PathBytes: PathBytes] = [:]

    /// The number of steps after which links count as a loop, as in the kernel.
    private static let mostSteps = 40

    subscript(path: PathBytes) -> PathBytes? {
        get { targets[path] }
        set { targets[path] = newValue }
    }

    /// The first link, by name, that leads out of the directory, or may do so once its target is created.
    var leadingOut: PathBytes? { targets.keys.sorted().first { !staysInside($0) } }

    private func staysInside(_ link: PathBytes) -> Bool {
        guard let target = targets[link], target.bytes.first != .slash, !target.bytes.isEmpty else { return false }
        var location = Array(link.bytes.split(separator: .slash).dropLast())
        var rest = Array(target.bytes.split(separator: .slash).reversed())
        var steps = 0
        while let part = rest.popLast() {
            if part.elementsEqual([.dot]) { continue }
            if part.elementsEqual([.dot, .dot]) {
                guard location.popLast() != nil else { return false }
                continue
            }
            location.append(part)
            guard let next = targets[PathBytes(location.joined(separator: [.slash]))] else { continue }
            steps += 1
            guard steps <= Self.mostSteps, next.bytes.first != .slash else { return false }
            location.removeLast()
            rest += next.bytes.split(separator: .slash).reversed()
        }
        return true
    }
}
