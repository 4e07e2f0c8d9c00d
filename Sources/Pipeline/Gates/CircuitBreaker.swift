import PluginProtocol
package import Rules
package import System

/// Slows down a rule whose action fails: one job at a time, with growing pauses, until one succeeds.
///
/// It opens when the program cannot start, or when the attempts at different files all fail: the cause is then shared
/// by them, such as a server or a disk. An outcome that concerns only the file does not count, see
/// ``Outcome/isAboutFile``. Jobs that are not started use no attempt.
///
/// Pure: the current time and the random number are passed in.
package struct CircuitBreaker: Sendable {
    /// The significance of an attempt for the rule's action.
    package enum Sign: Sendable {
        case works, fails
        /// A file that had failed before fails again, which is not significant for other files.
        case failsAgain
        /// The program could not be started.
        case cannotStart
        /// Not significant: the file was gone before the action started, or the outcome concerns only the file.
        case nothing
    }

    package enum Change: Sendable, Hashable {
        /// The given number of attempts in a row have failed.
        case opened(failures: Int, cannotStart: Bool)
        case closed
    }

    /// The number of files that have to fail in a row.
    package static let limit = 5
    /// The number of files if the program can't be started: the next one will fail as well.
    package static let startLimit = 3
    /// The pauses between two probes.
    package static let pauses = RetryPolicy(attempts: .max, delay: .seconds(1), maximumDelay: .seconds(60))

    /// The files that have failed since the last success; several failures of one file count once.
    private var failed: Set<PathBytes> = []
    /// The files in a row for which the program could not be started.
    private var unstarted: Set<PathBytes> = []
    /// The file with which the action is probed.
    private var probe: PathBytes?
    private var probes = 0
    /// The time of the next probe; nil while all jobs may run.
    package private(set) var nextProbe: ContinuousClock.Instant?

    package init() {}

    package var isOpen: Bool { nextProbe != nil }

    /// Whether another attempt may start in addition to the running ones.
    package func canStart(running: Int, at now: ContinuousClock.Instant) -> Bool {
        guard let nextProbe else { return true }
        return running == 0 && nextProbe <= now
    }

    /// Records the start of an attempt, by its first file.
    package mutating func start(_ file: PathBytes) {
        if isOpen { probe = file }
    }

    /// Records the result of an attempt, by its first file.
    ///
    /// - Parameters:
    ///   - sign: The significance of the result.
    ///   - file: The first file of the attempt.
    ///   - random: A number from 0 to 1, for the next pause.
    ///   - now: The current time.
    /// - Returns: The resulting change of the rule; nil if there is none.
    package mutating func record(
        _ sign: Sign, of file: PathBytes, random: @autoclosure () -> Double, at now: ContinuousClock.Instant
    ) -> Change? {
        let wasProbe = probe == file
        if wasProbe { probe = nil }
        switch sign {
        case .nothing: return nil
        case .works:
            let wasOpen = isOpen
            self = CircuitBreaker()
            return wasOpen ? .closed : nil
        case .fails, .failsAgain, .cannotStart:
            guard !isOpen else {
                // Attempts that started before it opened are not significant.
                if wasProbe { backOff(random(), at: now) }
                return nil
            }
            if sign == .failsAgain { return nil }
            failed.insert(file)
            if sign == .cannotStart { unstarted.insert(file) } else { unstarted = [] }
            let cannotStart = unstarted.count >= Self.startLimit
            guard failed.count >= Self.limit || cannotStart else { return nil }
            backOff(random(), at: now)
            return .opened(failures: cannotStart ? unstarted.count : failed.count, cannotStart: cannotStart)
        }
    }

    private mutating func backOff(_ random: Double, at now: ContinuousClock.Instant) {
        probes += 1
        nextProbe = now + Self.pauses.pause(after: min(probes, 32), random: random)
    }
}
