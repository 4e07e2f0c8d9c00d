import System

/// The directories that a simulated watcher knows, each with an index that is never reused.
struct WatchedTree {
    struct Directory {
        let parent: Int?
        let name: PathBytes
        let root: Int
        var children: [PathBytes: Int] = [:]
        var watch: Int32?
        var volume = -1
        var isPolled = false
        var isListed = false
        var isFailed = false
        var isSeen = false
        var memory: [PathBytes: Snapshot]?
    }

    private(set) var directories: [Int: Directory] = [:]
    private var last = 0

    subscript(_ directory: Int) -> Directory? {
        get { directories[directory] }
        _modify { yield &directories[directory] }
    }

    func path(of directory: Int) -> PathBytes {
        guard let known = directories[directory] else { return "" }
        return known.parent.map { path(of: $0).appending(known.name.bytes) } ?? known.name
    }

    func children(of directory: Int) -> [Int] { directories[directory]?.children.values.sorted() ?? [] }

    mutating func add(_ directory: Directory) -> Int {
        last += 1
        directories[last] = directory
        return last
    }

    /// Marks a directory in another one as seen, and adds it if it is new.
    mutating func enter(_ directory: Int, _ name: PathBytes) -> Int {
        if let child = directories[directory]?.children[name] {
            directories[child]?.isSeen = true
            return child
        }
        let parent = directories[directory]
        let child = add(
            Directory(
                parent: directory, name: name, root: parent?.root ?? 0, isPolled: parent?.isPolled ?? false,
                isSeen: true))
        directories[directory]?.children[name] = child
        return child
    }

    mutating func markUnseen(in directory: Int) {
        for child in children(of: directory) { directories[child]?.isSeen = false }
    }

    /// Returns the directories that can't be read, from the given one downward.
    func failed(in directory: Int) -> [Int] {
        guard let known = directories[directory] else { return [] }
        return (known.isFailed ? [directory] : []) + children(of: directory).flatMap { failed(in: $0) }
    }
}
