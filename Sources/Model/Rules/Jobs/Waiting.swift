package import System

/// The reason why a pending job does not start yet although nothing failed; waiting does not count as an attempt.
///
/// All messages are created here, so that each command shows the same one.
package struct Waiting: Sendable, Hashable {
    package enum Cause: String, Sendable, Hashable, CaseIterable {
        /// A user has paused the rule, or all rules.
        case paused
        /// The attempts of the rule fail.
        case failing
        /// The time is outside the rule's hours.
        case window
        /// The files of a batch are collected.
        case batch
        /// An action uses the file.
        case busy
        /// The rule has run too often for the file.
        case loop
        /// The file does not have the age that `where` requires.
        case condition = "where"
        /// The file, or a condition on its content, cannot be read.
        case unreadable
        /// The file is too young, or too small.
        case age = "min-age"
        case size = "min-size"
        /// The marker file of `done_file` does not exist.
        case doneFile = "done-file"
        /// A command reported that the file is not ready.
        case command = "not-ready"
        /// Files of the group are missing, or have not settled.
        case group
        /// A rule with a higher priority is due for the file.
        case precedence = "priority"
        /// It ran for the file a short time ago.
        case cooldown

        /// Whether it ends after a short time by itself, so that a run that exits when idle waits for it.
        package var passesSoon: Bool {
            switch self {
            case .age, .precedence, .cooldown, .busy, .loop: true
            default: false
            }
        }
    }

    package var cause: Cause
    /// A message of one line.
    package var message: String

    package init(_ cause: Cause, _ message: String) { (self.cause, self.message) = (cause, message) }
}

// The messages of waits that several commands compute.
extension Waiting {
    package static let paused = Waiting(.paused, "the rule is paused; resume it with 'alight resume'")

    /// Creates the wait while the attempts of the rule fail.
    package static func failing(until end: Timestamp?, _ clock: LocalClock) -> Waiting {
        let next = end.map { ", the next one at \($0.local(clock))" } ?? ""
        return Waiting(.failing, "the attempts of the rule fail, and run one at a time\(next)")
    }

    package static func window(opens: Timestamp, _ clock: LocalClock) -> Waiting {
        Waiting(.window, "its window opens at \(opens.local(clock))")
    }

    package static func batch(until end: Timestamp, _ clock: LocalClock) -> Waiting {
        Waiting(.batch, "its batch is collected until \(end.local(clock)) ('batch')")
    }

    package static func cooldown(until end: Timestamp, _ clock: LocalClock) -> Waiting {
        Waiting(.cooldown, "it ran a short time ago; its 'cooldown' ends at \(end.local(clock))")
    }

    package static func loop(until end: Timestamp, _ clock: LocalClock) -> Waiting {
        Waiting(.loop, "the rule has run too often for it, and waits until \(end.local(clock))")
    }

    /// Creates the wait for the age that `where` requires.
    package static func age(until end: Timestamp, _ clock: LocalClock) -> Waiting {
        Waiting(.condition, "'where' matches at \(end.local(clock)), when the file is old enough")
    }

    /// Creates the wait for the minimum age of `ready`.
    package static func minimumAge(until end: Timestamp, _ clock: LocalClock) -> Waiting {
        Waiting(.age, "it reaches its minimum age at \(end.local(clock)) ('ready')")
    }

    package static let busy = Waiting(.busy, "an action runs for it")

    /// Creates the wait until a file can be read by which a key of the rule is evaluated.
    package static func unreadable(_ key: String, _ reason: String) -> Waiting {
        Waiting(.unreadable, "'\(key)' cannot be evaluated: \(reason)")
    }

    /// Creates the wait for the missing files of a set.
    package static func set(missing kinds: [String]) -> Waiting {
        Waiting(.group, "its set is missing \(kinds.map { "'\($0)'" }.joined(separator: ", "))")
    }
}

extension Timestamp {
    /// `2026-11-21 22:00`, with seconds unless they are 0, in local time.
    package func local(_ clock: LocalClock) -> String {
        let wall = Timestamp(seconds: seconds + clock.offset(seconds), nanoseconds: 0).description
        return String(wall.prefix(wall.dropFirst(16).hasPrefix(":00") ? 16 : 19)).replacing("T", with: " ")
    }
}
