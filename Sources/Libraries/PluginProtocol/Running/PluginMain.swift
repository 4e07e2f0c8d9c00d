#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The implementation of the protocol for a plugin.
struct PluginMain<Work: Plugin>: Sendable {
    private let plugin: Work

    init(_ plugin: Work) { self.plugin = plugin }

    /// Runs the verb given by the arguments, and exits.
    func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        // The exit of the host is detected by the end of standard input.
        signal(SIGPIPE) { _ in }
        let output = ProtocolOutput.claim()
        switch arguments {
        case ["describe"] where Work.description != nil:
            output.send(line: Work.description?.json ?? .null)
            exit(0)
        case ["run"]: exit(await run(output))
        case ["serve"]: await ServeLoop(plugin, output).run()
        default:
            let describe = Work.description == nil ? "" : "describe | "
            let name = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "plugin"
            ProtocolOutput.error.send(Array("usage: \(name) \(describe)run | serve\n".utf8))
            exit(Self.usage)
        }
    }

    // sysexits.h
    private static var usage: Int32 { 64 }
    private static var badData: Int32 { 65 }

    private func run(_ output: ProtocolOutput) async -> Int32 {
        let input = await ProtocolInput.whole()
        guard let value = JSONValue(record: input) else {
            PluginReport.log(.error, "not a request of the protocol: it is not JSON, or is nested too deeply")
            return Self.badData
        }
        let request: PluginRequest
        do throws(JSONError) {
            request = try PluginRequest(reading: value)
        } catch {
            PluginReport.log(.error, "not a request of the protocol: it \(error.clause)")
            return Self.badData
        }
        let plugin = plugin
        let work = Task {
            await plugin.answer(to: request) { fraction, message in
                ProtocolOutput.error.send(line: JSONValue(members: ["progress": fraction, "message": message]))
            }
        }
        EndSignal.handle { work.cancel() }
        output.send(line: await work.value)
        return 0
    }
}

extension Plugin {
    /// Returns the response to the request; errors become responses.
    ///
    /// Not optimized: Swift 6.3.1 compiles an inlined `TaskLocal.withValue` in an asynchronous generic function to a
    /// push through a bad pointer.
    @_optimize(none)
    func answer(
        to request: PluginRequest, progress: @escaping PluginReport.Progress
    ) async -> PluginResponse {
        do {
            return try await PluginReport.$progressSink.withValue(progress) { try await handle(request) }
        } catch let failure as PluginFailure {
            return failure.response
        } catch is CancellationError {
            return PluginResponse(.retry, message: "it was stopped before it finished", code: "cancelled")
        } catch {
            return PluginResponse(.failed, message: "\(error)", code: "error")
        }
    }
}
