package import FileEvents
import Glibc
package import Rules

extension Ruleset {
    /// The roots that a run would make, with the rules that want it.
    package var rootsToMake: [(root: PathBytes, rule: String)] {
        rules.filter { $0.missing == .create }.flatMap { rule in
            rule.roots.filter { !$0.exists }.map { ($0, rule.name) }
        }
    }

    /// Sees to the roots that rules do not want to wait for, before anything is watched.
    ///
    /// What is there and no folder is left to the watching, which can't begin then.
    ///
    /// In a dry run those that would be made are waited for.
    func prepareRoots(isDry: Bool) throws(StartError) {
        for rule in rules where rule.missing != .wait {
            for root in rule.roots where !root.exists {
                switch rule.missing {
                case .wait: break
                case .create where isDry: break
                case .fail: throw .rootMissing(root, rule: rule.name, rule.place)
                case .create:
                    let error = root.makeFolder()
                    guard error == 0 else {
                        throw .rootRefused(root, rule: rule.name, rule.place, errno: error)
                    }
                }
            }
        }
    }
}

extension PathBytes {
    /// Whether there is anything of that name, where links lead.
    fileprivate var exists: Bool {
        var status = stat()
        return withCString { stat($0, &status) } == 0
    }

    /// Makes the folder and those above it, with the umask's mode.
    ///
    /// - Returns: 0, or the errno.
    fileprivate func makeFolder() -> Int32 {
        var missing = [self]
        while let folder = missing.last {
            if folder.withCString({ mkdir($0, 0o777) }) == 0 || errno == EEXIST {
                missing.removeLast()
                continue
            }
            guard errno == ENOENT, folder.parent != folder else { return errno }
            missing.append(folder.parent)
        }
        return exists ? 0 : ENOENT
    }
}
