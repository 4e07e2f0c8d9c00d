import ArgumentParser
import Glibc
import PluginProtocol

/// `alight status`: how it stands with a running Alight.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract:
            "Say how it stands with a running Alight: what it watches and by what means, what waits, what failed.",
        discussion: """
            Of each root it says whether the kernel tells of changes or it is polled, and why; of the last comparison of \
            everything what it found that no event had told. What is wrong is listed first, and ends it with 6.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage, .degraded]))
            """)

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Show it anew every second, until Ctrl-C.")
    var watch = false

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws {
        Signals.endUsually()
        let client = try choice.client()
        if watch { try StatusView(client, isJSON: json).run() }
        let status = try client.said { () throws(ControlClient.Problem) in try client.ask("GET", "/v1/status") }
        if json {
            Output.standard.write(Reporter.json(status))
        } else {
            let report = StatusReport(status, hasColor: Output.standard.hasColor)
            Output.standard.write(report.lines.joined(separator: "\n"))
        }
        throw Exit(status.object?["degraded"]?.bool == true ? .degraded : .done)
    }
}
