package import FileEvents
package import PluginProtocol
import Synchronization
package import System

/// The id of a job: 26 characters that sort by the time of creation (a ULID).
///
/// A ULID is stored as its 128 bits, so that many jobs need little memory, and comparing them needs none.
package struct JobID: Sendable, Hashable, CustomStringConvertible {
    private enum Form: Sendable, Hashable {
        case bits(high: UInt64, low: UInt64)
        /// A string that is not a ULID, as it was written.
        case text(String)
    }

    private let form: Form

    /// Creates an id from the milliseconds since 1970 (48 bits) and 80 random bits.
    package init(now: Timestamp, random: (UInt64, UInt16)) {
        let milliseconds = UInt64(max(0, now.seconds)) * 1000 + UInt64(now.nanoseconds / 1_000_000)
        form = .bits(high: milliseconds << 16 | UInt64(random.1), low: random.0)
    }

    package init(_ text: String) { form = Self.bits(of: text) ?? .text(text) }

    package var description: String {
        switch form {
        case .text(let text): text
        case .bits(var high, var low):
            String(unsafeUninitializedCapacity: Self.length) { characters in
                Self.alphabet.withUTF8Buffer { alphabet in
                    for index in (0..<Self.length).reversed() {
                        characters[index] = alphabet[Int(low & 31)]
                        low = low >> 5 | high << 59
                        high >>= 5
                    }
                    return Self.length
                }
            }
        }
    }

    /// Returns the bits; nil for a string that is not in the canonical form.
    private static func bits(of text: String) -> Form? {
        var (high, low): (UInt64, UInt64) = (0, 0)
        var count = 0
        for character in text.utf8 {
            let location = alphabet.withUTF8Buffer { $0.firstIndex(of: character) }
            guard count < length, let value = location, count > 0 || value < 8 else { return nil }
            high = high << 5 | low >> 59
            low = low << 5 | UInt64(value)
            count += 1
        }
        return count == length ? .bits(high: high, low: low) : nil
    }

    private static let length = 26
    private static let alphabet: StaticString = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

    /// Whether it has the form of ids of this type, so that it is safe as a part of other names.
    package var isWellFormed: Bool {
        switch form {
        case .bits: true
        case .text(let text):
            text.utf8.count == Self.length && text.utf8.allSatisfy { $0.isDigit || $0.isUppercaseLetter }
        }
    }

    private static let source = Mutex(JobIDSource())

    /// Creates a unique id from a shared source.
    package init(now: Timestamp) { self = Self.source.withLock { $0.next(now: now) } }
}

/// A generator of job ids.
///
/// The ids of one millisecond sort by the order of creation, as long as no other time comes in between. So jobs that
/// are created together are adjacent in the journal, in the order in which they run.
package struct JobIDSource: Sendable {
    private var milliseconds: Int64 = -1
    private var low: UInt64 = 0
    /// Below the maximum, so that the ids of one millisecond do not wrap around.
    private var high = UInt16.random(in: 0..<UInt16.max)

    package init() {}

    /// Creates a unique id.
    package mutating func next(now: Timestamp) -> JobID {
        let milliseconds = max(0, now.seconds) * 1000 + Int64(now.nanoseconds / 1_000_000)
        if milliseconds == self.milliseconds {
            low &+= 1
            if low == 0 { high &+= 1 }
        } else {
            self.milliseconds = milliseconds
            low = .random(in: 0...UInt64.max)
        }
        return JobID(now: now, random: (low, high))
    }
}

/// One run of a rule for one path.
package struct Job: Sendable, Hashable {
    package var id: JobID
    /// The rule's name.
    package var rule: String
    package var event: FileEvent {
        _read { yield boxedEvent.value }
        set { boxedEvent = Box(newValue) }
    }
    /// The storage of ``event``, which makes copies of the job cheap.
    private var boxedEvent: Box<FileEvent>
    /// Its place in the order of jobs; the reconciler knows its offer by this number.
    package var number: UInt64
    /// The schedule of a job that was stored when its event happened; nil if the event is a difference between the
    /// ledger and the disk, and the reconciler says when it is due.
    package var schedule: Schedule?
    /// The number of attempts so far, including the running one.
    package var attempt: Int
    /// Whether an earlier run may have done part of the work: it was stopped or has crashed, or the file was changed
    /// meanwhile.
    package var isInterrupted: Bool
    /// Whether an action may have worked on the file before, in this job or in one that has failed.
    package var mayHaveRunBefore = false
    package var previous: PreviousAttempt?
    /// The finished steps of `action`; the next attempt resumes after them.
    package var steps: [FinishedStep] = []
    /// The final failure, while `on_failure` runs for it.
    package var failure: FinalFailure? {
        get { finalFailure?.value }
        set { finalFailure = newValue.map(Box.init) }
    }
    /// The storage of ``failure``, separate because nearly all jobs have none.
    private var finalFailure: Box<FinalFailure>?
    /// The reason why a pending job does not start yet.
    package var waiting: Waiting?
    /// Whether an attempt at it was reported in this run of the program.
    package var isReported = false
    /// The time since which a running job has been due.
    package var due: ContinuousClock.Instant?
    /// Whether a finished step that the rule no longer has has removed the file.
    package var hasLostInput = false

    package init(id: JobID, rule: String, event: FileEvent, number: UInt64 = 0, schedule: Schedule? = nil) {
        (self.id, self.rule, self.number, self.schedule) = (id, rule, number, schedule)
        boxedEvent = Box(event)
        attempt = 0
        isInterrupted = false
    }

    package var isStored: Bool { schedule != nil }

    /// The finished steps of the running list: `on_failure` after the final failure, otherwise `action`.
    package var finishedSteps: [FinishedStep] {
        get { failure?.steps ?? steps }
        set { if failure == nil { steps = newValue } else { failure?.steps = newValue } }
    }
}

extension Job {
    /// The times at which a stored job runs: first in, first out for each path.
    package struct Schedule: Sendable, Hashable {
        package var due: ContinuousClock.Instant
        package var isRunning: Bool
        /// The last position of the due paths that are leased before it.
        package var after: UInt64

        package init(due: ContinuousClock.Instant, isRunning: Bool = false, after: UInt64 = 0) {
            (self.due, self.isRunning, self.after) = (due, isRunning, after)
        }

        /// The time of the next attempt; nil while an attempt runs.
        package var next: ContinuousClock.Instant? { isRunning ? nil : due }
    }
}

/// A finished step of a list of actions.
package struct FinishedStep: Sendable, Hashable {
    package var outcome: Outcome
    /// The digest of its action; empty for the last step of a list, after which no attempt resumes.
    package var action: String
    /// Whether the step removed the input file.
    package var hasRemovedInput = false

    package init(_ outcome: Outcome, action: String) { (self.outcome, self.action) = (outcome, action) }
}

/// The final failure of a job, and the steps of `on_failure` so far.
package struct FinalFailure: Sendable, Hashable {
    /// The last attempt at the job; it is recorded when `on_failure` has finished.
    package var attempt: AttemptRecord
    package var steps: [FinishedStep] = []

    package init(_ attempt: AttemptRecord) { self.attempt = attempt }
}

/// The state of a job.
package enum JobState: String, Sendable, Hashable, CaseIterable {
    case pending, running, succeeded, skipped
    /// The job failed and is not retried automatically.
    case failed
}

/// The stored record of one attempt at a job.
package struct AttemptRecord: Sendable, Hashable {
    /// The number of the attempt, from 1.
    package var number: Int
    package var started: Timestamp
    package var duration: Duration
    package var outcome: Outcome

    package init(number: Int, started: Timestamp, duration: Duration, outcome: Outcome) {
        (self.number, self.started, self.duration, self.outcome) = (number, started, duration, outcome)
    }
}
