import FileEvents
import Handling
import PluginProtocol
import Rules
import Settling

// What has to hold of a file besides, before an action begins.
extension Attempt {
    /// Finds out whether the file is ready; nil to go on.
    ///
    /// What is gone or has happened already is not waited for, nor what a person has asked for.
    func awaitReady(_ job: Job, _ files: WatchedPaths) -> Ending? {
        let event = job.event
        guard let ready = rule.ready, job.steps.isEmpty, !job.isInterrupted, event.origin != .manual,
            event.kind != .deleted, !event.kind.isLifecycle, !event.kind.isRaw,
            case .present(let snapshot) = files.look(at: event.path)
        else { return nil }
        let now = host.clock.time()
        let pause = rule.retry.pause(
            whileNotReady: rule.settle.quiet(isPolled: false), age: now.since(event.time))
        if let (waiting, known) = ready.waiting(
            event.path, snapshot, now: now, isThere: { files.look(at: $0) != .absent })
        {
            return .waiting(waiting, pause: known ?? pause)
        }
        guard let command = ready.command else { return nil }
        var question = Action(.exec(command), place: rule.place)
        question.isQuestion = true
        files.forget()
        let outcomes = perform(question, [invocation(job, now: now, timeout: rule.timeout)])
        guard var outcome = outcomes.first else { preconditionFailure("an action has an outcome for its event") }
        if outcome.ending == .succeeded { return nil }
        if outcome.process?.status == 75 {
            return .waiting(Waiting(.command, "'ready' says: \(outcome.message)"), pause: pause)
        }
        if outcome.isInterrupted {
            // Nothing has begun, so that the next attempt has to ask again.
            return .waiting(Waiting(.command, "'ready' was stopped"), pause: .zero)
        }
        outcome.isUnbegun = !job.hasBegunBefore
        outcome.message = (outcome.isUnbegun ? "'ready': " : "'ready', asked again: ") + outcome.message
        outcome.code = Outcome.readyCode
        return .outcome(outcome)
    }

    /// Lets the files of a set wait for the one of them that is not as it was.
    func keepSetTogether(_ parts: inout [Part]) {
        guard rule.group != nil, let other = parts.first(where: \.isOver) else { return }
        var pause = Duration.seconds(1)
        if case .waiting(_, let longer) = other.ending { pause = longer }
        for index in parts.indices where !parts[index].isOver && !parts[index].job.hasBegunBefore {
            let waiting = Waiting(.group, "it waits for '\(other.job.event.path)'")
            parts[index].end(.waiting(waiting, pause: pause))
        }
    }
}
