import Engine
import FileEvents
import PluginProtocol
import RuleLoading
import Rules

// Messages to the journal of systemd: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
extension Reporter {
    /// Sends a message with its facts; false when no journal takes it.
    func send(_ level: Level, _ message: String, help: String?, facts: [String: String]) -> Bool {
        let about = facts["rule"].map { "\(Display.text($0)): " } ?? ""
        let place = facts["file"].map { file in
            "\(Display.text(file)):\(facts["line"].map { "\($0):\(facts["column"] ?? "1"):" } ?? "") "
        }
        var fields = Self.fields("\(place ?? about)\(message)\(help.map { "; help: \($0)" } ?? "")", level.priority)
        for (name, value) in facts.sorted(by: { $0.key < $1.key }) {
            fields.append((Self.field(name), Array(value.utf8)))
        }
        return socket?.send(fields) ?? false
    }

    /// Sends what became of an attempt; false when no journal takes it.
    func send(_ report: AttemptReport) -> Bool {
        let priority =
            switch report.weight {
            case .error: Level.error.priority
            case .warning: Level.warning.priority
            default: Self.information
            }
        var fields = Self.fields(AttemptLine(report).story(hasColor: false), priority)
        let texts: [(name: String, text: String?)] = [
            ("RULE", report.rule), ("JOB", report.job.description), ("EVENT", report.event.rawValue),
            ("ATTEMPT", "\(report.attempt)"), ("ACTION", report.action), ("OUTCOME", report.outcome.ending.rawValue),
            ("STATE", report.state.rawValue), ("CODE", report.outcome.code),
        ]
        for (name, text) in texts {
            if let text { fields.append(("ALIGHT_\(name)", Array(text.utf8))) }
        }
        // Names of files are bytes, and a field may hold any.
        fields.append(("ALIGHT_PATH", report.path.bytes))
        if let from = report.from { fields.append(("ALIGHT_FROM", from.bytes)) }
        let (seconds, attoseconds) = report.duration.components
        fields.append(
            ("ALIGHT_DURATION_US", Array("\(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)".utf8)))
        return socket?.send(fields) ?? false
    }

    /// LOG_INFO of syslog(3).
    private static let information = 6

    private static func fields(_ message: String, _ priority: Int) -> [JournalSocket.Field] {
        [
            ("MESSAGE", Array(message.utf8)), ("PRIORITY", Array("\(priority)".utf8)),
            ("SYSLOG_IDENTIFIER", Array("alight".utf8)),
        ]
    }

    /// `ALIGHT_RULE`; what can't stand in the name of a field becomes `_`.
    private static func field(_ name: String) -> String {
        let letters = name.uppercased().unicodeScalars.map { scalar in
            ("A"..."Z").contains(scalar) || ("0"..."9").contains(scalar) ? Character(scalar) : "_"
        }
        return "ALIGHT_" + String(letters.prefix(48))
    }
}

extension Reporter.Level {
    /// As syslog(3) counts them.
    var priority: Int {
        switch self {
        case .debug: 7
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }
}
