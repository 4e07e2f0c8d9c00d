import ActionAPI
import FileEvents
import Reconciling
import Rules
import System

extension SimulatedRun {
    /// Checks a run between two steps.
    ///
    /// A rule that asks for all events and refuses nothing has received what the ledger contains: the ledger equals the
    /// sum of the events whose jobs have ended. A path on which ledger and disk differ is still being processed.
    ///
    /// - Returns: The error; nil if there is none.
    func invariantFailure() -> String? {
        guard isRunning else { return nil }
        for (index, rule) in rules.enumerated() where rule.isPlain && (index == 0 || !rules[0].stops) {
            let present = files(of: loaded[index])
            var ledger: [PathBytes: Snapshot] = [:]
            program?.visit(rule.name, inside: world.base) { ledger[$0] = $1.handled }
            let received = record.mirrors[index].received
            for path in Set(ledger.keys).union(present.keys).union(received.keys).sorted() {
                if isOutOfSight(path) || record.mirrors[index].untracked.contains(path) { continue }
                let name = world.name(of: path)
                if !Self.areSame(ledger[path], received[path]), !isRunning(path, rule.name),
                    !record.mirrors[index].repeated.contains(path)
                {
                    return "\(name): the ledger is not what the action has received"
                }
                // No hint names the other names of a file that has changed.
                if let file = present[path], file.links > 1 || changedByName.contains(file.identity) { continue }
                if !Self.areSame(ledger[path], present[path]), !isPending(path, rule.name) {
                    return "\(name) differs from the ledger, and nothing waits for it"
                }
            }
        }
        return nil
    }

    /// Whether both are missing or have the same content.
    private static func areSame(_ one: Snapshot?, _ other: Snapshot?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        return one.hasSameContent(as: other)
    }

    /// Whether the program cannot see a path: a mount hides it, or a directory is unreadable.
    func isOutOfSight(_ path: PathBytes) -> Bool {
        world.mountedOnce.contains { path.isInside($0) }
            || path.parent.andParents.contains { world.snapshot($0).map { $0.mode & 0o444 == 0 } ?? false }
    }

    /// Whether something about a path is still to be read, listed, settled or done.
    private func isPending(_ path: PathBytes, _ rule: String) -> Bool {
        world.waitingEvents > 0 || world.isLosing || watcher?.hasWork == true || hasUnreadHints || isSettling(path)
            || program?.hasPending(rule, path) == true
            || activities.contains { $0.stage == .leased } || isRunning(path, rule)
    }

    /// Whether an action runs for a path.
    private func isRunning(_ path: PathBytes, _ rule: String) -> Bool {
        activities.flatMap(\.invocations).contains { $0.job.event.paths.contains(path) }
            || program?.isRunning(rule, path) == true
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
