import FileEvents
import Glibc
import Journaling
import Rules
import Settling
import Synchronization

/// Has a running Alight run a rule for files, and follows the jobs in its journal until they have ended.
struct JobFollower {
    let reader: JournalReader
    let rule: String
    let progress: ApplyProgress
    /// Set when the person has seen enough.
    let isLeft: StopCount

    /// How the following ended.
    struct Result {
        var failed = 0
        /// Files whose jobs have not ended.
        var open = 0
        /// Files that have no job of their own.
        var unknown = 0
        /// Whether no Alight runs any more.
        var isAlone = false
    }

    /// So many requests are put into the journal at once, that its Alight is never held up for long.
    private static let portion = 1000
    /// Between two looks at the journal.
    private static let pause: useconds_t = 100_000
    /// So many jobs are asked for at once.
    private static let mostAsked = 5000

    /// Asks for the files, and follows.
    func run(_ paths: [PathBytes]) throws(JournalFault) -> Result {
        let requests = paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: rule, path: $0) }
        var last: Int64 = 0
        var rest = requests[...]
        while !rest.isEmpty {
            last = try reader.request(rest.prefix(Self.portion).map { .apply($0) })
            rest = rest.dropFirst(Self.portion)
        }
        return try follow(requests, last)
    }

    private func follow(_ requests: [JobRequest], _ last: Int64) throws(JournalFault) -> Result {
        var open = requests
        var result = Result()
        while !open.isEmpty, isLeft.count == 0 {
            // Asked before the jobs: what is taken by then has its jobs by then.
            let isTaken = try reader.openRequests(upTo: last) == 0
            let isAlone = !reader.isInUse
            var states: [JobID: JobState] = [:]
            var rest = open[...]
            while !rest.isEmpty {
                states.merge(try reader.states(of: rest.prefix(Self.mostAsked).map(\.id))) { _, new in new }
                rest = rest.dropFirst(Self.mostAsked)
            }
            var still: [JobRequest] = []
            for request in open {
                switch states[request.id] {
                case .pending, .running: still.append(request)
                case .succeeded, .skipped: break
                case .dead:
                    result.failed += 1
                    try sayFailure(request.id)
                case nil where isTaken:
                    // A job that waited has taken it in, and is the one to be followed.
                    if let heir = try reader.newest(rule: rule, path: request.path), heir != request.id {
                        still.append(JobRequest(id: heir, rule: rule, path: request.path))
                    } else {
                        result.unknown += 1
                    }
                case nil: still.append(request)
                }
            }
            open = still
            progress.note(done: requests.count - open.count, failed: result.failed)
            if isAlone, !open.isEmpty {
                result.isAlone = true
                break
            }
            if !open.isEmpty { usleep(Self.pause) }
        }
        result.open = open.count
        return result
    }

    private func sayFailure(_ id: JobID) throws(JournalFault) {
        guard let job = try reader.details(of: id)?.job else { return }
        progress.say(
            "\(job.id) \(Display.text(rule)): \(Display.path(job.path)): failed: \(Display.text(job.message ?? ""))")
    }
}
