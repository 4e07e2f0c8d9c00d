import FoundationEssentials
import Synchronization

/// Answers the requests of a `serve` process.
///
/// `ping` and `cancel` are dealt with on the thread that reads, so that they get
/// through also where all cooperative threads are blocked by the plugin's work.
final class ServeLoop<Work: Plugin>: Sendable {
    private struct State {
        var open: [String: Task<Void, Never>] = [:]
        var hasEnded = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let plugin: Work
    private let output: ProtocolOutput
    private let state = Mutex(State())

    init(_ plugin: Work, _ output: ProtocolOutput) {
        self.plugin = plugin
        self.output = output
    }

    /// Serves until standard input ends or SIGTERM comes, and every request has its result.
    func run() async {
        EndSignal.take {
            self.cancelAll()
            self.end()
        }
        ProtocolInput.lines({ self.take($0) }, end: { self.end() })
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.hasEnded, state.open.isEmpty { return true }
                state.waiting = continuation
                return false
            }
            if isDone { continuation.resume() }
        }
    }

    // MARK: - Messages

    private func take(_ line: [UInt8]) {
        guard let message = JSONValue(record: line),
            let members = message.object, let type = members["type"]?.string
        else {
            PluginReport.log(.warning, "a line of standard input is no message of the protocol")
            return
        }
        switch type {
        case "hello":
            write([
                "type": "ready", "protocol": .integer(Int64(ProtocolVersion.current)),
                "concurrent": .integer(Int64(Work.concurrent)),
            ])
        case "ping": write(["type": "pong", "n": members["n"] ?? .null])
        case "cancel": state.withLock { $0.open[members["id"]?.string ?? ""] }?.cancel()
        case "run": begin(line, id: members["id"]?.string)
        // Version 1 grows: what is unknown is left alone.
        default: break
        }
    }

    private func begin(_ line: [UInt8], id: String?) {
        let request: PluginRequest
        do {
            request = try JSONDecoder().decode(PluginRequest.self, from: Data(line))
        } catch {
            guard let id else { return }
            let response = PluginResponse(
                .failed, message: "not a request of the protocol: \(error)", code: "bad-request")
            output.write(line: Result(id: id, attempt: nil, response: response))
            return
        }
        // Held until the task is known, for its end looks for it.
        let isTwice = state.withLock { state in
            guard state.open[request.id] == nil else { return true }
            state.open[request.id] = Task { await self.work(request) }
            return false
        }
        if isTwice { PluginReport.log(.warning, "the request \(request.id) is open already") }
    }

    private func work(_ request: PluginRequest) async {
        let output = output
        let response = await plugin.answer(to: request) { progress in
            var message: [String: JSONValue] = [
                "type": "progress", "id": .string(request.id), "fraction": .number(progress.fraction),
            ]
            if let text = progress.message { message["message"] = .string(text) }
            output.write(line: JSONValue.object(message))
        }
        output.write(line: Result(id: request.id, attempt: request.attempt, response: response))
        finish { $0.open[request.id] = nil }
    }

    private func write(_ message: [String: JSONValue]) { output.write(line: JSONValue.object(message)) }

    // MARK: - The end

    private func cancelAll() {
        for task in state.withLock({ Array($0.open.values) }) { task.cancel() }
    }

    private func end() { finish { $0.hasEnded = true } }

    private func finish(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            change(&state)
            guard state.hasEnded, state.open.isEmpty else { return nil }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    /// A response with the members that say what it answers.
    private struct Result: Encodable {
        var id: String
        var attempt: Int?
        var response: PluginResponse

        private enum CodingKeys: String, CodingKey { case type, id, attempt }

        func encode(to encoder: any Encoder) throws {
            try response.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode("result", forKey: .type)
            try container.encode(id, forKey: .id)
            try container.encodeIfPresent(attempt, forKey: .attempt)
        }
    }
}
