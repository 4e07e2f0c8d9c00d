import ActionAPI
package import FileEvents
import Gates
import Jobs
package import Logging
package import Monitoring
package import Rules
package import System
package import Watching

/// The conditions of the running rules, as evaluated for the reconciler.
///
/// It belongs to the engine's thread, and persists across reloads.
package final class Conditions {
    package var ruleset: Ruleset
    private let log: Logger
    /// The content types of files for `stop` of earlier rules; discarded after each turn.
    private var contents: [PathBytes: ConditionInput.Content] = [:]
    /// The refusals that were logged in this turn.
    private var logged: Set<Refusal> = []
    package private(set) var writers = WriterSource.none
    /// The interrupted actions that may have removed their input, by the numbers of their offers.
    package var interrupted: [UInt64: (action: Action, job: Job)] = [:]
    private let finds: (@Sendable (Rule, Action, Job) -> Bool)?

    private struct Refusal: Hashable {
        var rule: Int
        var path: PathBytes
    }

    /// The source of information about writers.
    package enum WriterSource {
        case none
        /// The kernel does not report writers to this process.
        case denied
        case recorder(WriterRecorder)
    }

    package init(_ ruleset: Ruleset, log: Logger, hasWork: (@Sendable (Rule, Action, Job) -> Bool)?) {
        (self.ruleset, self.log) = (ruleset, log)
        finds = hasWork
    }

    /// Whether the interrupted action of an offer finds its own output.
    package func hasWork(_ number: UInt64) -> Bool {
        guard let finds, let (action, job) = interrupted[number], let index = ruleset.index(of: job.rule) else {
            return false
        }
        return finds(ruleset.rules[index], action, job)
    }

    /// Whether ``interrupted`` is used.
    package var asksForWork: Bool { finds != nil }

    /// Whether a rule receives an event.
    ///
    /// It does if no earlier rule with `stop` receives it, and its own `where` matches, needs the content, or will
    /// match by time alone.
    package func admit(_ event: FileEvent, rule index: Int) -> Bool {
        if ruleset.isAfterStop(index), ruleset.stopper(of: event, to: index, reading: content) != nil { return false }
        guard ruleset.rules[index].condition != nil else { return true }
        let rule = ruleset.rules[index]
        let answer = rule.admits(event)
        switch answer {
        case .holds, .needsContent, .unreadable: return true
        case .fails where rule.opening(of: event) != nil: return true
        case .fails, .unknown:
            if logged.insert(Refusal(rule: index, path: event.path)).inserted { rule.log(answer, of: event, to: log) }
            return false
        }
    }

    /// Whether there are events that a rule may not receive.
    package func mayRefuse(rule index: Int) -> Bool {
        ruleset.isAfterStop(index) || ruleset.rules[index].condition != nil
    }

    /// Returns the reason why it is not known whether an earlier rule with `stop` receives an event that is admitted: its
    /// condition cannot be read.
    package func obstacle(to event: FileEvent, rule index: Int) -> String? {
        guard ruleset.isAfterStop(index) else { return nil }
        return ruleset.unreadableStopper(of: event, to: index, reading: content)
    }

    /// Returns the process that caused an event; rules that stop others may also request it.
    package func writer(of event: FileEvent, rule index: Int) -> Writer {
        guard ruleset.needsWriters, !event.kind.isLifecycle, !event.kind.isRaw else { return .notAsked }
        switch writers {
        case .none: return .unknown(.unseen)
        case .denied: return .unknown(.denied)
        case .recorder(let recorder): return recorder.writer(of: event, isTree: ruleset.rules[index].settle.isTree)
        }
    }

    private func content(_ event: FileEvent) -> ConditionInput.Content {
        if let known = contents[event.path] { return known }
        let content = ConditionInput.Content(of: event)
        contents[event.path] = content
        return content
    }

    package func forgetContents() {
        contents.removeAll(keepingCapacity: true)
        logged.removeAll(keepingCapacity: true)
    }

    // MARK: Watching

    /// Starts to record writers, if a rule requests it.
    package func listen(_ report: (EngineReport) -> Void) {
        guard case .none = writers else { return }
        do {
            writers = .recorder(try WriterRecorder())
        } catch {
            report(.writersUnreported(error))
            writers = .denied
        }
    }

    package func stopListening() { writers = .none }

    /// Returns the scope to watch for the rules, without the files of the journal.
    package func scope(of ruleset: Ruleset, ignoring files: [PathBytes], watchesBeside: Int) -> WatchScope {
        var scope = ruleset.scope
        let takes = scope.takes
        // Opening and closing such a file would release the locks of SQLite.
        if !files.isEmpty { scope.takes = { path in takes(path) && !files.contains { path.continues($0) } } }
        if ruleset.needsWriters, case .recorder(let recorder) = writers { scope.recorder = recorder }
        scope.watchesBeside = watchesBeside
        return scope
    }
}

extension Ruleset {
    /// The scope to watch for all rules together.
    package var scope: WatchScope {
        let roots = rules.flatMap { rule in
            rule.roots.map { WatchRoot(path: $0, backend: rule.backend, interval: rule.pollInterval) }
        }
        let markers = MarkerIndex(rules)
        return WatchScope(
            roots: roots, isRaw: rules.contains { !$0.events.isDisjoint(with: .raw) },
            hintsFoundDirectories: rules.contains { $0.types.contains(.directory) },
            reaches: { reaches(below: $0) }, takes: { takes($0) || markers.mayHold($0) },
            canMatch: { canMatch(in: $0) || !markers.isEmpty })
    }
}

extension PathBytes {
    /// Whether it equals another path, or continues it with a hyphen.
    fileprivate func continues(_ path: PathBytes) -> Bool {
        let count = path.bytes.count
        return bytes.starts(with: path.bytes) && (bytes.count == count || bytes[count] == UInt8(ascii: "-"))
    }
}
