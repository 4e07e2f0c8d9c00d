/// The names on the way along a path from `/`, symbolic links followed as the kernel follows them.
package struct PathWalk: Sequence, IteratorProtocol {
    /// The directory that has been reached, without links.
    private var directory: PathBytes = "/"
    /// The names that have not been visited, the next one last.
    private var names: [ArraySlice<UInt8>]
    private var links = 0
    /// Whether the last name did not exist, could not be read, or was one link too many.
    package private(set) var isFinished = false

    /// The most links that the kernel follows.
    private static let maximumLinks = 40

    /// - Parameter path: An absolute path.
    package init(_ path: PathBytes) { names = path.bytes.split(separator: .slash).reversed() }

    /// The path reached so far, without links, followed by the names that have not been visited.
    package var end: PathBytes { names.reversed().reduce(directory) { $0.appending(Array($1)) } }

    /// Returns the next name, as a path without links before it, and what has this name; nil at the end.
    ///
    /// The walk ends with a name that does not exist or cannot be read, and with one link too many.
    package mutating func next() -> (location: PathBytes, found: DiskProbe.StatResult)? {
        next { location, _ in KernelFileSystem().stat(location) }
    }

    /// Returns the same as ``next()``, as inspected by the closure, which also gets whether no name follows this one.
    package mutating func next<Failure>(
        _ inspect: (PathBytes, _ isLast: Bool) throws(Failure) -> DiskProbe.StatResult
    ) throws(Failure) -> (location: PathBytes, found: DiskProbe.StatResult)? {
        while !isFinished, let name = names.popLast() {
            if name.elementsEqual([.dot]) { continue }
            if name.elementsEqual([.dot, .dot]) {
                directory = directory.parent
                continue
            }
            let location = directory.appending(Array(name))
            let found = try inspect(location, names.isEmpty)
            switch found.snapshot?.type {
            case .symlink?:
                links += 1
                let target = links <= Self.maximumLinks ? KernelFileSystem().target(of: location)?.bytes : nil
                if target?.first == .slash { directory = "/" }
                names += target?.split(separator: .slash).reversed() ?? [name]
                isFinished = target == nil
            case _?: directory = location
            case nil:
                names.append(name)
                isFinished = true
            }
            return (location, found)
        }
        return nil
    }
}
