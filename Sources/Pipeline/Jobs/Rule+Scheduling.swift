package import FileEvents
import Gates
package import Logging
import PluginProtocol
package import Reconciling
package import Rules
package import System

// The properties of a rule that decide how its jobs run.
extension Rule {
    /// Whether an attempt may take long or run a program, and therefore needs a slot.
    package var takesSlot: Bool {
        ready?.command != nil || !(actions + onFailure).allSatisfy { $0.traits.contains(.isBrief) }
    }

    /// Whether one attempt may run several of its jobs without a visible difference.
    ///
    /// This requires that each has its own outcome, and that none delays the others.
    package var runsTogether: Bool {
        !takesSlot && whileBusy == .coalesce && ready == nil && group == nil && sameContent != .ignore
            // A failure with a shared cause must not use up the only attempt of each job.
            && retry.attempts > 1 && actions.count == 1
    }

    /// Whether attempts at its jobs may run in one slot, one after another, while each takes little time.
    package var runsInSeries: Bool {
        takesSlot && whileBusy == .coalesce && ready == nil && !isCollected && sameContent != .ignore
    }

    /// Whether its jobs are passed to its actions together.
    package var isCollected: Bool { batch != nil || group != nil }

    /// Returns the list that an attempt at the job runs: `on_failure` once it was given up.
    package func actions(of job: Job) -> [Action] { job.failure == nil ? actions : onFailure }

    /// Returns the action after the finished steps of a job.
    package func nextAction(of job: Job) -> Action? { actions(of: job).dropFirst(job.finishedSteps.count).first }

    /// Whether the next step of a job may remove the file; a rule that receives deletions is informed by the event.
    package func mayRemoveInput(_ job: Job) -> Bool { nextAction(of: job).map(mayRemoveInput) ?? false }

    package func mayRemoveInput(_ action: Action) -> Bool {
        action.traits.contains(.removesInput) || action.isProgram && !events.contains(.deleted)
    }

    /// Whether its actions only read the file, and therefore share it with others that do.
    package var sharesFile: Bool { (actions + onFailure).allSatisfy { $0.traits.contains(.sharesFile) } }

    /// Whether an action moves or deletes the file.
    package var removesInput: Bool { actions.contains { $0.traits.contains(.removesInput) } }

    /// Returns the gate that the next file of the set wakes.
    package func groupGate(of path: PathBytes) -> Reconciler.Gate {
        Reconciler.Gate("group", group?.name(of: path), mayNeverOpen: true)
    }

    /// Logs why `where` refuses an event; a match is not logged.
    package func log(_ answer: ConditionAnswer, of event: FileEvent, to log: Logger) {
        let (level, reason): (Logger.Level, String)
        switch answer {
        case .holds, .needsContent, .unreadable: return
        case .fails(let found): (level, reason) = (.debug, found)
        case .unknown(let unknown):
            // This is expected for a missing file and raw events, and for the writer if the kernel does not report
            // it, or if the file existed before.
            let isAbsent =
                event.writer == .unknown(.denied) || event.origin != .live && event.writer == .unknown(.unseen)
            level = event.kind == .deleted || event.kind.isRaw ? .debug : isAbsent ? .info : .warning
            reason = unknown
        }
        log.log(
            level: level, "'where' skips \(event.kind.rawValue) \(event.path): \(reason)",
            metadata: ["rule": "\(name)"])
    }
}

extension Grouping {
    /// Returns one path for all files of a set.
    package func name(of path: PathBytes) -> PathBytes { path.parent.appending(key(of: path)) }
}
