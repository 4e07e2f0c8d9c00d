import FileEvents
import Foundation
import System
import TestKit

/// The command that reports the events, and the format of its lines.
enum EventSource: String, CaseIterable {
    /// `alight run --log-format json`, with a rule that logs the metadata of every event.
    case run
    /// `alight watch --json`, which first reports existing files.
    case watch

    /// Whether the first lines report existing files; otherwise they are taken as known.
    var reportsExisting: Bool { self == .watch }

    /// Returns the arguments of the program.
    ///
    /// The files that they name are written to the directory of the run.
    func arguments(_ mode: Mode, in directory: PathBytes) -> [String] {
        switch self {
        case .run:
            TestFile.write(directory.appending("rules.yaml"), Self.rules(mode))
            return ["run", "rules.yaml", "--log-format", "json"]
        case .watch:
            let backend =
                switch mode {
                case .poll: ["--backend", "poll", "--poll", "200ms"]
                case .limit: ["--poll", "200ms"]
                case .plain, .overflow, .slow, .unreadable: [] as [String]
                }
            return ["watch", "--json", "--existing", "--hidden", "--settle", "60ms"] + backend
                + Universe.roots.map { "tree/\($0)" }
        }
    }

    private static func rules(_ mode: Mode) -> String {
        let paths = Universe.roots.map { "\"tree/\($0)/**\"" }.joined(separator: ", ")
        let backend =
            switch mode {
            case .poll: "\n    backend: poll\n    poll: 200ms"
            case .limit: "\n    poll: 200ms"
            case .plain, .overflow, .slow, .unreadable: ""
            }
        return """
            rules:
              - name: mirror
                path: [\(paths)]
                types: [any]
                hidden: true
                ignore_defaults: false
                ignore_partial: false
                events: [created, modified, moved, deleted, attributes]
                settle: 60ms\(backend)
                action: { use: log, with: { message: "${type} ${size} ${mode} ${nlink} ${id} ${mtime}" } }
            """ + "\n"
    }

    /// A line of `run` on standard output.
    private struct RunLine: Decodable {
        var event: String
        var path: String
        var path_base64: String?
        var from: String?
        var from_base64: String?
        var outcome: String
        var state: String
        var message: String
    }

    /// A line of `watch --json`.
    private struct WatchLine: Decodable {
        var event: String
        var path: String
        var path_base64: String?
        var from: String?
        var from_base64: String?
        var type: String
        var size: UInt64
        var mode: String
        var nlink: UInt32
        var id: String
        var mtime: String

        var metadata: Metadata {
            Metadata(type: type, size: size, mode: mode, links: nlink, identity: id, modified: mtime)
        }
    }

    struct InvalidLine: Error, CustomStringConvertible {
        var description: String
    }

    /// Parses one line of standard output.
    ///
    /// - Parameters:
    ///   - line: The line, without its newline.
    ///   - number: The line number.
    /// - Returns: The event.
    /// - Throws: `InvalidLine` for a line that is not an event.
    func read(_ line: ArraySlice<UInt8>, number: Int) throws(InvalidLine) -> ReportedEvent {
        switch self {
        case .run:
            let (reported, kind) = try Self.decode(RunLine.self, \.event, line, number)
            let metadata = reported.outcome == "succeeded" ? Self.metadata(reported.message) : nil
            return ReportedEvent(
                number: number, kind: kind, path: Self.path(reported.path, reported.path_base64),
                from: reported.from.map { Self.path($0, reported.from_base64) }, metadata: metadata,
                isRepeated: reported.state == "pending", isSkipped: reported.state == "skipped")
        case .watch:
            let (reported, kind) = try Self.decode(WatchLine.self, \.event, line, number)
            return ReportedEvent(
                number: number, kind: kind, path: Self.path(reported.path, reported.path_base64),
                from: reported.from.map { Self.path($0, reported.from_base64) }, metadata: reported.metadata)
        }
    }

    private static func decode<Line: Decodable>(
        _ type: Line.Type, _ event: (Line) -> String, _ line: ArraySlice<UInt8>, _ number: Int
    ) throws(InvalidLine) -> (Line, EventKind) {
        guard let reported = try? JSONDecoder().decode(type, from: Data(line)),
            let kind = EventKind(rawValue: event(reported))
        else {
            throw InvalidLine(description: "line \(number) is not an event: \(String(decoding: line, as: UTF8.self))")
        }
        return (reported, kind)
    }

    private static func path(_ text: String, _ base64: String?) -> PathBytes {
        base64.flatMap { Data(base64Encoded: $0) }.map { PathBytes($0) } ?? PathBytes(text)
    }

    private static func metadata(_ message: String) -> Metadata? {
        let words = message.split(separator: " ").map(String.init)
        guard words.count == 6, let size = UInt64(words[1]), let links = UInt32(words[3]) else { return nil }
        return Metadata(
            type: words[0], size: size, mode: words[2], links: links, identity: words[4], modified: words[5])
    }
}
