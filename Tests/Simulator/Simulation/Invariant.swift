import ActionAPI
import FileEvents
import Rules
import System

extension SimulatedRun {
    /// Checks a run between two steps.
    ///
    /// A rule that asks for all events and refuses nothing has received what the ledger contains: the ledger equals the
    /// sum of the events whose actions have succeeded. A path on which ledger and disk differ is still being processed.
    ///
    /// - Returns: The error; nil if there is none.
    func invariantFailure() -> String? {
        guard isRunning else { return nil }
        for (index, rule) in rules.enumerated() where rule.isPlain && (index == 0 || !rules[0].stops) {
            let present = files(of: loaded[index])
            var ledger: [PathBytes: Snapshot] = [:]
            program?.visit(rule.name, inside: world.base) { ledger[$0] = $1 }
            let received = record.mirrors[index].received
            for path in Set(ledger.keys).union(present.keys).union(received.keys).sorted() {
                let name = world.name(of: path)
                if !Snapshot.areSame(ledger[path], received[path]) {
                    return "\(name): the ledger is not what the action has received"
                }
                if !Snapshot.areSame(ledger[path], present[path]), !isPending(path, rule.name) {
                    return "\(name) differs from the ledger, and nothing waits for it"
                }
            }
        }
        return nil
    }

    /// Whether something about a path is still to be read, listed, settled or done.
    private func isPending(_ path: PathBytes, _ rule: String) -> Bool {
        world.waitingEvents > 0 || watcher?.hasWork == true || hasUnreadHints || isSettling(path)
            || program?.hasPending(rule, path) == true
            || activities.contains { $0.stage == .leased }
            || activities.flatMap(\.invocations).contains { $0.job.event.path == path || $0.job.event.from == path }
    }
}

extension SimulatedRule {
    /// Whether the rule receives all changes to its files, with a single action that reads them.
    var isPlain: Bool {
        events == .differences && refusedSize == nil && outside.isEmpty && steps == [.read] && catchUp && !isPolled
            && onFailure.isEmpty && !stops && whileBusy == .coalesce && group.isEmpty && !isTree && !follows
            && opens == nil && !refusesContent
    }
}
