package import FileEvents
import Handling
package import Logging
import PluginProtocol
package import Rules

extension Rule {
    /// Whether an event becomes a job, as far as that shows without a look at the content.
    ///
    /// What does not is known all the same: the rule isn't told of it again unless it changes.
    package func lets(_ event: FileEvent, log: Logger) -> Bool {
        let answer = admits(event)
        switch answer {
        case .holds, .needsContent: return true
        case .fails(let reason): log.debug("\(skipped(event, reason))", metadata: ["rule": "\(name)"])
        case .untold(let reason):
            // Of what is gone, or is only passed on, it is no surprise; nor is it that nobody says who wrote, where that
            // has been told, or the file was there before.
            let isAbsent =
                event.author == .unknown(.denied) || event.origin != .live && event.author == .unknown(.unseen)
            let level: Logger.Level =
                event.kind == .deleted || event.kind.isRaw ? .debug : isAbsent ? .info : .warning
            log.log(level: level, "\(skipped(event, reason))", metadata: ["rule": "\(name)"])
        }
        return false
    }

    private func skipped(_ event: FileEvent, _ reason: String) -> String {
        "'where' leaves \(event.kind.rawValue) \(event.path): \(reason)"
    }
}

extension Attempt {
    /// Works out the rule's conditions with all that there is to know, before anything is done; nil to go on.
    ///
    /// The job may have been merged with newer ones since it was accepted, so all
    /// of it is asked again. A person who names a file has been told before.
    func ask(_ job: Job) -> Ending? {
        // What a step has done, or an attempt that was cut off, may be why a condition holds no more.
        guard job.event.origin != .manual, job.steps.isEmpty else { return nil }
        // The rule may be another than when the job was accepted.
        guard job.event.kind.isLifecycle || rule.root(taking: job.event.path) != nil else {
            return .outcome(Outcome(.skipped, "the rule takes this path no more", code: "path"))
        }
        // Whether a deletion is reported was decided when it settled, by what was received of the path before.
        guard job.event.kind != .deleted else { return nil }
        switch rule.admits(job.event, looking: { ConditionFacts.Content(lookingAt: $0) }) {
        case .holds, .needsContent: return nil
        case .fails(let reason): return .outcome(Outcome(.skipped, reason, code: "where"))
        case .untold(let reason):
            return job.isInterrupted ? nil : .outcome(Outcome(.skipped, reason, code: "where"))
        }
    }
}
