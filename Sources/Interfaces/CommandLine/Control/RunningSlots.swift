import Configuration
import JSON
import Pipeline
import Rules
import Storage
import System

/// The slots of the running instance, when none is free.
struct RunningSlots {
    /// The actions that use the slots, as text: rule, path and running time.
    private let users: String
    /// The rules with running actions.
    private let running: Set<String>

    /// Asks the running instance that uses this journal.
    ///
    /// - Returns: Nil if no instance answers, or if a slot is free.
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

    /// Returns the wait for a slot; nil if the rule needs none, or already has an action running.
    func holdup(of rule: Rule) -> WaitReason? {
        guard rule.takesSlot, !running.contains(rule.name) else { return nil }
        return WaitReason(cause: "slots", message: "no slot is free; in use by \(users)")
    }
}
