import FileEvents
import Foundation
import PluginProtocol
import Rules

extension PluginConformance {
    /// Plays the plugin's own case: `request.json`, and what `response.json` says of the answer.
    func checkCase() throws(HandlerProblem) {
        let (name, title) = ("own-case", "request.json is answered by response.json")
        guard let folder = ownFolder, let shown = shownRequest else {
            let problem = ownFolder.map { Self.content(of: $0.appending("request.json")) != nil } ?? false
            guard problem else { return tell(name, title, .skipped("there is no request.json")) }
            return tell(
                name, title,
                .failed("request.json is not JSON", help: "write a request as docs/plugin-protocol.md has it"))
        }
        guard let data = Self.content(of: folder.appending("response.json")),
            let expected = JSONValue(json: data)
        else {
            return tell(
                name, title,
                .failed("there is no response.json that is JSON", help: "write the members that the answer has to have")
            )
        }
        let stage = try stage(name)
        let value = ConformanceToken.replaced(in: shown, by: stage.files)
        guard let request = try? JSONEncoder().encode(value) else { return }
        let first = value.object?["events"]?.array?.first?.object
        // Members may be left out there that a request always has.
        var environment = stage.environment(surroundings, request: nil, event: nil)
        func add(_ name: String, _ text: String?) { environment.append((name, Array((text ?? "").utf8))) }
        add("ALIGHT_PROTOCOL", "\(ProtocolVersion.current)")
        add("ALIGHT_ID", value.object?["id"]?.string)
        add("ALIGHT_ATTEMPT", value.object?["attempt"]?.double.map { "\(Int($0))" } ?? "1")
        add("ALIGHT_RULE", value.object?["rule"]?.object?["name"]?.string)
        add("ALIGHT_EVENT", first?["event"]?.string)
        add("ALIGHT_PATH", first?["path"]?.string)
        add("ALIGHT_FROM", first?["from"]?.string)
        add("ALIGHT_ROOT", first?["root"]?.string)
        add("ALIGHT_RELATIVE", first?["relative"]?.string)
        add("ALIGHT_REASON", value.object?["previous"]?.object?["message"]?.string)
        var command = command(
            "run", in: stage, input: Array(request) + [UInt8(ascii: "\n")], environment: environment)
        if let scratch = value.object?["scratch"]?.string {
            try? FileManager.default.createDirectory(
                atPath: scratch, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            command.directory = ProgramPath(PathBytes(scratch))
        }
        command.environment.append(("ALIGHT_SCRATCH", command.directory.path.bytes))
        var reply = ConformanceReply(
            title: title, ended: launcher.run(command, stop: StopSignal()), folder: command.directory.path)
        reply.limit = timeout
        if let fault = reply.fault { return tell(name, title, .failed(fault.why, help: fault.help)) }
        if case .exited(let status) = reply.ended.way, status != 0 {
            return tell(
                name, title, .failed("it ended with status \(status)\(reply.said)", help: "end with status 0"))
        }
        let answer: JSONValue
        if reply.ended.output.isEmpty {
            answer = ["outcome": "succeeded"]
        } else if let value = JSONValue(json: reply.ended.output) {
            answer = value
        } else {
            return tell(name, title, .skipped("what it prints is no response, see above"))
        }
        let wanted = ConformanceToken.replaced(in: expected, by: stage.files)
        if let difference = Self.difference(wanted, answer, "the response") {
            tell(name, title, .failed(difference, help: "mend the plugin, or write what is right into response.json"))
        } else {
            tell(name, title, .passed(reply.shown))
        }
    }

    /// The first member of `expected` that `actual` lacks or has otherwise; more members are none of it.
    private static func difference(_ expected: JSONValue, _ actual: JSONValue, _ place: String) -> String? {
        switch (expected, actual) {
        case (.object(let wanted), .object(let members)):
            for (key, value) in wanted.sorted(by: { $0.key < $1.key }) {
                let inner = place == "the response" ? "'\(key)'" : "\(place.dropLast()).\(key)'"
                guard let member = members[key] else { return "\(inner) is missing, \(value.shown) is expected" }
                if let found = difference(value, member, inner) { return found }
            }
            return nil
        case (.array(let wanted), .array(let elements)):
            guard wanted.count == elements.count else {
                return "\(place) has \(elements.count) elements, \(wanted.count) are expected"
            }
            for (index, pair) in zip(wanted, elements).enumerated() {
                if let found = difference(pair.0, pair.1, "\(place.dropLast())[\(index)]'") { return found }
            }
            return nil
        default:
            let isSame =
                expected.double.flatMap { wanted in actual.double.map { $0 == wanted } } ?? (expected == actual)
            return isSame ? nil : "\(place) is \(actual.shown), \(expected.shown) is expected"
        }
    }
}
