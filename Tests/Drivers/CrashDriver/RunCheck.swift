import FileEvents
import System
import TestKit

/// A deviation from the expected result.
struct Finding: Hashable {
    var text: String
    /// The affected path, relative to the tree.
    var path: PathBytes?
    /// The affected job.
    var job: String?
}

/// Compares the recorded runs with the files; it does no I/O itself.
struct RunCheck {
    let log: RunLog
    /// The files at the end.
    let tree: [PathBytes: Run.Content]
    /// The files before the first start, which the rules take as known.
    let before: [PathBytes: Run.Content]
    let copies: [PathBytes: Run.Content]
    /// Whether the last commits may be lost, as in a power failure.
    let mayForget: Bool

    /// The results that are still missing and may yet arrive.
    func missing() -> [Finding] { unhandled() + unequal() + uncopied() }

    /// Finds files that a matching rule has not handled with their current content.
    private func unhandled() -> [Finding] {
        var handled: Set<[String]> = []
        for run in log.runs where run.status == 0 {
            if let content = run.content { handled.insert([run.rule, run.path.description, content]) }
        }
        return tree.flatMap { path, content in
            CrashRules.recorded.filter { $0.matches(path) && !handled.contains([$0.name, path.description, content]) }
                .map { Finding(text: "rule '\($0.name)' did not handle \(path) as it is, \(content)", path: path) }
        }
    }

    /// Compares the tree with a mirror built from the reported events in order.
    private func unequal() -> [Finding] {
        var mirror: [PathBytes: Run.Content?] = before.mapValues { $0 }
        for run in log.runs where run.rule == CrashRules.mirror {
            switch run.kind {
            case .deleted: mirror[run.path] = nil
            case .moved:
                if let from = run.from { mirror[from] = nil }
                mirror[run.path] = .some(run.content)
            default: mirror[run.path] = .some(run.content)
            }
        }
        var found: [Finding] = []
        for (path, content) in tree where mirror[path] != content {
            let known = mirror[path].map { $0 ?? "no content" } ?? "nothing"
            found.append(Finding(text: "the mirror has \(known) at \(path), the disk \(content)", path: path))
        }
        // A file that was forgotten is not missed when it is also gone.
        for path in mirror.keys where tree[path] == nil && !mayForget {
            found.append(Finding(text: "the mirror has \(path), which does not exist", path: path))
        }
        return found
    }

    private func uncopied() -> [Finding] {
        tree.filter { copies[$0.key] != $0.value }.map { path, content in
            Finding(text: "the copy of \(path) is \(copies[path] ?? "missing"), the file \(content)", path: path)
        }
    }

    // MARK: Unexpected runs

    /// The numbers of repeated runs, for the summary.
    struct Repeats {
        var interrupted = 0
        var retried = 0
        /// Jobs that repeated the work of another job, where that is allowed.
        var forgotten = 0
    }

    /// Finds runs that should not have happened or whose request was wrong.
    func wrongRuns(_ operations: OperationLog, _ repeats: inout Repeats) -> [Finding] {
        var found: [Finding] = []
        for run in log.runs where run.rule == CrashRules.silent {
            found.append(
                Finding(text: "rule '\(run.rule)' ran for \(run.path), which no process changed", job: run.job))
        }
        for runs in Dictionary(grouping: log.runs.filter { $0.rule != "steps" }, by: \.job).values {
            for (earlier, later) in zip(runs, runs.dropFirst()) {
                found += check(earlier, later, &repeats)
            }
        }
        found += survivors() + doubled(operations, &repeats)
        return found
    }

    /// Checks two consecutive runs of one job.
    private func check(_ earlier: Run, _ later: Run, _ repeats: inout Repeats) -> [Finding] {
        func finding(_ text: String) -> [Finding] {
            [Finding(text: "\(text):\n    \(earlier.line)\n    \(later.line)", path: later.path, job: later.job)]
        }
        if earlier.life == later.life {
            guard earlier.status == 75 else { return finding("a job that had not failed ran again") }
            repeats.retried += 1
            return later.attempt > earlier.attempt || later.isBatch ? [] : finding("an attempt was not counted")
        }
        if !later.isInterrupted, !mayForget {
            guard earlier.status == 75 else { return finding("a job ran again without notice of the interruption") }
            repeats.retried += 1
        } else {
            repeats.interrupted += 1
        }
        guard !mayForget, !later.isBatch else { return [] }
        // A run that a stop interrupts does not count as an attempt.
        let isStopped = log.kills[earlier.life] == nil
        let isCounted = later.attempt > earlier.attempt || (isStopped && later.attempt == earlier.attempt)
        return isCounted ? [] : finding("an attempt was not counted")
    }

    /// Finds programs that outlived the instance of Alight that started them.
    private func survivors() -> [Finding] {
        log.runs.filter { ($0.endLife ?? $0.life) > $0.life }.map { run in
            Finding(
                text: "the program outlived the instance that started it: \(run.line)", path: run.path, job: run.job)
        }
    }

    /// Finds different jobs with the same event for the same file, although it did not change in between.
    private func doubled(_ operations: OperationLog, _ repeats: inout Repeats) -> [Finding] {
        var found: [Finding] = []
        var last: [[String]: Run] = [:]
        for run in log.runs where run.rule != "steps" {
            let key = [run.rule, run.kind.rawValue, run.path.description, run.from?.description ?? "", run.metadata]
            defer { last[key] = run }
            guard let earlier = last[key], earlier.job != run.job else { continue }
            // An operation that was not finished when the first run started may count as well.
            if operations.touched(run.path.description, from: earlier.begin - 1_000_000, to: run.begin) { continue }
            if mayForget {
                repeats.forgotten += 1
                continue
            }
            let text = "two jobs reported the same event, and no operation touched the file in between"
            found.append(
                Finding(text: "\(text):\n    \(earlier.line)\n    \(run.line)", path: run.path, job: run.job))
        }
        return found
    }

    /// Checks the journal at the end, and the jobs that were running at each kill.
    func wrongJobs(_ journal: JournalContents, _ interrupted: [Expectation]) -> [Finding] {
        var found: [Finding] = []
        if journal.integrity != ["ok"] {
            found.append(Finding(text: "the journal is damaged: \(journal.integrity.joined(separator: "; "))"))
        }
        let started = Set(log.runs.map(\.job))
        let done = Set(log.runs.filter { $0.status == 0 }.map(\.job))
        for job in journal.jobs {
            switch job.state {
            case "succeeded" where job.rule != "copies" && !done.contains(job.id):
                let problem = started.contains(job.id) ? "never finished" : "never ran"
                found.append(
                    Finding(text: "job \(job.id) of '\(job.rule)' counts as done, but \(problem)", job: job.id))
            case "succeeded", "skipped": break
            default:
                found.append(
                    Finding(
                        text: "job \(job.id) of '\(job.rule)' is \(job.state) at the end, attempt \(job.attempt)",
                        job: job.id))
            }
        }
        for expected in interrupted { found += expected.findings(log) }
        return found
    }

    /// A job that was running when the program was killed.
    struct Expectation {
        var job: String
        var attempt: Int
        /// The life that ended.
        var life: Int

        /// The next run must report the interruption.
        ///
        /// There need not be one if the file has changed meanwhile.
        func findings(_ log: RunLog) -> [Finding] {
            guard let next = log.runs.first(where: { $0.job == job && $0.life > life }) else { return [] }
            // If the next life was killed before the job ran, its attempt counts as well.
            let isCounted = next.attempt == attempt + 1 || (next.life > life + 1 && next.attempt > attempt)
            if next.isInterrupted, isCounted || next.isBatch { return [] }
            return [
                Finding(
                    text:
                        "job \(job) was in attempt \(attempt) when life \(life) ended; next run:\n    \(next.line)",
                    path: next.path, job: job)
            ]
        }
    }
}
