/// What a plugin reads from standard input for one attempt of one job.
///
/// Members are optional only where the protocol says so; both sides ignore
/// members that they do not know. Encode with ``encoded()``.
public struct PluginRequest: Sendable, Hashable, Codable {
    /// The version of the protocol; 1.
    public var `protocol`: Int
    /// The job's id: equal over attempts, so that work can be made idempotent.
    public var id: String
    /// Counts from 1.
    public var attempt: Int
    public var maxAttempts: Int
    /// Whether the attempt before was cut off and may have done part of the work.
    public var interrupted: Bool
    public var dryRun: Bool
    /// When the attempt is ended, RFC 3339 in UTC.
    public var deadline: String
    public var rule: RuleReference
    /// The rule's parameters, validated, with defaults filled in and placeholders expanded.
    public var with: JSONValue
    /// An empty folder of mode 0700, removed after the attempt.
    public var scratch: String
    public var previous: PreviousAttempt?
    /// What the steps before this one in the rule's list ended in.
    public var steps: [PluginResponse]
    /// One event, or several in a batch; what the request says of the job and its parameters is then of the first.
    public var events: [PluginEvent]

    public init(
        id: String, attempt: Int, maxAttempts: Int, interrupted: Bool = false, dryRun: Bool = false, deadline: String,
        rule: RuleReference, with: JSONValue, scratch: String, previous: PreviousAttempt? = nil,
        steps: [PluginResponse] = [], events: [PluginEvent]
    ) {
        self.protocol = ProtocolVersion.current
        self.id = id
        self.attempt = attempt
        self.maxAttempts = maxAttempts
        self.interrupted = interrupted
        self.dryRun = dryRun
        self.deadline = deadline
        self.rule = rule
        self.with = with
        self.scratch = scratch
        self.previous = previous
        self.steps = steps
        self.events = events
    }

    enum CodingKeys: String, CodingKey {
        case `protocol`, id, attempt, interrupted, deadline, rule, with, scratch, previous, steps, events
        case maxAttempts = "max_attempts"
        case dryRun = "dry_run"
    }
}

/// Which rule asks.
public struct RuleReference: Sendable, Hashable, Codable {
    public var name: String
    public var file: String
    public var line: Int

    public init(name: String, file: String, line: Int) {
        self.name = name
        self.file = file
        self.line = line
    }
}

/// How the attempt before this one ended.
public struct PreviousAttempt: Sendable, Hashable, Codable {
    public var attempt: Int
    public var outcome: String
    public var message: String?
    /// Whether no action has begun in it, or in one before it; not told to plugins.
    package var isUnbegun = false
    /// Whether the job was given up after it, and asked for again, so that others of its path may have been done since;
    /// not told to plugins.
    package var isGivenUp = false

    private enum CodingKeys: String, CodingKey { case attempt, outcome, message }

    public init(attempt: Int, outcome: String, message: String?) {
        self.attempt = attempt
        self.outcome = outcome
        self.message = message
    }
}

/// One event of a request.
///
/// A `…Base64` member is present if and only if the name is not UTF-8, and is
/// then the truth; the readable member holds U+FFFD and names no file.
public struct PluginEvent: Sendable, Hashable, Codable {
    /// `created`, `modified`, `deleted`, `moved`, `attributes`, or another of the words in `events:`.
    public var event: String
    public var path: String
    public var pathBase64: String?
    /// The path below `root`.
    public var relative: String
    public var relativeBase64: String?
    public var root: String
    public var rootBase64: String?
    public var from: String?
    public var fromBase64: String?
    /// `live`, `scan`, `rescan`, `poll` or `manual`.
    public var origin: String
    /// `file`, `directory`, `symlink` or `other`.
    public var type: String
    public var size: Int64
    /// RFC 3339 in UTC, as all times.
    public var mtime: String
    public var btime: String?
    /// Four octal digits.
    public var mode: String
    public var uid: Int
    public var gid: Int
    public var nlink: Int
    /// Names the file, not the path; equal after a rename.
    public var id: String
    public var time: String
    public var changed: [String]?
    public var replaced: Bool?
    /// The other names under which the file is known, of a name that was linked.
    public var sameAs: [PluginPath]?
    /// `move`, of a file that came from or went to a place that is not watched, by a rename.
    public var via: String?
    /// How many entries a folder has.
    public var children: Int?
    /// The facts that were known before.
    public var before: PluginFacts?
    /// Who did it, for rules with `by`; nil when nobody knows.
    public var by: PluginAuthor?
    /// What was added to a file that is followed.
    public var tail: PluginTail?
    /// In a batch the id of the event's own job.
    public var job: String?
    /// In a batch the parameters, expanded for this event.
    public var with: JSONValue?

    public init(
        event: String, path: String, relative: String, root: String, origin: String, type: String, size: Int64,
        mtime: String, btime: String?, mode: String, uid: Int, gid: Int, nlink: Int, id: String, time: String
    ) {
        self.event = event
        self.path = path
        self.relative = relative
        self.root = root
        self.origin = origin
        self.type = type
        self.size = size
        self.mtime = mtime
        self.btime = btime
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.nlink = nlink
        self.id = id
        self.time = time
    }

    enum CodingKeys: String, CodingKey {
        case event, path, relative, root, from, origin, type, size, mtime, btime, mode, uid, gid, nlink, id, time
        case changed, replaced, via, children, before, by, tail, job, with
        case sameAs = "same_as"
        case pathBase64 = "path_base64"
        case relativeBase64 = "relative_base64"
        case rootBase64 = "root_base64"
        case fromBase64 = "from_base64"
    }
}

/// What was known of a path before the event.
public struct PluginFacts: Sendable, Hashable, Codable {
    public var size: Int64
    public var mtime: String
    public var mode: String
    public var uid: Int
    public var gid: Int
    public var nlink: Int
    public var id: String
    /// The former values of extended attributes that differ, by name; null for one that was not there.
    ///
    /// A value that is not UTF-8 is `{"base64": …}`, one of more than 4 KiB is left out as `{"size": N}`.
    public var xattr: [String: JSONValue]?

    public init(
        size: Int64, mtime: String, mode: String, uid: Int, gid: Int, nlink: Int, id: String,
        xattr: [String: JSONValue]? = nil
    ) {
        self.size = size
        self.mtime = mtime
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.nlink = nlink
        self.id = id
        self.xattr = xattr
    }
}

/// What was added to a file that is followed.
public struct PluginTail: Sendable, Hashable, Codable {
    /// Where in the file it begins, in bytes.
    public var offset: Int64
    /// The added text; nil when it is not UTF-8.
    public var text: String?
    /// The added bytes, when they are not UTF-8.
    public var base64: String?
    /// Whether the file was cut or replaced, so that this continues nothing.
    public var reset: Bool
    /// How many bytes behind it follow with the next event.
    public var remaining: Int64

    public init(offset: Int64, text: String?, base64: String?, reset: Bool, remaining: Int64) {
        self.offset = offset
        self.text = text
        self.base64 = base64
        self.reset = reset
        self.remaining = remaining
    }
}
