import ArgumentParser
import Dashboard
import FileEvents
import Glibc
import PluginProtocol
import System

/// `alight log`: what a running Alight does, as it does it.
struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Follow the attempts of the running instance.",
        discussion: """
            Prints the lines that 'alight run' prints, until Ctrl-C or until the instance stops. 'alight jobs' lists \
            earlier jobs.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(
        name: .customShort("n"),
        help: ArgumentHelp("Start with the last N attempts of this run, at most 1000.", valueName: "n"))
    var recent = 10

    @Flag(help: "Print one JSON object per line.")
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
        var last: String?
        try client.said { () throws(ControlClient.Problem) in
            last = try follow(client, "recent=\(recent)", after: nil)
        }
        // Alight drops who doesn't read for long, as a terminal that was stopped with Ctrl-S: it is asked for the rest.
        while let seen = last {
            do throws(ControlClient.Problem) {
                last = try follow(client, "last_event_id=\(seen)", after: seen)
            } catch {
                guard case .refused = error else { break }
                let problem = error
                try client.said { () throws(ControlClient.Problem) -> Void in throw problem }
            }
            // One that is ending may let in and drop again.
            if last == seen { usleep(100_000) }
        }
        Output.error.write("the instance has stopped")
    }

    /// Writes what is told until the connection ends.
    ///
    /// - Returns: The id of the last event that was told.
    private func follow(
        _ client: ControlClient, _ begin: String, after seen: String?
    ) throws(ControlClient.Problem) -> String? {
        let hasColor = Output.standard.hasColor
        var last = seen
        try client.follow("/v1/events?only=attempt&\(begin)") { kind, id, data in
            last = id ?? last
            if kind == "gap" { Output.error.write("some lines may be missing here: this was behind for too long") }
            guard kind == "attempt" else { return }
            let attempt = json ? nil : JSONLine.object(data).flatMap { AttemptLine($0) }
            let line = attempt?.text(hasColor: hasColor) ?? data
            if Output.standard.write(line) != .whole { Output.standard.exit(Output.checked(.done)) }
        }
        return last
    }
}

/// What another Alight has said in JSON.
enum JSONLine {
    static func object(_ text: String) -> [String: JSONValue]? { JSONValue(record: text.utf8)?.object }

    /// A number as far as an Alight can mean it, which every count and duration can hold: somebody else may have answered.
    static func bounded(_ number: Double?) -> Double {
        guard let number, !number.isNaN else { return 0 }
        return max(0, min(number, 1e12))
    }

    /// The path of an object, by its bytes where it isn't text.
    static func path(_ object: [String: JSONValue], _ name: String = "path") -> PathBytes? {
        object.bytes(name).map { PathBytes($0) }
    }

    /// A moment; nil for what is none.
    static func time(_ text: String) -> Timestamp? {
        // A fraction of a second is nothing that is shown.
        try? TimeText.parse("\(text.prefix(19))Z", now: Timestamp(seconds: 0, nanoseconds: 0))
    }
}
