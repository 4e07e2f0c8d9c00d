import ArgumentParser
import Glibc
import JSON

/// `alight status`: shows the status of the running instance.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the status of the running instance: its roots, queue and failed jobs.",
        discussion: """
            Problems come first; with one, the exit status is 6. For each root, shows whether inotify reports changes \
            or it is polled, and why. For the last rescan, shows how many changes it found that no event had reported.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage, .degraded]))
            """)

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Refresh every second, until Ctrl-C.")
    var watch = false

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws {
        Signals.endUsually()
        let client = try choice.client()
        if watch { try StatusView(client, isJSON: json).run() }
        let status = try client.ask("GET", "/v1/status")
        if json {
            Output.standard.write(status.line)
        } else {
            let report = StatusReport(status, hasColor: Output.standard.hasColor)
            Output.standard.write(report.lines.joined(separator: "\n"))
        }
        throw Exit(status.object?["degraded"]?.bool == true ? .degraded : .done)
    }
}
