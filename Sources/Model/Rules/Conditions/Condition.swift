package import FileEvents
package import Globbing
package import RegularExpressions
package import System

/// The condition on a file beyond its path, for a rule to run: `where:`.
///
/// A condition is evaluated from its input alone, and the result may be unknown: the content type of a file that is
/// unreadable or deleted cannot be determined. An unknown result stays unknown under `not`. Other conditions decide it
/// where they suffice: in `any` a condition that holds, in `all` one that fails.
package indirect enum Condition: Sendable, Hashable {
    case all([Condition])
    case any([Condition])
    case not(Condition)
    /// The size in bytes.
    case size(Comparisons<UInt64>)
    /// The time since the last change of the content.
    case age(Comparisons<Duration>)
    /// The number of directories between the root and the file.
    case depth(Comparisons<Int>)
    /// The content type; one match is enough.
    case mime([MediaPattern])
    /// Globs for the last component; one match is enough.
    case name([Glob])
    /// Globs for the path below the root, and absolute globs for the whole path; one match is enough.
    case path([Glob])
    /// A regular expression, searched for in the last component.
    case regex(RegularExpression)
    /// The owner; one match is enough.
    case owner([Owner])
    /// The program that wrote the file: globs for its name, and for the path of its executable; one match is enough.
    case by([Program])

    /// A content type: `image/png`, or `image/*`.
    package struct MediaPattern: Sendable, Hashable {
        /// The type in lower case; nil for any.
        package var type: String?
        package var subtype: String?

        package init(type: String?, subtype: String?) { (self.type, self.subtype) = (type, subtype) }

        func matches(_ found: String) -> Bool {
            let parts = found.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { return false }
            return (type.map { $0 == parts[0] } ?? true) && (subtype.map { $0 == parts[1] } ?? true)
        }

        var text: String { "\(type ?? "*")/\(subtype ?? "*")" }
    }

    /// A user, a group, or both.
    package struct Owner: Sendable, Hashable {
        package var uid: UInt32?
        package var gid: UInt32?
        /// The owner as it was written.
        package var text: String

        package init(uid: UInt32?, gid: UInt32?, text: String) { (self.uid, self.gid, self.text) = (uid, gid, text) }

        func matches(_ snapshot: Snapshot) -> Bool {
            (uid.map { $0 == snapshot.uid } ?? true) && (gid.map { $0 == snapshot.gid } ?? true)
        }
    }
}

extension Condition {
    /// A glob for a program: for its name, or for the path of its executable if the glob contains a slash.
    package struct Program: Sendable, Hashable {
        package var glob: Glob

        package init(_ glob: Glob) { self.glob = glob }

        /// Whether the process matches; nil if the required value is unknown.
        func matches(_ process: WritingProcess) -> Bool? {
            if glob.pattern.contains(.slash) {
                guard let path = process.executable?.bytes else { return nil }
                return glob.matches(glob.root.first == .slash ? path[...] : path.dropFirst())
            }
            let names = [process.name?.bytes[...], process.executable?.lastComponent].compactMap(\.self)
            return names.isEmpty ? nil : names.contains { glob.matches($0) }
        }
    }
}

/// The input from which a condition is evaluated.
package struct ConditionInput: Sendable, Hashable {
    /// The content type, as far as it is known.
    package enum Content: Sendable, Hashable {
        /// The content has not been read yet.
        case notAsked
        case type(String)
        /// The type cannot be determined, for this reason.
        case unknown(String)
        /// The file cannot be read at present, for this reason.
        case unreadable(String)
    }

    package var path: PathBytes
    package var root: PathBytes
    /// The current or the last known metadata; nil if there is none.
    package var snapshot: Snapshot?
    package var content: Content
    /// The writer.
    package var writer: Writer
    /// The time that ages are relative to.
    package var now: Timestamp

    package init(
        path: PathBytes, root: PathBytes, snapshot: Snapshot?, content: Content = .notAsked,
        writer: Writer = .notAsked, now: Timestamp
    ) {
        (self.path, self.root, self.snapshot, self.content) = (path, root, snapshot, content)
        (self.writer, self.now) = (writer, now)
    }

    /// Creates the input for an event; for a moved file, with its new path.
    ///
    /// Ages are relative to the time of the event, so that a job that waits, or is retried, is evaluated as when it was
    /// created.
    package init(_ event: FileEvent) {
        self.init(
            path: event.path, root: event.root, snapshot: event.snapshot == .unseen ? nil : event.snapshot,
            content: event.kind == .deleted ? .unknown("the file was deleted, so its content is unknown") : .notAsked,
            writer: event.writer, now: event.time)
    }
}

/// The result of a condition, with the reason.
package enum ConditionAnswer: Sendable, Hashable {
    case holds
    /// It fails; the first failing test, with the expected value and the value found.
    case fails(String)
    /// It depends on the content, which has not been read.
    case needsContent
    /// It cannot be determined, for this reason.
    case unknown(String)
    /// It depends on the content, which cannot be read at present, for this reason.
    case unreadable(String)
}
