import FileEvents
import Jobs
import Reconciling
import Records
import Rules
import Running
import System

/// The views of the rules at the start of a run, or after a reload.
struct RuleStarts {
    var views: [View] = []
    /// The indexes of the rules that match other paths than in their last run.
    var reselected: [Int] = []
    /// The indexes of the cleaning rules that run for the first time and ignore existing files.
    var ignoring: [Int] = []

    /// Sets the running rules in the store, and creates their views.
    ///
    /// - Parameters:
    ///   - ruleset: The rules.
    ///   - store: The store.
    ///   - options: The modes of the run.
    ///   - running: The ids of the rules that ran until now, and miss nothing.
    ///   - host: The clocks.
    init(_ ruleset: Ruleset, _ store: any Journal, _ options: EngineOptions, running: Set<RuleID> = [], on host: Host) {
        // If this run is killed before everything has been compared, the times of files show what has changed since.
        let stored = store.register(ruleset.records, isWatching: options.isWatching, at: host.clock.fileTime())
        let last = store.stored.lastCommit
        for (index, (rule, stored)) in zip(ruleset.rules, stored).enumerated() {
            let scan = rule.initialScan(
                stored.start, isOnce: options.isOnce, isRunning: running.contains(stored.id), last: last)
            views.append(View(rule, id: stored.id, initialScan: scan, isOnce: options.isOnce))
            if case .reselected = stored.start { reselected.append(index) }
            if case .ignore = scan, rule.isCleaning { ignoring.append(index) }
        }
    }
}

extension View {
    /// Creates the view of a rule.
    init(_ rule: Rule, id: RuleID, initialScan: InitialScanPolicy, isOnce: Bool) {
        self.init(
            id: id, filter: rule.filter, types: rule.types, mask: rule.events, settle: rule.settle,
            initialScan: initialScan)
        storesDuePaths = !rule.catchUp || rule.needsWriter
        isPolled = rule.backend == .poll
        mayChangeInput = rule.ownWrites == .ignore && (rule.actions + rule.onFailure).contains(where: \.isProgram)
        whileBusy = rule.whileBusy
        tail = rule.tail.map { tail in
            // A run that handles the existing files and exits waits for no further text.
            let lineWait = isOnce ? .zero : tail.maximumWait
            return Tail(maximumBytes: tail.maximumBytes, lineWait: tail.hasLines ? lineWait : nil)
        }
    }
}

extension Rule {
    /// Whether the rule is there to remove files: it deletes them, or removes them once they are old.
    fileprivate var isCleaning: Bool {
        removesInput
            && (ready?.minimumAge != nil || condition?.ages.isEmpty == false
                || actions.contains { ["delete", "trash"].contains($0.name) })
    }

    /// Returns the treatment of existing files.
    fileprivate func initialScan(
        _ start: RuleStart, isOnce: Bool, isRunning: Bool, last: Timestamp?
    ) -> InitialScanPolicy {
        let isWanted = existing.map { $0 == .process } ?? isOnce
        switch start {
        case .fresh: return isWanted ? .report : .ignore
        case .unfinished(let started): return .compare(since: isWanted ? nil : started)
        case _ where !catchUp && !isOnce && !isRunning: return .replace(since: last)
        case .resumed: return .compare(since: nil)
        case .reselected(let last, let selection):
            let (filter, types) = matching(selection)
            return .compare(
                since: isOnce && isWanted ? nil : last, formerly: PathSelection(filter: filter, types: types))
        }
    }
}
