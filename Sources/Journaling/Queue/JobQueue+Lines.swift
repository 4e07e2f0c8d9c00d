import FileEvents
import HeapModule
import Rules

// Jobs that are run for themselves: of one path one after the other, and never merged.
extension JobQueue {
    /// Gives a job its place in the line of its path.
    ///
    /// - Returns: Whether it is nobody's turn before; also for a job that stands in no line.
    mutating func stand(_ job: Job, _ sequence: UInt64) -> Bool {
        guard job.isAlone else { return true }
        var line = lines[job.rule]?[job.event.path] ?? []
        if !line.contains(job.id) {
            // Running jobs come back last, and before those that came later.
            let place = line.firstIndex { places[$0].map { $0.sequence > sequence } ?? false } ?? line.endIndex
            line.insert(job.id, at: place)
            lines[job.rule, default: [:]][job.event.path] = line
        }
        return line.first == job.id
    }

    /// Whether no older job of its path has to end before the job.
    func hasTurn(_ job: Job) -> Bool { !job.isAlone || lines[job.rule]?[job.event.path]?.first == job.id }

    /// Lets the next job have its turn when one is over that is run for itself.
    mutating func leaveLine(_ job: Job) {
        guard job.isAlone, var line = lines[job.rule]?[job.event.path] else { return }
        let wasFirst = line.first == job.id
        line.removeAll { $0 == job.id }
        lines[job.rule]?[job.event.path] = line.isEmpty ? nil : line
        guard wasFirst, let next = line.first, let place = places[next] else { return }
        lanes[job.rule, default: JobLane()].resting.insert(place)
    }
}
