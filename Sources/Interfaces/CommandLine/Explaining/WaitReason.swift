import ActionAPI
import FileEvents
import Rules
import Settling
import Storage
import System

/// A reason why an action would not start as soon as the file has settled.
struct WaitReason {
    /// The code for programs.
    var cause: String
    /// The message for users.
    var message: String
    /// The time at which the wait ends, if known.
    var until: Timestamp?

    /// The wait for a paused rule.
    static let paused = WaitReason(cause: "paused", message: "the rule is paused; resume it with 'alight resume'")

    /// Returns the reasons to wait for a rule and an event, in the order in which they are checked.
    static func all(
        _ rule: Rule, _ event: FileEvent, _ record: PathRecord, among ruleset: Ruleset, now: Timestamp
    ) -> [WaitReason] {
        let isOfFile = event.kind != .deleted && !event.kind.isRaw
        let found = [
            window(rule, now), busy(rule, record), cooldown(rule, record, now),
            isOfFile ? readiness(rule, event, now) : nil, isOfFile ? group(rule, event, ruleset) : nil,
        ]
        return found.compactMap(\.self)
    }

    private static func window(_ rule: Rule, _ now: Timestamp) -> WaitReason? {
        guard let window = rule.window, !window.isOpen(at: now, .system) else { return nil }
        return WaitReason(
            cause: Waiting.Cause.window.rawValue, message: "its window is closed",
            until: window.opening(after: now, .system))
    }

    private static func busy(_ rule: Rule, _ record: PathRecord) -> WaitReason? {
        guard let job = record.open.first(where: { $0.state == .running }) else { return nil }
        let message =
            switch rule.whileBusy {
            case .coalesce, .queue: "job \(job.id) runs for it, and has to finish first"
            case .drop: "job \(job.id) runs for it, and changes until then count as known ('while_busy: drop')"
            case .restart: "job \(job.id) runs for it, and would be stopped ('while_busy: restart')"
            }
        return WaitReason(cause: "busy", message: message)
    }

    private static func cooldown(_ rule: Rule, _ record: PathRecord, _ now: Timestamp) -> WaitReason? {
        // A skipped job has not run.
        let ends = record.ended.filter { $0.state != .skipped }.compactMap(\.ended)
        guard rule.cooldown > .zero, let last = ends.max() else { return nil }
        let end = last.advanced(by: rule.cooldown)
        guard end > now else { return nil }
        return WaitReason(cause: "cooldown", message: "it ran a short time ago ('cooldown')", until: end)
    }

    private static func readiness(_ rule: Rule, _ event: FileEvent, _ now: Timestamp) -> WaitReason? {
        guard let ready = rule.ready, case .present(let snapshot) = DiskProbe.look(at: event.path) else { return nil }
        let found = ready.waiting(event.path, snapshot, now: now) { DiskProbe.look(at: $0) != .absent }
        guard let found else { return nil }
        return WaitReason(
            cause: found.waiting.cause.rawValue, message: found.waiting.message,
            until: found.pause.map { now.advanced(by: $0) })
    }

    private static func group(_ rule: Rule, _ event: FileEvent, _ ruleset: Ruleset) -> WaitReason? {
        guard let group = rule.group else { return nil }
        let missing = group.missing(in: rule.members(with: event.path, among: ruleset) + [event.path])
        guard !missing.isEmpty else { return nil }
        let kinds = missing.map { "'\($0)'" }.joined(separator: ", ")
        return WaitReason(cause: Waiting.Cause.group.rawValue, message: "its set is missing \(kinds)")
    }
}

extension Rule {
    /// Returns the existing files that are handled together with a path; the path itself only if it exists.
    ///
    /// Files that the conditions exclude, or that an earlier rule with `stop` matches, are not included.
    func members(with path: PathBytes, among ruleset: Ruleset) -> [PathBytes] {
        guard let group else { return [] }
        let look = { (event: FileEvent) in ConditionFacts.Content(lookingAt: event) }
        let key = group.key(of: path)
        let files = WatchedPaths(roots: roots)
        let names = (try? files.names(in: path.parent)) ?? []
        let members = names.map { path.parent.appending($0.bytes) }.filter { member in
            guard group.mayBelong(PathBytes(member.lastComponent), to: key), group.key(of: member) == key,
                let root = root(taking: member), case .present(let snapshot) = files.look(at: member),
                types.contains(snapshot.type)
            else { return false }
            if member == path { return true }
            let event = FileEvent(
                kind: .created, path: member, root: root, snapshot: snapshot, origin: .scan, time: DiskProbe.now())
            guard admits(event, looking: look) == .holds, let index = ruleset.index(of: name) else { return false }
            return ruleset.stopper(of: event, to: index, looking: look) == nil
        }
        return group.sorted(members)
    }
}
