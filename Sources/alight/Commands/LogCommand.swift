import ArgumentParser
import Dashboard
import FileEvents
import Foundation
import PluginProtocol

/// `alight log`: what a running Alight does, as it does it.
struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Follow what a running Alight does: one line an attempt.",
        discussion: """
            The lines are those of 'alight run'. It goes on until Ctrl-C, or until Alight ends; 'alight jobs' has what \
            was done before.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(
        name: .customShort("n"),
        help: ArgumentHelp("Begin with the last so many attempts of this run, at most 1000.", valueName: "n"))
    var recent = 10

    @Flag(help: "Print one JSON object a line.")
    var json = false

    @OptionGroup var choice: ControlChoice

    func validate() throws {
        try choice.check()
        guard (0...1000).contains(recent) else {
            throw ValidationError("'-n \(recent)' is not between 0 and 1000")
        }
    }

    func run() throws {
        Signals.endUsually()
        let client = try choice.client()
        let hasColor = Output.standard.hasColor
        try client.said { () throws(ControlClient.Problem) in
            try client.follow("/v1/events?only=attempt&recent=\(recent)") { kind, _, data in
                guard kind == "attempt" else { return }
                let attempt = json ? nil : JSONLine.object(data).flatMap { AttemptLine($0) }
                let line = attempt?.text(hasColor: hasColor) ?? data
                if Output.standard.write(line) != .whole { Output.standard.exit(.done) }
            }
        }
        Output.error.write("Alight has ended")
    }
}

/// What another Alight has said in JSON.
enum JSONLine {
    static func object(_ text: String) -> [String: JSONValue]? { JSONText.value(of: Array(text.utf8))?.object }

    /// The path of an object, by its bytes where it isn't text.
    static func path(_ object: [String: JSONValue], _ name: String = "path") -> PathBytes? {
        if let bytes = object["\(name)_base64"]?.string.flatMap({ Data(base64Encoded: $0) }) { return PathBytes(bytes) }
        return object[name]?.string.map { PathBytes($0) }
    }

    /// A moment; nil for what is none.
    static func time(_ text: String) -> Timestamp? {
        // A fraction of a second is nothing that is shown.
        try? TimeText.parse("\(text.prefix(19))Z", now: Timestamp(seconds: 0, nanoseconds: 0))
    }
}
