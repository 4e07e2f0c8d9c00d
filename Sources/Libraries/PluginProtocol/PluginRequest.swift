public import JSON

/// The request that a plugin reads from standard input for one attempt of one job.
///
/// Members are optional only where the protocol specifies it; both sides ignore
/// unknown members. Encode it with ``encodedBytes()``.
public struct PluginRequest: JSONRecord, Sendable, Hashable {
    /// The version of the protocol; 1.
    public var `protocol`: Int
    /// The job's id: the same for all attempts, so that work can be made idempotent.
    public var id: String
    /// The number of the attempt, from 1.
    public var attempt: Int
    public var maxAttempts: Int
    /// Whether the previous attempt was interrupted and may have done part of the work.
    public var interrupted: Bool
    public var dryRun: Bool
    /// The time at which the attempt is stopped, RFC 3339 in UTC.
    public var deadline: String
    public var rule: RuleReference
    /// The rule's parameters, validated, with defaults filled in and placeholders expanded.
    public var with: JSONValue
    /// An empty directory with mode 0700, removed after the attempt.
    public var scratch: String
    public var previous: PreviousAttempt?
    /// The outcomes of the previous steps in the rule's list.
    public var steps: [PluginResponse]
    /// One event, or several in a batch; the job and parameters of the request are then those of the first.
    public var events: [PluginEvent]
    /// The number of events; set in a stored request, which contains only one of them.
    package var eventCount: Int?

    public init(
        id: String, attempt: Int, maxAttempts: Int, interrupted: Bool = false, dryRun: Bool = false, deadline: String,
        rule: RuleReference, with: JSONValue, scratch: String, previous: PreviousAttempt? = nil,
        steps: [PluginResponse] = [], events: [PluginEvent]
    ) {
        self.protocol = ProtocolVersion.current
        (self.id, self.attempt, self.maxAttempts, self.interrupted) = (id, attempt, maxAttempts, interrupted)
        (self.dryRun, self.deadline, self.rule, self.with) = (dryRun, deadline, rule, with)
        (self.scratch, self.previous, self.steps, self.events) = (scratch, previous, steps, events)
    }

    /// Returns the parameters for an event: its own in a batch, otherwise those of the request.
    public func parameters(for event: PluginEvent) -> [String: JSONValue] { (event.with ?? with).object ?? [:] }

    /// Returns a parameter that is a path, as an absolute path: it is relative to the directory of the rules file.
    ///
    /// - Parameters:
    ///   - key: The name of the parameter.
    ///   - event: The event; nil for the first.
    /// - Returns: The bytes, including a trailing slash; nil if the rule doesn't set it.
    public func pathBytes(_ key: String, for event: PluginEvent? = nil) -> [UInt8]? {
        let values = (event ?? events.first).map { parameters(for: $0) } ?? with.object ?? [:]
        guard let path = values[key]?.bytes, !path.isEmpty else { return nil }
        let slash = UInt8(ascii: "/")
        if path.first == slash { return path }
        let file = Array(rule.file.utf8)
        let directory = file.lastIndex(of: slash).map { file[..<$0] } ?? []
        return directory + [slash] + path
    }

    /// Returns the request as one line of JSON with its newline, members in alphabetical order.
    ///
    /// - Throws: `EncodingError` when a parameter contains an infinite number or NaN, which JSON can't represent.
    public func encodedBytes() throws -> [UInt8] {
        var json = JSONCoder(capacity: 640 * (events.count + 1))
        write(to: &json)
        if json.isLossy {
            throw EncodingError.invalidValue(
                self,
                EncodingError.Context(codingPath: [], debugDescription: "it contains a value that is not a number"))
        }
        json.raw("\n")
        return json.bytes
    }

    package static var empty: PluginRequest {
        PluginRequest(
            id: "", attempt: 0, maxAttempts: 0, deadline: "", rule: .empty, with: .null, scratch: "", events: [])
    }

    package mutating func code(with json: inout JSONCoder) {
        json.member("attempt", &attempt)
        json.member("deadline", &deadline)
        json.member("dry_run", &dryRun)
        json.member("event_count", &eventCount)
        json.member("events", &events)
        json.member("id", &id)
        json.member("interrupted", &interrupted)
        json.member("max_attempts", &maxAttempts)
        json.member("previous", &previous)
        json.member("protocol", &`protocol`)
        json.member("rule", &rule)
        json.member("scratch", &scratch)
        json.member("steps", &steps)
        json.member("with", &with)
    }
}

/// The rule that the request belongs to.
public struct RuleReference: JSONRecord, Sendable, Hashable {
    public var name: String
    public var file: String
    public var line: Int

    public init(name: String, file: String, line: Int) {
        (self.name, self.file, self.line) = (name, file, line)
    }

    package static var empty: RuleReference { RuleReference(name: "", file: "", line: 0) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("file", &file)
        json.member("line", &line)
        json.member("name", &name)
    }
}

/// The result of the previous attempt.
public struct PreviousAttempt: JSONRecord, Sendable, Hashable {
    public var attempt: Int
    public var outcome: String
    public var message: String?
    /// Whether no action has started in it, or in one before it; not sent to plugins.
    package var isUnstarted = false
    /// Whether the job was given up after it and then requested again, so that other jobs of its path may have finished
    /// since; not sent to plugins.
    package var isGivenUp = false

    public init(attempt: Int, outcome: String, message: String?) {
        (self.attempt, self.outcome, self.message) = (attempt, outcome, message)
    }

    package static var empty: PreviousAttempt { PreviousAttempt(attempt: 0, outcome: "", message: nil) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("attempt", &attempt)
        json.member(flag: "given_up", &isGivenUp)
        json.member("message", &message)
        json.member("outcome", &outcome)
        json.member(flag: "unbegun", &isUnstarted)
    }
}

/// One event of a request.
///
/// A `…Base64` member is present if and only if the name is not UTF-8, and is
/// then authoritative; the readable member contains U+FFFD and does not name a file.
public struct PluginEvent: JSONRecord, Sendable, Hashable {
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
    /// RFC 3339 in UTC, like all times.
    public var mtime: String
    public var btime: String?
    /// Four octal digits.
    public var mode: String
    public var uid: Int
    public var gid: Int
    public var nlink: Int
    /// The identity of the file, not of the path; unchanged after a rename.
    public var id: String
    public var time: String
    public var changed: [String]?
    public var replaced: Bool?
    /// The other known names of a file, for a name that was linked.
    public var sameAs: [PluginPath]?
    /// `move` if a rename moved the file from or to a location that is not watched.
    public var via: String?
    /// The number of entries in a directory.
    public var children: Int?
    /// The metadata known before.
    public var before: PluginMetadata?
    /// The process that caused the event, for rules with `by`; nil when it is unknown.
    public var by: PluginWriter?
    /// The data that was added to a followed file.
    public var tail: PluginTail?
    /// In a batch, the id of the event's own job.
    public var job: String?
    /// In a batch, the parameters, expanded for this event.
    public var with: JSONValue?

    public init(
        event: String, path: String, relative: String, root: String, origin: String, type: String, size: Int64,
        mtime: String, btime: String?, mode: String, uid: Int, gid: Int, nlink: Int, id: String, time: String
    ) {
        (self.event, self.path, self.relative, self.root, self.origin) = (event, path, relative, root, origin)
        (self.type, self.size, self.mtime, self.btime, self.mode) = (type, size, mtime, btime, mode)
        (self.uid, self.gid, self.nlink, self.id, self.time) = (uid, gid, nlink, id, time)
    }

    // A file name on Linux is bytes. These are exact even where the readable members contain U+FFFD.
    /// The path of the file.
    public var pathBytes: [UInt8] { Base64.decoded(pathBase64) ?? Array(path.utf8) }

    /// The watched directory.
    public var rootBytes: [UInt8] { Base64.decoded(rootBase64) ?? Array(root.utf8) }

    /// The path below the watched directory.
    public var relativeBytes: [UInt8] { Base64.decoded(relativeBase64) ?? Array(relative.utf8) }

    /// The previous path of a moved file.
    public var fromBytes: [UInt8]? { Base64.decoded(fromBase64) ?? from.map { Array($0.utf8) } }

    package static var empty: PluginEvent {
        PluginEvent(
            event: "", path: "", relative: "", root: "", origin: "", type: "", size: 0, mtime: "", btime: nil, mode: "",
            uid: 0, gid: 0, nlink: 0, id: "", time: "")
    }

    package mutating func code(with json: inout JSONCoder) {
        json.member("before", &before)
        json.member("btime", &btime)
        json.member("by", &by)
        json.member("changed", &changed)
        json.member("children", &children)
        json.member("event", &event)
        json.member("from", &from)
        json.member("from_base64", &fromBase64)
        json.member("gid", &gid)
        json.member("id", &id)
        json.member("job", &job)
        json.member("mode", &mode)
        json.member("mtime", &mtime)
        json.member("nlink", &nlink)
        json.member("origin", &origin)
        json.member("path", &path)
        json.member("path_base64", &pathBase64)
        json.member("relative", &relative)
        json.member("relative_base64", &relativeBase64)
        json.member("replaced", &replaced)
        json.member("root", &root)
        json.member("root_base64", &rootBase64)
        json.member("same_as", &sameAs)
        json.member("size", &size)
        json.member("tail", &tail)
        json.member("time", &time)
        json.member("type", &type)
        json.member("uid", &uid)
        json.member("via", &via)
        json.member("with", &with)
    }
}

/// The metadata of a path that was known before the event.
public struct PluginMetadata: JSONRecord, Sendable, Hashable {
    public var size: Int64
    public var mtime: String
    public var mode: String
    public var uid: Int
    public var gid: Int
    public var nlink: Int
    public var id: String
    /// The former values of extended attributes that differ, by name; null for one that did not exist.
    ///
    /// A value that is not UTF-8 is `{"base64": …}`; one larger than 4 KiB is replaced by `{"size": N}`.
    public var xattr: [String: JSONValue]?

    public init(
        size: Int64, mtime: String, mode: String, uid: Int, gid: Int, nlink: Int, id: String,
        xattr: [String: JSONValue]? = nil
    ) {
        (self.size, self.mtime, self.mode, self.uid) = (size, mtime, mode, uid)
        (self.gid, self.nlink, self.id, self.xattr) = (gid, nlink, id, xattr)
    }

    package static var empty: PluginMetadata {
        PluginMetadata(size: 0, mtime: "", mode: "", uid: 0, gid: 0, nlink: 0, id: "")
    }

    package mutating func code(with json: inout JSONCoder) {
        json.member("gid", &gid)
        json.member("id", &id)
        json.member("mode", &mode)
        json.member("mtime", &mtime)
        json.member("nlink", &nlink)
        json.member("size", &size)
        json.member("uid", &uid)
        json.member("xattr", &xattr)
    }
}

/// The data that was added to a followed file.
public struct PluginTail: JSONRecord, Sendable, Hashable {
    /// The offset of the data in the file, in bytes.
    public var offset: Int64
    /// The added text; nil when it is not UTF-8.
    public var text: String?
    /// The added bytes, when they are not UTF-8.
    public var base64: String?
    /// Whether the file was truncated or replaced, so that the data does not continue the previous one.
    public var reset: Bool
    /// The number of further bytes, which follow with the next event.
    public var remaining: Int64

    public init(offset: Int64, text: String?, base64: String?, reset: Bool, remaining: Int64) {
        (self.offset, self.text, self.base64, self.reset, self.remaining) = (offset, text, base64, reset, remaining)
    }

    package static var empty: PluginTail { PluginTail(offset: 0, text: nil, base64: nil, reset: false, remaining: 0) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("base64", &base64)
        json.member("offset", &offset)
        json.member("remaining", &remaining)
        json.member("reset", &reset)
        json.member("text", &text)
    }
}

/// The process that caused an event, with its attributes at that time.
///
/// Members are null, not omitted, if the process had exited before they could be
/// read. A `…Base64` member is present only for bytes that are not UTF-8.
public struct PluginWriter: JSONRecord, Sendable, Hashable {
    public var pid: Int
    /// The program's name, of which the kernel stores 15 bytes; for a script, the script's name.
    public var comm: String?
    public var commBase64: String?
    /// The path of the executable; for a script, that of its interpreter.
    public var exe: String?
    public var exeBase64: String?
    /// The effective user.
    public var uid: Int?

    public init(pid: Int, comm: String?, exe: String?, uid: Int?) {
        (self.pid, self.comm, self.exe, self.uid) = (pid, comm, exe, uid)
    }

    package static var empty: PluginWriter { PluginWriter(pid: 0, comm: nil, exe: nil, uid: nil) }

    package mutating func code(with json: inout JSONCoder) {
        json.member(nullable: "comm", &comm)
        json.member("comm_base64", &commBase64)
        json.member(nullable: "exe", &exe)
        json.member("exe_base64", &exeBase64)
        json.member("pid", &pid)
        json.member(nullable: "uid", &uid)
    }
}
