public import FoundationEssentials

// What is written for every job is written by appending: an encoder of Foundation takes several times as long.
extension PluginRequest {
    /// The request as one line of JSON with its newline, members in alphabetical order.
    ///
    /// - Throws: `EncodingError` when a number of the parameters is infinite or none, which JSON has no word for.
    public func encoded() throws -> Data { Data(try encodedBytes()) }

    /// The same as bytes.
    ///
    /// - Parameter count: What is told as `event_count` besides.
    /// - Returns: The line.
    /// - Throws: As ``encoded()``.
    package func encodedBytes(eventCount count: Int? = nil) throws -> [UInt8] {
        if let value = ([with] + events.compactMap(\.with)).first(where: \.holdsNoNumber) {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "it holds what is no number"))
        }
        var json = JSONOutput(capacity: 640 * (events.count + 1), shorteningNumbers: true)
        write(to: &json, eventCount: count)
        json.raw("\n")
        return json.bytes
    }

    private func write(to json: inout JSONOutput, eventCount count: Int?) {
        json.object { json in
            json.member("attempt", attempt)
            json.member("deadline", deadline)
            json.member("dry_run", dryRun)
            json.member("event_count", count)
            json.members("events", events) { $0.write(to: &$1) }
            json.member("id", id)
            json.member("interrupted", interrupted)
            json.member("max_attempts", maxAttempts)
            if let previous { json.member("previous") { previous.write(to: &$0) } }
            json.member("protocol", `protocol`)
            json.member("rule") { json in
                json.object { json in
                    json.member("file", rule.file)
                    json.member("line", rule.line)
                    json.member("name", rule.name)
                }
            }
            json.member("scratch", scratch)
            json.members("steps", steps) { $0.write(to: &$1) }
            json.member("with") { $0.value(with) }
        }
    }
}

extension PreviousAttempt {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.member("attempt", attempt)
            json.member("message", message)
            json.member("outcome", outcome)
        }
    }
}

extension PluginEvent {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            if let before { json.member("before") { before.write(to: &$0) } }
            json.member("btime", btime)
            if let by { json.member("by") { by.write(to: &$0) } }
            if let changed { json.members("changed", changed) { $1.string($0) } }
            json.member("children", children)
            json.member("event", event)
            json.member("from", from)
            json.member("from_base64", fromBase64)
            json.member("gid", gid)
            json.member("id", id)
            json.member("job", job)
            json.member("mode", mode)
            json.member("mtime", mtime)
            json.member("nlink", nlink)
            json.member("origin", origin)
            json.member("path", path)
            json.member("path_base64", pathBase64)
            json.member("relative", relative)
            json.member("relative_base64", relativeBase64)
            json.member("replaced", replaced)
            json.member("root", root)
            json.member("root_base64", rootBase64)
            if let sameAs { json.members("same_as", sameAs) { $1.text($0.bytes) } }
            json.member("size") { $0.number(size) }
            if let tail { json.member("tail") { tail.write(to: &$0) } }
            json.member("time", time)
            json.member("type", type)
            json.member("uid", uid)
            json.member("via", via)
            if let with { json.member("with") { $0.value(with) } }
        }
    }
}

extension PluginFacts {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.member("gid", gid)
            json.member("id", id)
            json.member("mode", mode)
            json.member("mtime", mtime)
            json.member("nlink", nlink)
            json.member("size") { $0.number(size) }
            json.member("uid", uid)
            if let xattr { json.member("xattr") { $0.value(.object(xattr)) } }
        }
    }
}

extension PluginAuthor {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.member("comm") { $0.value(comm.map { .string($0) } ?? .null) }
            json.member("comm_base64", commBase64)
            json.member("exe") { $0.value(exe.map { .string($0) } ?? .null) }
            json.member("exe_base64", exeBase64)
            json.member("pid", pid)
            json.member("uid") { $0.value(uid.map { .integer(Int64($0)) } ?? .null) }
        }
    }
}

extension PluginTail {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.member("base64", base64)
            json.member("offset") { $0.number(offset) }
            json.member("remaining") { $0.number(remaining) }
            json.member("reset", reset)
            json.member("text", text)
        }
    }
}

extension PluginResponse {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            json.member("code", code)
            json.member("message", message)
            json.member("outcome", outcome.rawValue)
            if let outputs { json.members("outputs", outputs) { $1.text($0.bytes) } }
            if let results { json.members("results", results) { $0.write(to: &$1) } }
            if let retryAfter { json.member("retry_after") { $0.value(.number(retryAfter)) } }
            if let values { json.member("values") { $0.value(.object(values)) } }
        }
    }
}

extension JSONValue {
    /// Whether a number in it is infinite, or none.
    fileprivate var holdsNoNumber: Bool {
        switch self {
        case .number(let number): !number.isFinite
        case .array(let elements): elements.contains(where: \.holdsNoNumber)
        case .object(let members): members.values.contains(where: \.holdsNoNumber)
        default: false
        }
    }
}

// Members that are nil are left out.
extension JSONOutput {
    fileprivate mutating func member(_ name: StaticString, _ write: (inout JSONOutput) -> Void) {
        key(name)
        write(&self)
    }

    fileprivate mutating func member(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        key(name)
        string(text)
    }

    fileprivate mutating func member(_ name: StaticString, _ count: Int?) {
        guard let count else { return }
        key(name)
        number(Int64(count))
    }

    fileprivate mutating func member(_ name: StaticString, _ isTrue: Bool?) {
        guard let isTrue else { return }
        key(name)
        value(.bool(isTrue))
    }

    fileprivate mutating func members<Element>(
        _ name: StaticString, _ elements: [Element], _ write: (Element, inout JSONOutput) -> Void
    ) {
        key(name)
        array { json in
            for each in elements {
                json.element()
                write(each, &json)
            }
        }
    }
}
