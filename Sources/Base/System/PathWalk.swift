/// The names on the way along a path from `/`, symbolic links followed as the kernel follows them.
package struct PathWalk: Sequence, IteratorProtocol {
    /// The directory that has been reached, without links.
    private var directory: PathBytes = "/"
    /// The names that have not been visited, the next one last.
    private var names: [ArraySlice<UInt8>]
    private var links = 0
    private var isFinished = false

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
        while !isFinished, let name = names.popLast() {
            if name.elementsEqual([.dot]) { continue }
            if name.elementsEqual([.dot, .dot]) {
                directory = directory.parent
                continue
            }
            let location = directory.appending(Array(name))
            let found = KernelFileSystem().stat(location)
            switch found.snapshot?.type {
            case .symlink?:
                links += 1
                guard links <= Self.maximumLinks, let target = KernelFileSystem().target(of: location)?.bytes else {
                    finish(at: name)
                    break
                }
                if target.first == .slash { directory = "/" }
                names += target.split(separator: .slash).reversed()
            case _?: directory = location
            case nil: finish(at: name)
            }
            return (location, found)
        }
        return nil
    }

    private mutating func finish(at name: ArraySlice<UInt8>) {
        names.append(name)
        isFinished = true
    }
}
