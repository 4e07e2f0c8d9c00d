package import Rules
package import Storage

extension Pauses {
    /// Returns the pauses under the current names of the rules.
    package func renamed(for ruleset: Ruleset) -> Pauses {
        var renamed = self
        for rule in ruleset.rules {
            for former in rule.formerly where ruleset.index(of: former) == nil {
                if renamed.rules.remove(former) != nil { renamed.rules.insert(rule.name) }
            }
        }
        return renamed
    }
}
