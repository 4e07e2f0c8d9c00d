package import FileEvents
package import Globbing
package import RegularExpressions
package import System

/// What has to hold of a file besides its path, so that a rule acts on it: `where:`.
///
/// A condition is worked out of facts alone, and has one of three answers, for
/// not everything can be told: of a file that can't be read, or that is gone,
/// nobody knows the content type. What can't be told stays so under `not`; it
/// is decided by what stands beside it if that is enough: in `any` by one that
/// holds, in `all` by one that does not.
package indirect enum Condition: Sendable, Hashable {
    case all([Condition])
    case any([Condition])
    case not(Condition)
    /// Bytes.
    case size(Comparisons<UInt64>)
    /// The time since the last change of the content.
    case age(Comparisons<Duration>)
    /// How many folders lie between the root and the file.
    case depth(Comparisons<Int>)
    /// The content type; one is enough.
    case mime([MediaPattern])
    /// Globs for the last component; one is enough.
    case name([Glob])
    /// Globs for the path below the root, and absolute ones for the whole path; one is enough.
    case path([Glob])
    /// Searched for in the last component.
    case regex(RegularExpression)
    /// One is enough.
    case owner([Owner])
    /// The program that wrote: globs for its name, and for the path of its file; one is enough.
    case by([Program])

    /// Content types: `image/png`, or `image/*`.
    package struct MediaPattern: Sendable, Hashable {
        /// In lower case; nil for any.
        package var type: String?
        package var subtype: String?

        package init(type: String?, subtype: String?) {
            self.type = type
            self.subtype = subtype
        }

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
        /// As it was written.
        package var text: String

        package init(uid: UInt32?, gid: UInt32?, text: String) {
            self.uid = uid
            self.gid = gid
            self.text = text
        }

        func matches(_ snapshot: Snapshot) -> Bool {
            (uid.map { $0 == snapshot.uid } ?? true) && (gid.map { $0 == snapshot.gid } ?? true)
        }
    }
}

extension Condition {
    /// A glob for a program: for its name, or for the path of its file if there is a slash in it.
    package struct Program: Sendable, Hashable {
        package var glob: Glob

        package init(_ glob: Glob) { self.glob = glob }

        /// Nil when what would have to be known is not.
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

/// What a condition is worked out of.
package struct ConditionFacts: Sendable, Hashable {
    /// What is known of the content type.
    package enum Content: Sendable, Hashable {
        /// Nobody has looked yet.
        case notAsked
        case type(String)
        /// It can't be told, for that reason.
        case untold(String)
    }

    package var path: PathBytes
    package var root: PathBytes
    /// What is there, or was last; nil when nothing is known of it.
    package var snapshot: Snapshot?
    package var content: Content
    /// Who did it.
    package var author: Author
    /// Against which ages are counted.
    package var now: Timestamp

    package init(
        path: PathBytes, root: PathBytes, snapshot: Snapshot?, content: Content = .notAsked,
        author: Author = .notAsked, now: Timestamp
    ) {
        self.path = path
        self.root = root
        self.snapshot = snapshot
        self.content = content
        self.author = author
        self.now = now
    }

    /// The facts of an event; of a moved file those of its new name.
    ///
    /// Ages are those at the time of the event, so that a job that waits, or is
    /// tried again, is judged as it was when it was made.
    package init(_ event: FileEvent, content: Content = .notAsked) {
        self.init(
            path: event.path, root: event.root, snapshot: event.snapshot == .unseen ? nil : event.snapshot,
            content: event.kind == .deleted ? .untold("it is gone, and with it its content") : content,
            author: event.author, now: event.time)
    }
}

/// Whether a condition holds, and why not.
package enum ConditionAnswer: Sendable, Hashable {
    case holds
    /// It doesn't; the first thing that is in the way, with what was wanted and what was found.
    case fails(String)
    /// It depends on the content, at which nobody has looked.
    case needsContent
    /// It can't be told, for that reason.
    case untold(String)
}
