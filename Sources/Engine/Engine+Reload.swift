import FileEvents
import FileWatching
import Journaling
import Reconciling
import Rules
import Settling

// Other rules, while everything goes on.
//
// The watcher comes first: it watches for the new rules as well, says so, and lists
// what is there as at a start. From that word on the reconciler serves the new rules,
// as at a start too, but for what was waiting in it. So nothing can get lost in between
// that would not get lost by an end and a start, and those lose nothing.
extension Engine {
    /// The rules that are to run next.
    struct NextRules {
        var ruleset: Ruleset
        var ignored: [PathBytes]
        /// By which the watcher says that it watches for them.
        var number: Int
    }

    /// Sees to the roots of other rules, and has the watcher watch for them.
    func prepare(_ ruleset: Ruleset, ignored: [PathBytes], _ watcher: any HintProducer, _ state: inout RunState) {
        guard state.phase == .running, !options.isOnce else { return }
        do {
            try ruleset.prepareRoots(isDry: options.isDry, in: host.fileSystem)
        } catch {
            report(.notReloaded(error))
            return
        }
        state.reloads += 1
        state.next.append(NextRules(ruleset: ruleset, ignored: ignored, number: state.reloads))
        listen(for: ruleset, &state.authors)
        watcher.change(to: scope(of: ruleset, state.authors), number: state.reloads)
    }

    /// The rules for which the watcher has begun to watch, and what it reported before.
    ///
    /// Those that were overtaken run for a moment, too: what is listed for them must not
    /// be taken for something that the rules before them found at their own start.
    func takeNext(
        _ state: inout RunState, _ reports: inout [WatchReport]
    ) -> (NextRules, earlier: [WatchReport])? {
        for (place, report) in reports.enumerated() {
            guard case .changed(let number) = report,
                let index = state.next.firstIndex(where: { $0.number == number })
            else { continue }
            let earlier = Array(reports[..<place])
            reports.removeFirst(place + 1)
            let next = state.next[index]
            state.next.removeFirst(index + 1)
            return (next, earlier)
        }
        return nil
    }

    /// Runs other rules, now that the watcher watches for them.
    func change(
        to next: NextRules, _ reconciler: inout Reconciler, _ dispatcher: inout Dispatcher, _ state: inout RunState,
        at now: ContinuousClock.Instant
    ) {
        let running = Set(dispatcher.ruleset.rules.map(\.name))
        let waiting = journal.waiting
        let (views, reselected) = next.ruleset.views(beginning: journal, isOnce: false, goingOn: running, host.clock)
        reconciler.change(to: views, at: now)
        state.reselected = reselected
        dispatcher.change(to: next.ruleset, at: now)
        if dispatcher.pauses != journal.pauses { journal.notePauses(dispatcher.pauses) }
        monitor.note(next.ruleset)
        monitor.note(dispatcher.pauses)
        for (rule, jobs) in journal.waiting.sorted(by: { $0.key < $1.key }) where waiting[rule] != jobs {
            report(.waiting(rule: rule, jobs: jobs))
        }
        noteMounts(of: next.ruleset, keeping: away)
        state.ignored = next.ignored
        let asking = [next.ruleset] + state.next.map(\.ruleset)
        if !asking.contains(where: \.needsAuthors) { state.authors = .none }
        state.isReady = false
        state.hasStarted = false
    }
}
