package import FileEvents
package import Rules
import Synchronization
package import System

/// Finds rules that run again and again for what actions have written, under ever new names.
///
/// The depth of a file is the number of actions, one after the other, that have led to it: 0 for a file of another
/// process, and one more than that of its input for an output of an action. An output is known if the action reports
/// it. Of a program that reports none, it is recognized by its name: created while the program ran, longer than the
/// name of the input, and with the stem of the input in it. A path that is written repeatedly keeps its depth;
/// ``LoopGuard`` counts the runs for one path.
///
/// Callable on any thread.
package final class OutputChains: Sendable {
    /// The maximum depth of a file for which a rule runs.
    package static let limit = 20
    /// The number of runs that are remembered.
    private static let mostRuns = 64
    /// The kernel's clock for birth times may be behind by one tick.
    private static let tick: Int64 = 10_000_000

    private struct Run {
        var job: JobID
        var name: PathBytes
        var depth: Int
        var started: Int64
        var ended = Int64.max
    }

    private struct Record {
        var depths = LatestPaths<Int>(capacity: 4_096)
        /// The latest runs of programs, the oldest one first.
        var runs: [Run] = []

        mutating func record(_ path: PathBytes, _ depth: Int) {
            if depths[path] == nil { depths.store(depth, for: path) }
        }

        func depth(of event: FileEvent) -> Int {
            if let known = depths[event.path] { return known }
            let birth = event.snapshot.identity.birth
            guard !runs.isEmpty, event.kind == .created || event.kind == .moved, birth != 0 else { return 0 }
            let name = event.path.lastComponent
            return runs.reduce(0) { depth, run in
                guard run.depth >= depth, run.started - OutputChains.tick <= birth, birth <= run.ended,
                    OutputChains.isDerived(name, from: run.name)
                else { return depth }
                return run.depth + 1
            }
        }
    }

    private let record = Mutex(Record())

    package init() {}

    /// Returns the depth of the file of an event.
    package func depth(of event: FileEvent) -> Int { record.withLock { $0.depth(of: event) } }

    /// Whether a name contains the stem of another one, and is longer.
    private static func isDerived(_ name: ArraySlice<UInt8>, from input: PathBytes) -> Bool {
        guard name.count > input.bytes.count else { return false }
        let dot = input.bytes.lastIndex(of: .dot).flatMap { $0 > 0 ? $0 : nil } ?? input.bytes.count
        let stem = input.bytes[..<dot]
        return (name.startIndex...name.endIndex - stem.count).contains { name[$0...].starts(with: stem) }
    }

    /// Records that a program starts for a file of the given depth.
    package func start(_ job: JobID, _ path: PathBytes, depth: Int, at now: Timestamp) {
        let run = Run(job: job, name: PathBytes(path.lastComponent), depth: depth, started: now.wholeNanoseconds)
        record.withLock { record in
            if record.runs.count >= Self.mostRuns {
                record.runs.remove(at: record.runs.firstIndex { $0.ended < .max } ?? 0)
            }
            record.runs.append(run)
            if depth > 0 { record.record(path, depth) }
        }
    }

    /// Records that a program has ended.
    package func end(_ job: JobID, at now: Timestamp) {
        record.withLock { record in
            guard let index = record.runs.lastIndex(where: { $0.job == job }) else { return }
            record.runs[index].ended = now.wholeNanoseconds
        }
    }

    /// Records a path that an action for a file writes or has written.
    package func add(_ output: PathBytes, of path: PathBytes) {
        guard output != path else { return }
        record.withLock { $0.record(output, ($0.depths[path] ?? 0) + 1) }
    }
}
