import ArgumentParser
import Glibc
import JSON
import System

/// `alight log`: follows the attempts of the running instance.
struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log", abstract: "Follow the attempts of the running instance.",
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
        guard (0...1000).contains(recent) else { throw ValidationError("'-n \(recent)' is not between 0 and 1000") }
    }

    func run() throws {
        Signals.endUsually()
        let client = try choice.client()
        var last: String?
        last = try follow(client, "recent=\(recent)", after: nil)
        // The instance disconnects clients that do not read for a long time, such as one on a terminal stopped with
        // Ctrl-S. Reconnect and request the remaining events.
        while let seen = last {
            do throws(ControlClient.Problem) {
                last = try follow(client, "last_event_id=\(seen)", after: seen)
            } catch {
                guard error.isRefused else { break }
                throw error
            }
            // An instance that is shutting down may accept and close the connection again; do not spin.
            if last == seen { usleep(100_000) }
        }
        Output.error.write("the instance has stopped")
    }

    /// Writes the attempts that the instance reports until the connection closes.
    ///
    /// - Returns: The id of the last event received.
    private func follow(
        _ client: ControlClient, _ begin: String, after seen: String?
    ) throws(ControlClient.Problem) -> String? {
        let hasColor = Output.standard.hasColor
        var last = seen
        try client.follow("/v1/events?only=attempt&\(begin)") { kind, id, data in
            last = id ?? last
            if kind == "gap" { Output.error.write("some lines may be missing here: the output was too slow") }
            guard kind == "attempt" else { return }
            let attempt = json ? nil : JSONLine.object(data).flatMap { AttemptLine($0) }
            let line = attempt?.text(hasColor: hasColor) ?? data
            if Output.standard.write(line) != .whole { Output.standard.exit(Output.checked(.done)) }
        }
        return last
    }
}

/// Values in the JSON of another Alight process.
enum JSONLine {
    static func object(_ text: String) -> [String: JSONValue]? { JSONValue(record: text.utf8)?.object }

    /// Clamps a number to 0...10¹², which every count and duration can represent; the peer may be another program.
    static func bounded(_ number: Double?) -> Double {
        guard let number, !number.isNaN else { return 0 }
        return max(0, min(number, 1e12))
    }

    /// Returns the path in an object, from its bytes if it is not UTF-8.
    static func path(_ object: [String: JSONValue], _ name: String = "path") -> PathBytes? {
        object.bytes(name).map { PathBytes($0) }
    }

    /// Parses a timestamp; returns nil if it is invalid.
    static func time(_ text: String) -> Timestamp? {
        // Fractions of a second are not displayed.
        try? TimeText.parse("\(text.prefix(19))Z", now: Timestamp(seconds: 0, nanoseconds: 0))
    }
}
