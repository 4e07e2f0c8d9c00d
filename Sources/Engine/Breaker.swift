package import Rules

/// Slows a rule down whose attempts all fail: one job at a time, with growing pauses, until one succeeds.
///
/// What fails is then not each file but something they share, a server or a disk.
/// Jobs that are not begun spend no attempt.
///
/// Pure: the present and chance are passed in.
package struct Breaker: Sendable {
    /// What an attempt says of the rule's action.
    package enum Sign: Sendable {
        case works, fails
        /// Its program could not be started at all.
        case cannotStart
        /// Nothing, as of a file that was gone before the action began.
        case nothing
    }

    package enum Change: Sendable, Hashable {
        /// So many attempts in a row have failed.
        case opened(failures: Int, cannotStart: Bool)
        case closed
    }

    /// So many jobs have to fail in a row.
    package static let limit = 5
    /// So many, when the program can't be started: the next one won't be either.
    package static let startLimit = 3
    /// The pauses between two jobs that are tried.
    package static let pauses = RetryPolicy(attempts: .max, delay: .seconds(1), maximumDelay: .seconds(60))

    /// The jobs that have failed since one succeeded; several failures of one file say nothing of others.
    private var failed: Set<JobID> = []
    /// How many programs in a row could not be started.
    private var unstarted: Set<JobID> = []
    /// The job that is tried.
    private var probe: JobID?
    private var probes = 0
    /// When the next job may be tried; nil while all may run.
    package private(set) var rests: ContinuousClock.Instant?

    package init() {}

    package var isOpen: Bool { rests != nil }

    /// Whether another attempt may begin beside those that run.
    package func mayBegin(running: Int, at now: ContinuousClock.Instant) -> Bool {
        guard let rests else { return true }
        return running == 0 && rests <= now
    }

    /// Notes that an attempt begins, by its first job.
    package mutating func begin(_ job: JobID) {
        if isOpen { probe = job }
    }

    /// Notes what an attempt says, by its first job.
    ///
    /// - Parameters:
    ///   - sign: What it says.
    ///   - job: Its first job.
    ///   - random: 0 to 1, for the next pause.
    ///   - now: The present.
    /// - Returns: What becomes of the rule by that; nil when nothing does.
    package mutating func note(
        _ sign: Sign, of job: JobID, random: Double, at now: ContinuousClock.Instant
    ) -> Change? {
        let wasProbe = probe == job
        if wasProbe { probe = nil }
        switch sign {
        case .nothing: return nil
        case .works:
            let wasOpen = isOpen
            self = Breaker()
            return wasOpen ? .closed : nil
        case .fails, .cannotStart:
            guard !isOpen else {
                // What began before it opened is no news.
                if wasProbe { rest(random, at: now) }
                return nil
            }
            failed.insert(job)
            if sign == .cannotStart { unstarted.insert(job) } else { unstarted = [] }
            let cannotStart = unstarted.count >= Self.startLimit
            guard failed.count >= Self.limit || cannotStart else { return nil }
            rest(random, at: now)
            return .opened(failures: cannotStart ? unstarted.count : failed.count, cannotStart: cannotStart)
        }
    }

    private mutating func rest(_ random: Double, at now: ContinuousClock.Instant) {
        probes += 1
        rests = now + Self.pauses.pause(after: min(probes, 32), random: random)
    }
}
