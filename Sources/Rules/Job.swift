package import FileEvents
package import PluginProtocol
import Synchronization

/// The id of a job: 26 characters that sort by the time of making (a ULID).
package struct JobID: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    /// Makes an id of the milliseconds since 1970 and 80 random bits.
    package init(now: Timestamp, random: (UInt64, UInt16)) {
        let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
        var milliseconds = UInt64(max(0, now.seconds)) * 1000 + UInt64(now.nanoseconds / 1_000_000)
        var characters = [UInt8](repeating: 0, count: 26)
        for index in (0..<10).reversed() {
            characters[index] = alphabet[Int(milliseconds & 31)]
            milliseconds >>= 5
        }
        var (low, high) = random
        for index in (10..<26).reversed() {
            characters[index] = alphabet[Int(low & 31)]
            low = low >> 5 | UInt64(high & 31) << 59
            high >>= 5
        }
        description = String(decoding: characters, as: UTF8.self)
    }

    package init(_ text: String) { description = text }

    /// Whether it is one that this type makes, of which other names can be made.
    package var isWellFormed: Bool {
        description.utf8.count == 26
            && description.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
    }

    private static let source = Mutex(JobIDSource())

    /// Makes an id that nobody else makes, by a source that all share.
    package init(now: Timestamp) { self = Self.source.withLock { $0.next(now: now) } }
}

/// Makes ids of jobs.
///
/// Those of one millisecond sort by the order in which they are made, as long as
/// no other time comes between. So jobs that are made together lie together in the
/// journal, in the order in which they are run.
package struct JobIDSource: Sendable {
    private var milliseconds: Int64 = -1
    private var low: UInt64 = 0
    private var high: UInt16 = 0

    package init() {}

    /// Makes an id that nobody else makes.
    package mutating func next(now: Timestamp) -> JobID {
        let milliseconds = max(0, now.seconds) * 1000 + Int64(now.nanoseconds / 1_000_000)
        if milliseconds == self.milliseconds {
            low &+= 1
            if low == 0 { high &+= 1 }
        } else {
            self.milliseconds = milliseconds
            low = .random(in: 0...UInt64.max)
            // Far from the end, so that none of a millisecond begins anew.
            high = .random(in: 0..<UInt16.max)
        }
        return JobID(now: now, random: (low, high))
    }
}

/// One rule to be run for one path.
package struct Job: Sendable, Hashable {
    package var id: JobID
    /// The rule's name.
    package var rule: String
    package var event: FileEvent
    /// Attempts made so far; the running one counts.
    package var attempt: Int
    /// Whether the attempt before was cut off and may have done part of the work.
    package var isInterrupted: Bool
    package var previous: PreviousAttempt?
    /// What the rule asks for, by which pending events are merged.
    package var mask: EventMask
    /// Whether it is run for itself, after the older ones of its rule and path, and never merged with another.
    package var isAlone = false
    /// The steps of the rule's list that have succeeded in earlier attempts; the next one goes on after them.
    package var steps: [Outcome] = []
    /// Why it is not begun yet, while it is pending.
    package var waiting: Waiting?

    package init(id: JobID, rule: String, event: FileEvent, mask: EventMask = .differences) {
        self.id = id
        self.rule = rule
        self.event = event
        self.mask = mask
        attempt = 0
        isInterrupted = false
    }
}

/// Where a job stands.
package enum JobState: String, Sendable, Hashable {
    case pending, running, succeeded, skipped
    /// It will not be tried again by itself.
    case dead
}
