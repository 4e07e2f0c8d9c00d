package import Rules
package import System

extension Ruleset {
    /// Returns the roots that a run would create, with the rules that require them.
    package func rootsToMake(in fileSystem: any FileSystem) -> [(root: PathBytes, rule: String)] {
        rules.filter { $0.missing == .create }.flatMap { rule in
            rule.roots.filter { !fileSystem.exists($0) }.map { ($0, rule.name) }
        }
    }

    /// Prepares the roots for which rules do not wait, before anything is watched.
    ///
    /// An existing path that is not a directory is left to the watcher, which then fails to start.
    ///
    /// In a dry run, the roots that would be created are waited for.
    package func prepareRoots(isDry: Bool, in fileSystem: any FileSystem) throws(StartError) {
        for rule in rules where rule.missing != .wait {
            for root in rule.roots where !fileSystem.exists(root) {
                switch rule.missing {
                case .wait: break
                case .create where isDry: break
                case .fail: throw .rootMissing(root, rule: rule.name, rule.place)
                case .create:
                    let error = fileSystem.makeDirectory(root)
                    guard error == 0 else {
                        throw .rootRefused(root, rule: rule.name, rule.place, errno: error)
                    }
                }
            }
        }
    }
}
