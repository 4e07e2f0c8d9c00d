import FileEvents
import Journaling
import Rules
import Settling

extension Ruleset {
    /// The job that a person asks for: the rule is run for the file as it is now, whatever it is told of otherwise.
    ///
    /// A file that is not there ends as one that has gone.
    ///
    /// - Returns: Nil when there is no such rule.
    func job(for request: JobRequest) -> Job? {
        guard let rule = rule(named: request.rule) else { return nil }
        let root =
            rule.root(taking: request.path) ?? rule.roots.first { request.path.isInside($0) } ?? request.path.parent
        var snapshot = Snapshot.unseen
        if case .present(let present) = DiskProbe.look(at: request.path, below: root) { snapshot = present }
        let event = FileEvent(
            kind: .created, path: request.path, root: root, snapshot: snapshot, origin: .manual,
            time: DiskProbe.now())
        return Job(id: request.id, rule: rule.name, event: event, mask: rule.events)
    }
}
