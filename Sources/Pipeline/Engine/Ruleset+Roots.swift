import FileEvents
package import Rules
package import System

extension Ruleset {
    /// The roots that a run would make, with the rules that want it.
    package func rootsToMake(in fileSystem: any FileSystem) -> [(root: PathBytes, rule: String)] {
        rules.filter { $0.missing == .create }.flatMap { rule in
            rule.roots.filter { !fileSystem.exists($0) }.map { ($0, rule.name) }
        }
    }

    /// Sees to the roots that rules do not want to wait for, before anything is watched.
    ///
    /// What is there and no folder is left to the watching, which can't begin then.
    ///
    /// In a dry run those that would be made are waited for.
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
