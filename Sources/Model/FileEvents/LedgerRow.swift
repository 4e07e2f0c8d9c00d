package import System

/// The state of a path as the action of one rule has received it.
package struct LedgerRow: Sendable, Hashable {
    /// The metadata of the file as the action last received it, or as of the decision that the rule does not match
    /// it.
    ///
    /// Nil if the action never received the path, or has received its deletion.
    package var handled: Snapshot?
    package var trust: Trust
    /// Whether the rule refused the path when it was new and no event has named it since: its deletion is not reported.
    package var isSuppressed: Bool

    package enum Trust: UInt8, Sendable, Hashable {
        /// The action knows `handled`.
        case certain
        /// It is not known which state the action saw at the last event of the path; always set while the path is
        /// offered.
        case uncertain
        /// The job was given up: certain while the file is as it was offered, uncertain once it differs.
        case failed
        /// The rule refuses the content of `handled`: the action has received an earlier one.
        case refused
    }

    package init(_ handled: Snapshot? = nil, _ trust: Trust = .certain, isSuppressed: Bool = false) {
        (self.handled, self.trust, self.isSuppressed) = (handled, trust, isSuppressed)
    }

    /// Whether the row is equivalent to a missing one.
    package var isEmpty: Bool { handled == nil && trust != .uncertain }
}

/// A rule or an observer, in the ledger.
package struct RuleID: Sendable, Hashable {
    package let number: Int64

    package init(_ number: Int64) { self.number = number }
}

/// Reads stored ledger rows.
///
/// A row that cannot be read counts as missing; the store reports the error with its next commit.
package protocol LedgerStore: Sendable {
    /// Returns the row of a path; nil if there is none.
    func row(of rule: RuleID, at path: PathBytes) -> LedgerRow?

    /// Returns at most `limit` paths at which the rule has handled the file.
    ///
    /// An identity without a birth time matches all files with its device and inode.
    func paths(of rule: RuleID, handling identity: FileIdentity, limit: Int) -> [PathBytes]

    /// Returns the rows strictly below a directory, sorted by path: those after `last`, up to a number that the store
    /// chooses.
    ///
    /// The result is empty at the end.
    func rows(of rule: RuleID, below directory: PathBytes, after last: PathBytes?) -> [(PathBytes, LedgerRow)]
}

/// How far a followed file was read; the later of two is the one of the later state of the file.
package struct ReadPosition: Sendable, Hashable, Comparable {
    /// The change time of the file at that time.
    package var changed: Timestamp
    /// The number of bytes.
    package var delivered: UInt64

    /// Comes before all others.
    package static let none = ReadPosition(changed: Timestamp(seconds: 0, nanoseconds: 0), delivered: 0)

    package init(changed: Timestamp, delivered: UInt64) { (self.changed, self.delivered) = (changed, delivered) }

    /// Returns nil for a file that was not read.
    package init?(_ snapshot: Snapshot) {
        guard let delivered = snapshot.delivered else { return nil }
        self.init(changed: snapshot.changed, delivered: delivered)
    }

    package static func < (one: ReadPosition, other: ReadPosition) -> Bool {
        (one.changed, one.delivered) < (other.changed, other.delivered)
    }
}

/// A due path as it is stored.
package struct StoredDuePath: Sendable, Hashable {
    package var path: PathBytes
    /// The process that made it due; nil if it is not known yet, or not requested.
    package var writer: Writer?

    package init(path: PathBytes, writer: Writer? = nil) { (self.path, self.writer) = (path, writer) }
}

/// The change of the stored row of a due path.
package enum DueChange: Sendable, Hashable {
    case stored(Writer?), deleted
}
