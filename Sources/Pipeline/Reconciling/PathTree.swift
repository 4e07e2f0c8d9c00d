import System

/// Absolute paths, each with a value, as a tree of names.
///
/// A path takes one record and the bytes of its last name, and the paths below a directory are found without visiting
/// others. The number of a path is reused once the path is removed.
final class PathTree {
    typealias Number = NumberTable.Number

    /// A name in a directory: a stored path, or a directory on the way to one.
    private struct Node {
        var parent: Number
        var firstChild: Number = -1
        /// The next name in the directory; for an unused record, the next unused one.
        var next: Number = -1
        var previous: Number = -1
        var nameStart: UInt32
        var value: UInt32 = none
        var nameLength: UInt16
    }

    private static let none = UInt32.max
    private static let root: Number = 0
    /// The number of records that are kept when no path is stored.
    private static let spare = 1_024

    private var nodes: [Node] = []
    private var firstFree: Number = -1
    private var names: [UInt8] = []
    private var forgottenNames = 0
    /// The records by directory and name.
    private var index = NumberTable()
    /// The number of stored paths.
    private(set) var count = 0

    /// The directory of the last path, which stays in the tree: most consecutive paths are in the same directory.
    private var lastDirectory: [UInt8] = []
    private var lastNumber: Number = -1

    init() { removeAll() }

    private func removeAll() {
        nodes = [Node(parent: -1, nameStart: 0, nameLength: 0)]
        (firstFree, names, forgottenNames, count, lastNumber) = (-1, [], 0, 0, -1)
        index = NumberTable()
    }

    // MARK: Values

    /// The value of a path; nil if it is not stored.
    subscript(path: PathBytes) -> UInt32? { number(of: path).map { nodes[Int($0)].value } }

    /// The value of a stored path.
    subscript(number: Number) -> UInt32 {
        get { nodes[Int(number)].value }
        set { nodes[Int(number)].value = newValue }
    }

    /// Whether the number is that of a stored path.
    func contains(_ number: Number) -> Bool { number < nodes.count && nodes[Int(number)].value != Self.none }

    /// Returns the number of a stored path.
    func number(of path: PathBytes) -> Number? {
        guard count > 0, let number = node(path.bytes), nodes[Int(number)].value != Self.none else { return nil }
        return number
    }

    /// Stores a path and returns its number; the value is at most `UInt32.max - 1`.
    func insert(_ path: PathBytes, _ value: UInt32) -> Number {
        let number = node(path.bytes, makingIt: true) ?? Self.root
        if nodes[Int(number)].value == Self.none { count += 1 }
        nodes[Int(number)].value = value
        return number
    }

    /// Removes a stored path.
    func remove(_ number: Number) {
        count -= 1
        guard count > 0 || nodes.count <= Self.spare else { return removeAll() }
        nodes[Int(number)].value = Self.none
        prune(number)
        if forgottenNames > 4096, forgottenNames > names.count / 2 { packNames() }
    }

    /// Removes a name, and the directories on the way to it, as far as nothing is stored there.
    private func prune(_ number: Number) {
        var number = number
        while number > Self.root, number != lastNumber, nodes[Int(number)].value == Self.none,
            nodes[Int(number)].firstChild < 0
        {
            let parent = nodes[Int(number)].parent
            forget(number)
            number = parent
        }
    }

    func path(of number: Number) -> PathBytes {
        var length = 0
        var index = number
        while index != Self.root {
            length += Int(nodes[Int(index)].nameLength) + 1
            index = nodes[Int(index)].parent
        }
        guard length > 0 else { return "/" }
        return PathBytes(
            [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
                filled = length
                names.withUnsafeBufferPointer { names in
                    var end = length
                    var index = number
                    while index != Self.root {
                        let node = nodes[Int(index)]
                        let (start, count) = (Int(node.nameStart), Int(node.nameLength))
                        end -= count
                        for offset in 0..<count { buffer[end + offset] = names[start + offset] }
                        end -= 1
                        buffer[end] = .slash
                        index = node.parent
                    }
                }
            })
    }

    /// The stored paths in no particular order, by their numbers.
    var numbers: [Number] { numbers(inside: "/") }

    /// Returns the stored paths that are a directory or are below it, in no particular order.
    func numbers(inside directory: PathBytes) -> [Number] {
        guard count > 0, let top = node(directory.bytes) else { return [] }
        var (found, open) = ([Number](), [top])
        while let number = open.popLast() {
            if nodes[Int(number)].value != Self.none { found.append(number) }
            var child = nodes[Int(number)].firstChild
            while child >= 0 {
                open.append(child)
                child = nodes[Int(child)].next
            }
        }
        return found
    }

    // MARK: Nodes

    private func node(_ path: [UInt8], makingIt: Bool = false) -> Number? {
        path.withUnsafeBytes { path in
            guard let slash = path.lastIndex(of: .slash) else { return child(of: Self.root, path, makingIt) }
            let directory = UnsafeRawBufferPointer(rebasing: path[..<slash])
            var number = lastNumber
            if number < 0 || !lastDirectory.withUnsafeBytes({ $0.compare(directory) == 0 }) {
                number = Self.root
                for name in directory.split(separator: .slash) {
                    guard let next = child(of: number, UnsafeRawBufferPointer(rebasing: name), makingIt) else {
                        return nil
                    }
                    number = next
                }
                lastDirectory.removeAll(keepingCapacity: true)
                lastDirectory.append(contentsOf: directory)
                let former = lastNumber
                lastNumber = number
                prune(former)
            }
            let name = UnsafeRawBufferPointer(rebasing: path[(slash + 1)...])
            return name.isEmpty ? number : child(of: number, name, makingIt)
        }
    }

    private func child(of parent: Number, _ name: UnsafeRawBufferPointer, _ makingIt: Bool) -> Number? {
        let hash = hash(parent, name)
        if let known = index.first(hash, where: { isChild($0, of: parent, named: name) }) { return known }
        guard makingIt else { return nil }
        let first = nodes[Int(parent)].firstChild
        var node = Node(parent: parent, nameStart: UInt32(names.count), nameLength: UInt16(name.count))
        node.next = first
        names.append(contentsOf: name)
        let number: Number
        if firstFree >= 0 {
            number = firstFree
            firstFree = nodes[Int(number)].next
            nodes[Int(number)] = node
        } else {
            number = Number(nodes.count)
            nodes.append(node)
        }
        if first >= 0 { nodes[Int(first)].previous = number }
        nodes[Int(parent)].firstChild = number
        index.insert(number, hash, hashOf: self.hash)
        return number
    }

    /// Removes a name without entries, and its record.
    private func forget(_ number: Number) {
        index.remove(number, hash(number), hashOf: hash)
        let node = nodes[Int(number)]
        if node.previous >= 0 {
            nodes[Int(node.previous)].next = node.next
        } else {
            nodes[Int(node.parent)].firstChild = node.next
        }
        if node.next >= 0 { nodes[Int(node.next)].previous = node.previous }
        forgottenNames += Int(node.nameLength)
        nodes[Int(number)].nameLength = 0
        nodes[Int(number)].next = firstFree
        firstFree = number
    }

    private func packNames() {
        var packed: [UInt8] = []
        packed.reserveCapacity(names.count - forgottenNames)
        for index in nodes.indices where nodes[index].nameLength > 0 {
            let start = Int(nodes[index].nameStart)
            nodes[index].nameStart = UInt32(packed.count)
            packed.append(contentsOf: names[start..<(start + Int(nodes[index].nameLength))])
        }
        names = packed
        forgottenNames = 0
    }

    // MARK: Keys

    private func hash(_ parent: Number, _ name: UnsafeRawBufferPointer) -> Int {
        // Seeded, so that colliding names can't be chosen deliberately.
        var hasher = Hasher()
        hasher.combine(parent)
        hasher.combine(bytes: name)
        return hasher.finalize()
    }

    private func hash(_ number: Number) -> Int { withName(of: number) { hash(nodes[Int(number)].parent, $0) } }

    private func withName<Result>(of number: Number, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let start = Int(nodes[Int(number)].nameStart)
        return names.withUnsafeBytes {
            body(UnsafeRawBufferPointer(rebasing: $0[start..<(start + Int(nodes[Int(number)].nameLength))]))
        }
    }

    private func isChild(_ number: Number, of parent: Number, named name: UnsafeRawBufferPointer) -> Bool {
        let node = nodes[Int(number)]
        return node.parent == parent && Int(node.nameLength) == name.count
            && withName(of: number) { $0.compare(name) == 0 }
    }
}
