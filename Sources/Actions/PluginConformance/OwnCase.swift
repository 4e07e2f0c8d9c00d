import ActionAPI
import JSON
import Plugins
import Programs
import Rules
import System

extension ConformanceCases {
    /// Calls the plugin for its own case: `request.json`, and the expected answer in `response.json`.
    func verdictOnOwnCase() throws(HandlerProblem) -> ConformanceCheck.Verdict {
        guard let directory = plugin.directory, Self.content(of: directory.appending("request.json")) != nil else {
            return .skipped("there is no request.json")
        }
        guard let shown = shownRequest, shown.object != nil else {
            return .failed("request.json is not JSON", help: "write a request as docs/plugin-protocol.md describes it")
        }
        guard let expected = Self.content(of: directory.appending("response.json")).flatMap({ JSONValue(json: $0) })
        else {
            return .failed("response.json is missing or not JSON", help: "write the members that the answer must have")
        }
        let stage = try stage("own-case")
        let request = ConformanceToken.replaced(in: shown, by: stage.files).object ?? [:]
        var command = command("run", in: stage, input: request.input, for: request)
        if let scratch = request["scratch"]?.string {
            ConformanceStage.makeDirectory(PathBytes(scratch))
            command.directory = ProgramPath(PathBytes(scratch))
        }
        let reply = reply(to: command, title: "own-case")
        if let problem = reply.problem { return .failed(problem.why, help: problem.help) }
        if case .exited(let status) = reply.ended.termination, status != 0 {
            return .failed("it exited with status \(status)\(reply.lastLine)", help: "exit with status 0")
        }
        let answer = reply.ended.output.isEmpty ? ["outcome": "succeeded"] : JSONValue(json: reply.ended.output)
        guard let answer else { return .skipped("its output is not a response, see above") }
        let wanted = ConformanceToken.replaced(in: expected, by: stage.files)
        if let difference = Self.difference(wanted, answer, "the response") {
            return .failed(difference, help: "fix the plugin, or correct response.json")
        }
        return .passed(reply.shown)
    }

    /// Returns the first member of `expected` that is missing or different in `actual`; additional members are ignored.
    private static func difference(_ expected: JSONValue, _ actual: JSONValue, _ location: String) -> String? {
        switch (expected, actual) {
        case (.object(let wanted), .object(let members)):
            for (key, value) in wanted.sorted(by: { $0.key < $1.key }) {
                let inner = location == "the response" ? "'\(key)'" : "\(location.dropLast()).\(key)'"
                guard let member = members[key] else { return "\(inner) is missing, \(value.shown) is expected" }
                if let found = difference(value, member, inner) { return found }
            }
            return nil
        case (.array(let wanted), .array(let elements)):
            guard wanted.count == elements.count else {
                return "\(location) has \(elements.count) elements, \(wanted.count) are expected"
            }
            for (index, pair) in zip(wanted, elements).enumerated() {
                if let found = difference(pair.0, pair.1, "\(location.dropLast())[\(index)]'") { return found }
            }
            return nil
        default:
            let isSame =
                expected.double.flatMap { wanted in actual.double.map { $0 == wanted } } ?? (expected == actual)
            return isSame ? nil : "\(location) is \(actual.shown), \(expected.shown) is expected"
        }
    }
}
