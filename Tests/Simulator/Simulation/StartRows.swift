import Engine
import FileEvents
import Monitoring
import Rules
import System

/// The start rows of a run: the jobs that the journal has as running.
///
/// Two invariants hold after each step:
///
/// - No path is named by two start rows. (The actions of simulated rules do not share files; the jobs of a batch name
///   different paths.)
/// - An action receives `interrupted` only if one of its paths is in doubt for its rule. A start row puts all paths
///   that it names in doubt. It leaves no doubt if it is taken back, or if its job succeeds undisturbed: nothing has
///   changed a file meanwhile, not even the action; the file is gone, or as it was offered, with its change time; no step
///   was finished in an earlier attempt; and the job was not a move from a path in doubt.
struct StartRows {
    private struct Row {
        var job: Job
        var paths: [PathBytes] { job.event.paths }
        /// The number of changes of files at the start; nil if hints of earlier changes may still arrive.
        var changes: Int?
    }

    private var rows: [JobID: Row] = [:]
    /// The paths in doubt, by rule.
    private var doubtful: [String: Set<PathBytes>] = [:]
    /// The last reported state of each job.
    private var reported: [JobID: JobState] = [:]

    /// Records the report of an attempt.
    mutating func record(_ attempt: AttemptReport) { reported[attempt.job] = attempt.state }

    /// Records a kill: all running actions end.
    mutating func recordKill() {
        for row in rows.values { doubtful[row.job.rule, default: []].formUnion(row.paths) }
        rows = [:]
    }

    /// Compares the start rows with those of the journal.
    ///
    /// - Parameters:
    ///   - running: The running jobs of the journal.
    ///   - world: The files.
    ///   - isComplete: Whether no hint of earlier changes can still arrive.
    /// - Returns: The error; nil if there is none.
    mutating func update(_ running: [Job], in world: World, isComplete: Bool) -> String? {
        let ids = Set(running.map(\.id))
        // One whose attempt was reported has ended too: it was started again at once.
        for (id, row) in rows where !ids.contains(id) || reported[id] != nil {
            rows[id] = nil
            let isUndisturbed = row.changes == world.changes && Self.isAsOffered(row.job, in: world)
            end(row, reported.removeValue(forKey: id), isUndisturbed: isUndisturbed)
        }
        var owners: [PathBytes: JobID] = [:]
        for job in running {
            if rows[job.id] == nil {
                reported[job.id] = nil
                rows[job.id] = Row(job: job, changes: isComplete && job.steps.isEmpty ? world.changes : nil)
            }
            for path in job.event.paths {
                guard owners.updateValue(job.id, forKey: path) == nil else { return "two start rows name \(path)" }
            }
        }
        return nil
    }

    private mutating func end(_ row: Row, _ state: JobState?, isUndisturbed: Bool) {
        guard let state else { return }
        let isInDoubt = row.paths.contains { doubtful[row.job.rule]?.contains($0) ?? false }
        if state == .succeeded, isUndisturbed, row.paths.count == 1 || !isInDoubt {
            doubtful[row.job.rule]?.subtract(row.paths)
        } else {
            doubtful[row.job.rule, default: []].formUnion(row.paths)
        }
    }

    private static func isAsOffered(_ job: Job, in world: World) -> Bool {
        guard let now = world.snapshot(job.event.path) else { return true }
        let offered = job.event.snapshot
        return job.event.kind != .deleted && now.hasSameContent(as: offered) && now.mode == offered.mode
            && now.links == offered.links && now.changed == offered.changed
    }

    /// Whether the journal had no start row when it was last compared.
    var isEmpty: Bool { rows.isEmpty }

    /// Returns the error if an action receives `interrupted` without a doubt about its paths.
    func checkInterrupted(_ job: Job) -> String? {
        guard job.isInterrupted, doubtful[job.rule]?.isDisjoint(with: job.event.paths) ?? true else { return nil }
        return "\(job.event.kind) \(job.event.path) is interrupted, and no start row left it in doubt"
    }
}
