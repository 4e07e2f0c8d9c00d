import FileEvents
package import Rules
package import System

/// Slows a rule down whose action does not work: one job at a time, with growing pauses, until one succeeds.
///
/// That is so when the program cannot start, or when the attempts at different files all fail: the cause is then something
/// they share, a server or a disk. An outcome that is about the file alone does not count, see ``Outcome/isAboutFile``.
/// Jobs that are not begun spend no attempt.
///
/// Pure: the present and chance are passed in.
package struct Breaker: Sendable {
    /// What an attempt says of the rule's action.
    package enum Sign: Sendable {
        case works, fails
        /// A file that had failed before fails again, which is no news of other files.
        case failsAgain
        /// Its program could not be started at all.
        case cannotStart
        /// Nothing: the file was gone before the action began, or the outcome is about the file alone.
        case nothing
    }

    package enum Change: Sendable, Hashable {
        /// So many attempts in a row have failed.
        case opened(failures: Int, cannotStart: Bool)
        case closed
    }

    /// So many files have to fail in a row.
    package static let limit = 5
    /// So many, when the program can't be started: the next one won't be either.
    package static let startLimit = 3
    /// The pauses between two jobs that are tried.
    package static let pauses = RetryPolicy(attempts: .max, delay: .seconds(1), maximumDelay: .seconds(60))

    /// The files that have failed since one succeeded; several failures of one say nothing of others.
    private var failed: Set<PathBytes> = []
    /// The files in a row for which the program could not be started.
    private var unstarted: Set<PathBytes> = []
    /// The file for which the action is tried.
    private var probe: PathBytes?
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

    /// Notes that an attempt begins, by its first file.
    package mutating func begin(_ file: PathBytes) {
        if isOpen { probe = file }
    }

    /// Notes what an attempt says, by its first file.
    ///
    /// - Parameters:
    ///   - sign: What it says.
    ///   - file: Its first file.
    ///   - random: 0 to 1, for the next pause.
    ///   - now: The present.
    /// - Returns: What becomes of the rule by that; nil when nothing does.
    package mutating func note(
        _ sign: Sign, of file: PathBytes, random: Double, at now: ContinuousClock.Instant
    ) -> Change? {
        let wasProbe = probe == file
        if wasProbe { probe = nil }
        switch sign {
        case .nothing: return nil
        case .works:
            let wasOpen = isOpen
            self = Breaker()
            return wasOpen ? .closed : nil
        case .fails, .failsAgain, .cannotStart:
            guard !isOpen else {
                // What began before it opened is no news.
                if wasProbe { rest(random, at: now) }
                return nil
            }
            if sign == .failsAgain { return nil }
            failed.insert(file)
            if sign == .cannotStart { unstarted.insert(file) } else { unstarted = [] }
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
