import FileEvents
import PluginProtocol
import Rules

// The text in the columns `steps` and `previous` of a job, without the log.
extension Outcome {
    func write(to json: inout JSONOutput) {
        json.object { json in
            json.key("outcome")
            json.string(ending.rawValue)
            json.key("message")
            json.string(message)
            if let code {
                json.key("code")
                json.string(code)
            }
            if let retryAfter {
                let (seconds, attoseconds) = retryAfter.components
                json.key("retry_after")
                json.array { json in
                    json.element()
                    json.number(seconds)
                    json.element()
                    json.number(attoseconds)
                }
            }
            if !outputs.isEmpty {
                json.key("outputs")
                outputs.write(to: &json)
            }
            if !changes.isEmpty {
                json.key("changes")
                changes.write(to: &json)
            }
            if !values.isEmpty {
                json.key("values")
                json.value(.object(values))
            }
            if let process {
                json.key("process")
                process.write(to: &json)
            }
            json.flag("interrupted", isInterrupted)
        }
    }

    init?(_ json: JSONValue) {
        guard let ending = json.text("outcome").flatMap(Ending.init) else { return nil }
        self.init(
            ending, json.text("message") ?? "", code: json.text("code"),
            outputs: json["outputs"].map { [PathBytes]($0) } ?? [],
            values: json["values"]?.object ?? [:])
        if let parts = json["retry_after"]?.array, parts.count == 2, case .integer(let seconds) = parts[0],
            case .integer(let attoseconds) = parts[1]
        {
            retryAfter = Duration(secondsComponent: seconds, attosecondsComponent: attoseconds)
        }
        changes = json["changes"].flatMap { [FileChange]($0) } ?? []
        process = json["process"].flatMap(ProcessFacts.init)
        isInterrupted = json.isSet("interrupted")
    }

    /// The steps as one text; nil when there is none.
    static func text(of steps: [Outcome]) -> [UInt8]? {
        guard !steps.isEmpty else { return nil }
        var json = JSONOutput(capacity: 256)
        json.array { json in
            for step in steps {
                json.element()
                step.write(to: &json)
            }
        }
        return json.bytes
    }

    /// The steps in such a text; nil when it is something else.
    static func steps(in json: JSONValue) -> [Outcome]? {
        guard let elements = json.array else { return nil }
        let steps = elements.compactMap(Outcome.init)
        return steps.count == elements.count ? steps : nil
    }
}

// The text in the column `outputs` of a job, and in a step.
extension [PathBytes] {
    fileprivate func write(to json: inout JSONOutput) {
        json.array { json in
            for path in self {
                json.element()
                json.text(path.bytes)
            }
        }
    }

    init(_ json: JSONValue) { self = json.array?.compactMap { $0.bytes.map(PathBytes.init) } ?? [] }

    /// Nil for none.
    var jsonText: [UInt8]? {
        guard !isEmpty else { return nil }
        var json = JSONOutput(capacity: 256)
        write(to: &json)
        return json.bytes
    }
}

extension ProcessFacts {
    fileprivate func write(to json: inout JSONOutput) {
        json.object { json in
            if let status {
                json.key("status")
                json.number(Int64(status))
            }
            if let signal {
                json.key("signal")
                json.number(Int64(signal))
            }
            json.key("request")
            json.string(request)
        }
    }

    fileprivate init?(_ json: JSONValue) {
        guard let request = json.text("request") else { return nil }
        self.init(
            status: json.integer("status").flatMap { Int32(exactly: $0) },
            signal: json.integer("signal").flatMap { Int32(exactly: $0) }, request: request)
    }
}

extension PreviousAttempt {
    var jsonText: [UInt8] {
        var json = JSONOutput(capacity: 128)
        json.object { json in
            json.key("attempt")
            json.number(Int64(attempt))
            json.key("outcome")
            json.string(outcome)
            if let message {
                json.key("message")
                json.string(message)
            }
            json.flag("unbegun", isUnbegun)
            json.flag("given_up", isGivenUp)
        }
        return json.bytes
    }

    init?(_ json: JSONValue) {
        guard let attempt = json.integer("attempt"), let outcome = json.text("outcome") else { return nil }
        self.init(attempt: Int(attempt), outcome: outcome, message: json.text("message"))
        isUnbegun = json.isSet("unbegun") || json.isSet("refusal")
        isGivenUp = json.isSet("given_up")
    }
}
