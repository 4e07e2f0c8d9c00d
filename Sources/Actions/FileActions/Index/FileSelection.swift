import FileEvents
import Glibc
package import Globbing
package import Rules
package import System

/// The files that a rule takes: which it is, by name, type and conditions.
package struct FileSelection: Sendable, Hashable {
    package var filter: PathFilter
    package var types: Set<FileType>
    /// A file of which nobody can tell whether it holds is none of the rule's.
    package var condition: Condition?

    package init(filter: PathFilter, types: Set<FileType>, condition: Condition? = nil) {
        self.filter = filter
        self.types = types
        self.condition = condition
    }

    /// How a listing ended.
    enum Ending {
        /// All that could be listed; and the folders that could not be, with the errno.
        ///
        /// A root that does not exist is one of them.
        case found([(path: PathBytes, root: PathBytes, snapshot: Snapshot)], unseen: [(PathBytes, Int32)])
        /// No root is there.
        case rootMissing
        case stopped
    }

    /// The root by which the path is taken; nil for a path that is not.
    func root(taking path: PathBytes) -> PathBytes? { filter.root(taking: path.bytes).map { PathBytes($0) } }

    /// Lists what there is, in no order; links are followed to a root, and not below it.
    ///
    /// With a condition on the content each file is looked into for which all else holds.
    ///
    /// - Parameter isStopped: Asked for each folder, and for each file of which a condition is asked.
    /// - Returns: What was found, with the root by which it is taken.
    func list(isStopped: () -> Bool) -> Ending {
        var found: [(path: PathBytes, root: PathBytes, snapshot: Snapshot)] = []
        var unseen: [(PathBytes, Int32)] = []
        var hasRoot = false
        var seen: Set<PathBytes> = []
        let roots = filter.roots.map { PathBytes($0) }
        let files = WatchedPaths(roots: roots)
        for root in roots {
            var pending = [root]
            while let folder = pending.popLast() {
                if isStopped() { return .stopped }
                // One root may lie in another.
                guard seen.insert(folder).inserted else { continue }
                var names: [PathBytes] = []
                var error: Int32 = 0
                do throws(SystemError) {
                    names = try files.names(in: folder)
                } catch let fault {
                    error = fault.errno
                }
                for name in names {
                    let path = folder.appending(name.bytes)
                    let holder = self.root(taking: path)
                    let reaches = filter.reaches(below: path.bytes)
                    guard holder != nil || reaches, case .present(let snapshot) = files.look(at: path) else {
                        continue
                    }
                    if let holder, types.contains(snapshot.type),
                        condition.map({ !isStopped() && $0.answerNow(path, root: holder, snapshot: snapshot) == .holds }
                        )
                            ?? true
                    {
                        found.append((path, holder, snapshot))
                    }
                    if reaches, snapshot.type == .directory { pending.append(path) }
                }
                if isStopped() { return .stopped }
                let isGone = error == ENOENT || error == ENOTDIR || error == ELOOP
                if folder == root, !isGone { hasRoot = true }
                if error != 0, folder == root || !isGone { unseen.append((folder, error)) }
            }
        }
        return hasRoot ? .found(found, unseen: unseen) : .rootMissing
    }
}
