package import JSON
package import PluginProtocol

/// A request as the journal stores it: without secrets, limited in size, and with a single event of a batch.
package struct RecordedRequest {
    /// The maximum size in bytes; more is left out, so that a journal of many attempts stays small.
    static let limit = 64 << 10

    private let request: PluginRequest
    private let schema: ParameterSchema?
    /// The request as it was sent, if it may be stored unchanged.
    private let sent: String?

    /// - Parameters:
    ///   - request: The request.
    ///   - line: The request as it was sent.
    ///   - schema: The schema that marks secret parameters; nil for a program without any.
    package init(_ request: PluginRequest, sent line: [UInt8], schema: ParameterSchema?) {
        self.request = request
        self.schema = schema?.hasSecrets == true ? schema : nil
        let isWhole = self.schema == nil && request.events.count == 1 && line.count <= Self.limit
        sent = isWhole ? String(decoding: line.dropLast(line.last == 0x0A ? 1 : 0), as: UTF8.self) : nil
    }

    /// Returns the request as stored with the attempt of one of its events.
    ///
    /// For a batch it contains that event alone, and the number of events in `event_count`: otherwise all events would
    /// be stored once for each of them.
    package func text(for index: Int) -> String {
        if let sent { return sent }
        var retained = request
        retained.events = [request.events[index]]
        retained = withoutSecrets(retained)
        retained.eventCount = request.events.count > 1 ? request.events.count : nil
        guard let bytes = try? retained.encodedBytes() else { return "{}" }
        if bytes.count <= Self.limit { return String(decoding: bytes.dropLast(), as: UTF8.self) }
        return JSONValue(json: bytes)?.object.map(Self.bounded) ?? "{}"
    }

    /// The whole request, without secrets.
    package var value: JSONValue { withoutSecrets(request).json }

    private func withoutSecrets(_ request: PluginRequest) -> PluginRequest {
        guard let schema else { return request }
        var shown = request
        shown.with = schema.withoutSecrets(shown.with)
        for index in shown.events.indices {
            shown.events[index].with = shown.events[index].with.map(schema.withoutSecrets)
        }
        return shown
    }

    /// Returns the object as a string, with large members replaced by a note until it is small enough.
    private static func bounded(_ object: [String: JSONValue]) -> String {
        var object = object
        var event = object["events"]?.array?.first?.object ?? [:]
        for key in ["tail", "before", "same_as", "with"] where object.lineBytes.count > limit {
            guard let value = event[key] else { continue }
            event[key] = notice(on: value)
            object["events"] = [.object(event)]
        }
        for key in ["with", "steps", "previous", "events"] where object.lineBytes.count > limit {
            object[key] = object[key].map(notice)
        }
        return object.line
    }

    private static func notice(on value: JSONValue) -> JSONValue {
        .string("[\(value.lineBytes.count) bytes left out]")
    }
}

extension ParameterSchema {
    /// Whether any value that the schema describes is secret.
    fileprivate var hasSecrets: Bool {
        writeOnly == true || items?.hasSecrets == true || properties?.values.contains(where: \.hasSecrets) == true
    }

    /// Returns the value with everything secret in it replaced by `***`.
    package func withoutSecrets(_ value: JSONValue) -> JSONValue {
        if writeOnly == true { return "***" }
        switch value {
        case .object(var members):
            for (key, schema) in properties ?? [:] { members[key] = members[key].map(schema.withoutSecrets) }
            return .object(members)
        case .array(let elements): return .array(elements.map { items?.withoutSecrets($0) ?? $0 })
        default: return value
        }
    }
}
