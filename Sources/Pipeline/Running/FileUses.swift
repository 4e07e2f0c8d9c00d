package import System

/// The files on which actions work: a file has one action at a time, or several that only read it.
package struct FileUses {
    private var uses: [PathBytes: (count: Int, isShared: Bool)] = [:]

    /// Whether an action may start that shares the file, or that does not.
    package func allows(_ path: PathBytes, _ isShared: Bool) -> Bool {
        uses[path].map { $0.isShared && isShared } ?? true
    }

    package mutating func add(_ paths: [PathBytes], isShared: Bool) {
        for path in paths { uses[path, default: (0, isShared)].count += 1 }
    }

    /// Prevents other actions from sharing files while they are in use.
    package mutating func close(_ paths: [PathBytes]) {
        for path in paths { uses[path]?.isShared = false }
    }

    package mutating func remove(_ paths: [PathBytes]) {
        for path in paths {
            uses[path]?.count -= 1
            if uses[path]?.count == 0 { uses[path] = nil }
        }
    }
}
