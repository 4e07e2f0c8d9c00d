import FileEvents
import Pipeline
import PluginProtocol
import RuleLoading
import Rules
import Storage
import System

/// The slots of the running instance while none is free.
struct RunningSlots {
    /// The actions that use them: rule, path, and for how long.
    private let users: String
    /// The rules that have something running.
    private let running: Set<String>

    /// Asks the running instance, if it has this journal.
    ///
    /// - Returns: Nil when none answers, or a slot is free.
    init?(_ settings: Configuration) {
        guard case .file(let journal)? = settings.journal?.value, let socket = DiskStore.control(of: journal),
            let status = try? ControlClient(socket, patience: 2).ask("GET", "/v1/status").object,
            let slots = status["slots"]?.object, let taken = slots["used"]?.double, let limit = slots["limit"]?.double,
            taken >= limit
        else { return nil }
        let jobs = (status["running"]?.array ?? []).compactMap(\.object)
        running = Set(jobs.compactMap { $0["rule"]?.string })
        let now = DiskProbe.now()
        users = jobs.filter { $0["slot"]?.bool == true }.map { job in
            let since = job["since"]?.string.flatMap { JSONLine.time($0) }.map { now.since($0) } ?? .zero
            let path = JSONLine.path(job)?.description ?? ""
            return "rule '\(job["rule"]?.string ?? "")' for '\(path)', for \(Reporter.seconds(max(.zero, since)))"
        }.joined(separator: "; ")
    }

    /// What keeps a rule from starting an action at once; nil when it needs no slot.
    func holdup(of rule: Rule) -> Holdup? {
        guard rule.takesSlot, !running.contains(rule.name) else { return nil }
        return Holdup(cause: "slots", message: "no slot is free; in use by \(users)")
    }
}
