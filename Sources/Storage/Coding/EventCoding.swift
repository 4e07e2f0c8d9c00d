package import FileEvents
package import JSON
package import System

// The forms of values in the JSON of the journal.
extension EventKind: JSONForm {}
extension EventOrigin: JSONForm {}
extension FileType: JSONForm {}

extension PathBytes: JSONForm {
    package func write(to json: inout JSONCoder) { json.text(bytes) }
    package init?(value: JSONValue) {
        guard let bytes = value.bytes else { return nil }
        self.init(bytes)
    }
}

extension Timestamp: JSONForm {
    /// Writes the seconds since 1970 and the nanoseconds after them.
    package func write(to json: inout JSONCoder) { json.pair(seconds, Int64(nanoseconds)) }
    package init?(value: JSONValue) {
        guard let (seconds, rest) = value.pair, let nanoseconds = UInt32(exactly: rest) else { return nil }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }
}

extension Duration: JSONForm {
    /// Writes the seconds and the attoseconds after them.
    package func write(to json: inout JSONCoder) { json.pair(components.seconds, components.attoseconds) }
    package init?(value: JSONValue) {
        guard let (seconds, attoseconds) = value.pair else { return nil }
        self.init(secondsComponent: seconds, attosecondsComponent: attoseconds)
    }
}

extension JSONCoder {
    fileprivate mutating func pair(_ first: Int64, _ second: Int64) {
        array { json in
            json.element()
            json.number(first)
            json.element()
            json.number(second)
        }
    }
}

extension JSONValue {
    fileprivate var pair: (Int64, Int64)? {
        guard let parts = array, parts.count == 2, case .integer(let first) = parts[0],
            case .integer(let second) = parts[1]
        else { return nil }
        return (first, second)
    }
}

extension Box: JSONForm where Value: JSONForm {
    package func write(to json: inout JSONCoder) { value.write(to: &json) }
    package convenience init?(value: JSONValue) {
        guard let value = Value(value: value) else { return nil }
        self.init(value)
    }
}

/// Bytes encoded in base64.
struct BinaryText: JSONForm {
    var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func write(to json: inout JSONCoder) { json.string(Base64.encoded(bytes)) }
    init?(value: JSONValue) {
        guard let bytes = Base64.decoded(value.string) else { return nil }
        self.bytes = bytes
    }
}

// The string in the column `event_json` of a job. Members that are nil, false or empty are omitted.
extension FileEvent: JSONRecord {
    package static var empty: FileEvent {
        FileEvent(kind: .created, path: "", root: "", snapshot: .unseen, time: Snapshot.unseen.modified)
    }

    package mutating func code(with json: inout JSONCoder) {
        json.member("event", &kind)
        json.member("path", &path)
        json.member("root", &root)
        json.member("from", &from)
        json.member("snapshot", &snapshot)
        json.member("before", &former)
        json.member(list: "changed", &changed)
        json.member(flag: "replaced", &isReplaced)
        json.member(flag: "by_move", &isByMove)
        json.member(list: "same_as", &sameAs)
        json.member("children", &children)
        json.member("tail", &addition)
        json.member("by", &writer, omitting: .notAsked)
        json.member("origin", &origin)
        json.member("time", &time)
    }
}

extension Writer: JSONForm {
    /// Writes an object with the known values, or a word with the reason why there are none.
    package func write(to json: inout JSONCoder) {
        switch self {
        case .notAsked: json.raw("null")
        case .unknown(let reason): json.string(reason.rawValue)
        case .process(let process): process.write(to: &json)
        }
    }

    package init?(value: JSONValue) {
        let process = WritingProcess(value: value).map(Writer.process)
        guard let writer = process ?? value.string.flatMap(UnknownWriter.init).map(Writer.unknown) else { return nil }
        self = writer
    }
}

extension WritingProcess: JSONRecord {
    package static var empty: WritingProcess { WritingProcess(pid: 0) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("pid", &pid)
        json.member("comm", &name)
        json.member("exe", &executable)
        json.member("uid", &uid)
    }
}

extension TailText: JSONRecord {
    package static var empty: TailText { TailText(offset: 0, bytes: []) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("offset", &offset)
        var text = PathBytes(bytes)
        json.member("text", &text)
        bytes = text.bytes
        json.member(flag: "reset", &isReset)
        json.member("remaining", &remaining)
    }
}

extension Snapshot: JSONRecord {
    package static var empty: Snapshot { .unseen }

    package mutating func code(with json: inout JSONCoder) {
        json.member("type", &type)
        json.member("size", &size)
        json.member("mtime", &modified)
        json.member("ctime", &changed)
        json.member("btime", &born)
        identity.code(with: &json)
        json.member("mode", &mode)
        json.member("uid", &uid)
        json.member("gid", &gid)
        json.member("nlink", &links)
        json.member("mount", &mount, omitting: 0)
        json.member("xattrs", &extended)
        var digest = digest.map { BinaryText($0) }
        json.member("digest", &digest)
        self.digest = digest?.bytes
        json.member("delivered", &delivered)
    }
}

extension ExtendedAttribute: JSONRecord {
    package static var empty: ExtendedAttribute { ExtendedAttribute(name: "", value: []) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("name", &name)
        var text = BinaryText(value)
        json.member("value", &text)
        value = text.bytes
    }
}

extension FileIdentity {
    /// Both device numbers in one, as stored in the journal's columns.
    package var device: Int64 {
        get { Int64(bitPattern: UInt64(deviceMajor) << 32 | UInt64(deviceMinor)) }
        set { self = FileIdentity(device: newValue, inode: inode, birth: birth) }
    }

    package init(device: Int64, inode: UInt64, birth: Int64) {
        let device = UInt64(bitPattern: device)
        self.init(
            deviceMajor: UInt32(truncatingIfNeeded: device >> 32), deviceMinor: UInt32(truncatingIfNeeded: device),
            inode: inode, birth: birth)
    }

    /// Codes the members of the object that contains the identity among others.
    package mutating func code(with json: inout JSONCoder) {
        json.member("device", &device)
        json.member("inode", &inode)
        json.member("birth", &birth)
    }
}
