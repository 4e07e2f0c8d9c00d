import FileEvents
import Glibc
import Monitoring
import Records
package import Rules
import Running
package import System
import Watching

// The roots of rules, and the names under which an earlier run has stored them.
extension Ruleset {
    /// Returns the roots that a run would create, with the rules that require them.
    package func rootsToMake(in fileSystem: any FileSystem) -> [(root: PathBytes, rule: String)] {
        rules.filter { $0.missing == .create }.flatMap { rule in
            rule.roots.filter { !fileSystem.exists($0) }.map { ($0, rule.name) }
        }
    }

    /// Prepares the roots for which rules do not wait, before anything is watched.
    ///
    /// An existing path that cannot be watched is left to the watcher, which reports it, except for `missing: fail`. In a
    /// dry run, the roots that would be created are waited for; so are those that cannot be created, unless the run is
    /// not going to wait.
    func prepareRoots(
        _ options: EngineOptions, in fileSystem: any FileSystem, report: (EngineReport) -> Void
    ) throws(StartError) {
        let isDry = options.isDry
        for rule in rules where rule.missing == .fail || rule.missing == .create && !isDry {
            for root in rule.roots {
                guard let error = Self.error(opening: root, in: fileSystem) else { continue }
                guard error == ENOENT || error == ENOTDIR, !fileSystem.exists(root) else {
                    if rule.missing == .fail {
                        throw .watching(error == ENOTDIR ? .notDirectory(root) : .refused(root, errno: error))
                    }
                    continue
                }
                if rule.missing == .fail { throw .rootMissing(root, rule: rule.name, rule.location) }
                let failure = fileSystem.makeDirectory(root)
                guard failure != 0 else { continue }
                let refusal = StartError.rootRefused(root, rule: rule.name, rule.location, errno: failure)
                guard !options.isOnce else { throw refusal }
                report(.notCreated(refusal))
            }
        }
    }

    private static func error(opening root: PathBytes, in fileSystem: any FileSystem) -> Int32? {
        do throws(SystemError) {
            _ = try fileSystem.open(root: root)
            return nil
        } catch {
            return error.errno
        }
    }

    /// The rules as stored in the journal.
    var records: [RuleRecord] {
        rules.map {
            RuleRecord(name: $0.name, path: $0.identifyingPath, formerly: $0.formerly, selection: $0.selection)
        }
    }
}

extension Pauses {
    /// Returns the pauses under the current names of the rules.
    func renamed(for ruleset: Ruleset, in store: any Journal) -> Pauses {
        var renamed = self
        renamed.rules = Set(rules.map(store.currentName))
        for (former, name) in ruleset.renames where renamed.rules.remove(former) != nil { renamed.rules.insert(name) }
        return renamed
    }
}
