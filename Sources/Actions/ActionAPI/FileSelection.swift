import Glibc
package import Globbing
package import Rules
package import System

/// The files that a rule matches, by name, type and conditions.
package struct FileSelection: Sendable, Hashable {
    package var filter: PathFilter
    package var types: Set<FileType>
    /// The condition; a file for which it cannot be evaluated does not match.
    package var condition: Condition?

    package init(filter: PathFilter, types: Set<FileType>, condition: Condition? = nil) {
        (self.filter, self.types, self.condition) = (filter, types, condition)
    }

    /// The result of a listing.
    package enum ListingResult {
        /// The files found, and the directories that could not be listed, with the errno.
        ///
        /// A root that does not exist is one of these directories.
        case found([(path: PathBytes, root: PathBytes, snapshot: Snapshot)], unseen: [(PathBytes, Int32)])
        /// No root exists.
        case rootMissing
        case stopped
    }

    /// Returns the root through which the path matches; nil if it does not match.
    package func root(matching path: PathBytes) -> PathBytes? {
        filter.root(matching: path.bytes).map { PathBytes($0) }
    }

    /// Lists the existing files in no particular order; links to a root are followed, those below it are not.
    ///
    /// With a condition on the content, each file that meets all other conditions is read.
    ///
    /// - Parameter isStopped: Called for each directory, and for each file for which a condition is evaluated.
    /// - Returns: The files found, with the root through which each one matches.
    package func list(isStopped: () -> Bool) -> ListingResult {
        var found: [(path: PathBytes, root: PathBytes, snapshot: Snapshot)] = []
        var unseen: [(PathBytes, Int32)] = []
        var hasRoot = false
        var seen: Set<PathBytes> = []
        let roots = filter.roots.map { PathBytes($0) }
        let files = WatchedPaths(roots: roots)
        for root in roots {
            var pending = [root]
            while let current = pending.popLast() {
                if isStopped() { return .stopped }
                // One root may be inside another.
                guard seen.insert(current).inserted else { continue }
                var names: [PathBytes] = []
                var error: Int32 = 0
                do throws(SystemError) {
                    names = try files.names(in: current)
                } catch let failure {
                    error = failure.errno
                }
                for name in names {
                    let path = current.appending(name.bytes)
                    let holder = self.root(matching: path)
                    let reaches = filter.reaches(below: path.bytes)
                    guard holder != nil || reaches, case .present(let snapshot) = files.inspect(at: path) else {
                        continue
                    }
                    if let holder, types.contains(snapshot.type),
                        condition.map({ !isStopped() && $0.answerNow(path, root: holder, snapshot: snapshot) == .holds }
                        ) ?? true
                    {
                        found.append((path, holder, snapshot))
                    }
                    if reaches, snapshot.type == .directory { pending.append(path) }
                }
                if isStopped() { return .stopped }
                let isGone = error == ENOENT || error == ENOTDIR || error == ELOOP
                if current == root, !isGone { hasRoot = true }
                if error != 0, current == root || !isGone { unseen.append((current, error)) }
            }
        }
        return hasRoot ? .found(found, unseen: unseen) : .rootMissing
    }
}
