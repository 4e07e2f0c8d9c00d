import Glibc

/// Resolves watched paths: the one place where they are opened.
///
/// The directory of a path is opened beneath the innermost root that contains it, without following any link. So a
/// process that replaces directories by links cannot lead an access out of the root. The root itself is opened by its
/// path, as by `cal_open_root`.
///
/// The last directory stays open until ``forget()``, because most consecutive paths are in the same directory. An open
/// directory prevents its file system from being unmounted, so call ``forget()`` soon. Used by one thread.
package final class WatchedPaths {
    package let fileSystem: any FileSystem
    private let roots: Set<PathBytes>
    private var root: (path: PathBytes, directory: OpenFile)?
    private var last: (path: PathBytes, root: PathBytes, directory: OpenFile)?
    /// The last requested path, whose directory is open, and the root below which that was opened.
    private var located: (path: PathBytes, root: PathBytes, location: DiskProbe.Location)?
    /// The innermost root that contains the last requested directory.
    private var holder: (directory: PathBytes, root: PathBytes?)?

    package init(roots: some Sequence<PathBytes>, in fileSystem: any FileSystem = .kernel) {
        self.roots = Set(roots)
        self.fileSystem = fileSystem
    }

    /// Closes the directories, because another process may have moved them, or replaced them by links.
    ///
    /// Such a change is reported after it happened, so the answers within one turn may be outdated.
    package func forget() {
        root = nil
        last = nil
        located = nil
    }

    /// Returns the name of a path in its open directory.
    ///
    /// - Throws: The error of opening the directory; `ELOOP` for a directory behind a link.
    package func location(of path: PathBytes) throws(SystemError) -> DiskProbe.Location {
        if let located, located.path == path { return located.location }
        let parent = path.parent
        guard let root = root(holding: parent) else { return DiskProbe.Location(path) }
        let location = DiskProbe.Location(try directory(parent, below: root), PathBytes(path.lastComponent))
        located = (path, root, location)
        return location
    }

    /// Returns the current metadata of the path, without following any link below the root.
    package func inspect(at path: PathBytes, readingExtended: Bool = false) -> DiskProbe.StatResult {
        do throws(SystemError) {
            return fileSystem.stat(try location(of: path), readingExtended: readingExtended)
        } catch {
            return DiskProbe.StatResult(directory: error.errno)
        }
    }

    /// Returns the names in a directory, in the order of the file system.
    ///
    /// - Throws: The error if it cannot be listed, or not to its end.
    package func names(in path: PathBytes) throws(SystemError) -> [PathBytes] {
        guard let root = root(holding: path) else { return try fileSystem.names(in: path) }
        return try fileSystem.names(in: DiskProbe.Location(directory(path, below: root), "."))
    }

    /// Checks whether a process can still write to the regular file.
    package func writers(of path: PathBytes) -> DiskProbe.Holders {
        (try? location(of: path)).map { fileSystem.writers(of: $0) } ?? .unknown
    }

    /// Whether a directory between the root and the path is a symbolic link; the root itself may be one.
    package func isBehindLink(_ path: PathBytes, root: PathBytes) -> Bool {
        if let located, located.path == path, located.root == root { return false }
        do throws(SystemError) {
            _ = try directory(path.parent, below: root)
            return false
        } catch {
            return error.errno == ELOOP
        }
    }

    private func root(holding directory: PathBytes) -> PathBytes? {
        if holder?.directory != directory { holder = (directory, directory.andParents.first { roots.contains($0) }) }
        return holder?.root
    }

    /// Whether the directory of the path is on overlayfs.
    package func isOnOverlay(_ path: PathBytes) -> Bool {
        (try? location(of: path)).map { fileSystem.isOnOverlay($0) } ?? false
    }

    /// Opens a root; throws `EACCES` behind a link that root does not follow: its files exist, but are unavailable.
    private func open(root: PathBytes) throws(SystemError) -> OpenFile {
        do throws(SystemError) {
            return try fileSystem.open(root: root)
        } catch {
            throw error.errno == ELOOP ? SystemError(errno: EACCES) : error
        }
    }

    private func directory(_ path: PathBytes, below root: PathBytes) throws(SystemError) -> OpenFile {
        if let last, last.path == path, last.root == root { return last.directory }
        if self.root?.path != root { self.root = (root, try open(root: root)) }
        guard let base = self.root?.directory else { throw SystemError(errno: ENOENT) }
        var directory = base
        if path != root {
            guard let relative = path.relative(to: root) else { throw SystemError(errno: EXDEV) }
            directory = try fileSystem.open(PathBytes(relative), beneath: base)
        }
        last = (path, root, directory)
        return directory
    }
}

extension DiskProbe {
    /// Opens a watched file for reading.
    ///
    /// Returns the descriptor or a negative errno.
    package static func openForReading(_ path: PathBytes, below root: PathBytes) -> Int32 {
        do throws(SystemError) {
            return try WatchedPaths(roots: [root]).location(of: path).openForReading()
        } catch {
            return -error.errno
        }
    }
}
