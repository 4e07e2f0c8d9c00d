import JSON
import Synchronization

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Answers the requests of a `serve` process.
///
/// `ping` and `cancel` are handled on the reading thread, so that they work even if
/// the plugin's work blocks all cooperative threads.
final class ServeLoop<Work: Plugin>: Sendable {
    private struct State {
        var open: [String: Task<Void, Never>] = [:]
        var hasEnded = false
    }

    private let plugin: Work
    private let output: ProtocolOutput
    private let state = Mutex(State())

    init(_ plugin: Work, _ output: ProtocolOutput) { (self.plugin, self.output) = (plugin, output) }

    /// Serves until standard input ends or SIGTERM arrives, and every request has its result; then exits.
    func run() async -> Never {
        EndSignal.handle {
            self.cancelAll()
            self.end()
        }
        ProtocolInput.lines({ self.take($0) }, end: { self.end() })
        while true { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    }

    // MARK: - Messages

    private func take(_ line: [UInt8]) {
        guard let members = JSONValue(record: line)?.object, let type = members["type"]?.string else {
            PluginReport.log(.warning, "a line of standard input is not a message of the protocol")
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
        case "run": start(members)
        // Version 1 may be extended: unknown messages are ignored.
        default: break
        }
    }

    private func start(_ members: [String: JSONValue]) {
        let request: PluginRequest
        do throws(JSONError) {
            request = try PluginRequest(reading: .object(members))
        } catch {
            guard let id = members["id"]?.string else { return }
            let message = "not a request of the protocol: it \(error.clause)"
            write(PluginResponse(.failed, message: message, code: "bad-request"), to: id, attempt: nil)
            return
        }
        // The lock is held until the task is stored, because the task looks for itself when it finishes.
        let isTwice = state.withLock { state in
            guard state.open[request.id] == nil else { return true }
            state.open[request.id] = Task { await self.work(request) }
            return false
        }
        if isTwice { PluginReport.log(.warning, "the request \(request.id) is open already") }
    }

    private func work(_ request: PluginRequest) async {
        let output = output
        let response = await plugin.answer(to: request) { fraction, message in
            output.send(
                line: JSONValue(members: [
                    "type": "progress", "id": request.id, "fraction": fraction, "message": message,
                ]))
        }
        write(response, to: request.id, attempt: request.attempt)
        finish { $0.open[request.id] = nil }
    }

    private func write(_ message: [String: JSONValue]) { output.send(line: message) }

    /// Writes a response with the members that identify its request.
    private func write(_ response: PluginResponse, to id: String, attempt: Int?) {
        var message = response.json.object ?? [:]
        message["type"] = "result"
        message["id"] = .string(id)
        message["attempt"] = attempt.map { .integer(Int64($0)) }
        write(message)
    }

    // MARK: - Shutdown

    private func cancelAll() { for task in state.withLock({ Array($0.open.values) }) { task.cancel() } }

    private func end() { finish { $0.hasEnded = true } }

    private func finish(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            if state.hasEnded, state.open.isEmpty { exit(0) }
        }
    }
}
