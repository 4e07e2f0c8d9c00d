import Glibc
import PluginProtocol

/// A plugin for the tests of `Plugin`; the parameter `play` selects its behavior.
@main struct StubPlugin: Plugin {
    static var description: PluginDescription? {
        var description = PluginDescription(name: "stub", version: "1", parameters: nil)
        description.modes = ["run", "serve"]
        description.concurrent = 8
        description.rawPaths = true
        return description
    }

    struct Mistake: Error, CustomStringConvertible {
        var description: String { "a mistake" }
    }

    func handle(_ request: PluginRequest) async throws -> PluginResponse {
        guard let event = request.events.first else { throw Mistake() }
        switch request.parameters(for: event)["play"]?.string {
        case "retry": throw PluginFailure.retry("busy", after: 5, code: "busy")
        case "not-ready": throw PluginFailure.notReady("not yet")
        case "skipped": throw PluginFailure.skipped("nothing to do")
        case "failed": throw PluginFailure.failed("no", code: "no")
        case "mistake": throw Mistake()
        case "print":
            print("this is no response")
            PluginReport.log(.warning, "two\nlines")
            PluginReport.progress(0.5, "half")
        case "wait":
            // The request waits until it is cancelled.
            try await Task.sleep(for: .seconds(600))
        case "block":
            // Like a blocking system call, this occupies a thread of Swift's pool.
            while access("\(request.rule.file).go", F_OK) != 0 { usleep(5_000) }
        case "stubborn": while true { usleep(5_000) }
        default: break
        }
        let to = request.pathBytes("to", for: event)
        return PluginResponse(
            .succeeded, outputs: [PluginPath(bytes: event.pathBytes)] + (to.map { [PluginPath(bytes: $0)] } ?? []))
    }
}
