package import JSON
import PluginProtocol
package import Rules

// A part of the string in the column `steps` of a job, without the log.
extension Outcome: JSONRecord {
    package static var blank: Outcome { Outcome(.failed) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("outcome", &ending)
        json.member("message", &message)
        json.member("code", &code)
        json.member("retry_after", &retryAfter)
        json.member(list: "outputs", &outputs)
        json.member(list: "changes", &changes)
        var values = values.isEmpty ? nil : values
        json.member("values", &values)
        self.values = values ?? [:]
        json.member("process", &process)
        json.member(flag: "interrupted", &isInterrupted)
    }
}

extension ProcessFacts: JSONRecord {
    package static var blank: ProcessFacts { ProcessFacts(request: "") }

    package mutating func code(with json: inout JSONCoder) {
        json.member("status", &status)
        json.member("signal", &signal)
        json.member("request", &request)
    }
}
