package import FileEvents
import Glibc
package import RegularExpressions
package import System

/// A value of the event or the job that a template can refer to.
package enum Placeholder: Sendable, Hashable {
    case path, name, stem, `extension`, directory, relative, root, rule, event, from, job, attempt
    case type, size, mode, nlink, inode, id
    /// `${mtime:FORMAT}`: strftime(3) in local time; without a format, RFC 3339 in UTC.
    case mtime(format: String?)
    /// `${now:FORMAT}`: the same for the start of the attempt.
    case now(format: String?)
    /// `${steps.N.outputs.M}`: the M-th output of the N-th step of the list, both from 0.
    case stepOutput(step: Int, output: Int)
    /// `${1}` to `${99}`: the capture of a group of a regular expression.
    case group(Int)
    /// `${match.NAME}`: the capture of a named group.
    case namedGroup(String)

    private static let plain: [String: Placeholder] = [
        "path": .path, "name": .name, "stem": .stem, "extension": .extension, "directory": .directory,
        "relative": .relative, "root": .root, "rule": .rule, "event": .event, "from": .from, "job": .job,
        "attempt": .attempt, "type": .type, "size": .size, "mode": .mode, "nlink": .nlink, "inode": .inode, "id": .id,
        "mtime": .mtime(format: nil), "now": .now(format: nil),
    ]

    /// Creates the placeholder of a word between `${` and `}`; nil for an unknown word.
    package init?(word: String) {
        func argument(of prefix: String) -> String? {
            word.hasPrefix(prefix) && word != prefix ? String(word.dropFirst(prefix.count)) : nil
        }
        let parts = word.split(separator: ".", omittingEmptySubsequences: false)
        if let plain = Self.plain[word] {
            self = plain
        } else if let format = argument(of: "mtime:") {
            self = .mtime(format: format)
        } else if let format = argument(of: "now:") {
            self = .now(format: format)
        } else if let number = Self.index(word[...]), word.first != "0", number < 100 {
            self = .group(number)
        } else if let name = argument(of: "match.") {
            self = .namedGroup(name)
        } else if parts.count == 4, parts[0] == "steps", parts[2] == "outputs", let step = Self.index(parts[1]),
            let output = Self.index(parts[3])
        {
            self = .stepOutput(step: step, output: output)
        } else {
            return nil
        }
    }

    /// The placeholder as it is written: `path`, `mtime:%Y`, `steps.0.outputs.0`.
    package var word: String {
        switch self {
        case .mtime(let format): format.map { "mtime:\($0)" } ?? "mtime"
        case .now(let format): format.map { "now:\($0)" } ?? "now"
        case .stepOutput(let step, let output): "steps.\(step).outputs.\(output)"
        case .group(let number): "\(number)"
        case .namedGroup(let name): "match.\(name)"
        default: "\(self)"
        }
    }

    /// Whether it is a capture of a group of a regular expression.
    package var isCapture: Bool {
        switch self {
        case .group, .namedGroup: true
        default: false
        }
    }

    /// Whether the value contains text that the creator of a file chooses: a part of its path, or what was made of it.
    package var carriesFileText: Bool {
        switch self {
        case .path, .name, .stem, .extension, .directory, .relative, .from, .stepOutput, .group, .namedGroup: true
        case .root, .rule, .event, .job, .attempt, .type, .size, .mode, .nlink, .inode, .id, .mtime, .now: false
        }
    }

    /// A number that consists of digits; `Int` would also accept a sign.
    private static func index(_ text: Substring) -> Int? {
        text.utf8.allSatisfy(\.isDigit) ? Int(text) : nil
    }

    /// The valid words in a rules file, for messages.
    package static var words: [String] {
        plain.keys.sorted() + ["mtime:FORMAT", "now:FORMAT", "env:NAME", "steps.N.outputs.0", "1", "match.NAME"]
    }
}

/// The values of placeholders.
package struct PlaceholderValues: Sendable {
    package var event: FileEvent
    package var rule: String
    package var job: String
    package var attempt: Int
    package var now: Timestamp
    /// The outputs of the previous steps.
    package var stepOutputs: [[PathBytes]]
    /// The captures of the rule's regular expressions.
    package var captures: Captures

    package init(
        event: FileEvent, rule: String, job: String, attempt: Int, now: Timestamp, stepOutputs: [[PathBytes]] = [],
        captures: Captures = Captures()
    ) {
        (self.event, self.rule, self.job, self.attempt, self.now) = (event, rule, job, attempt, now)
        (self.stepOutputs, self.captures) = (stepOutputs, captures)
    }

    /// Returns the value as bytes; empty if the event has no such value.
    package func value(of placeholder: Placeholder) -> [UInt8] {
        switch placeholder {
        case .path: return event.path.bytes
        case .name: return Array(event.path.lastComponent)
        case .stem: return Array(splitName.stem)
        case .extension: return Array(splitName.extension)
        case .directory: return event.path.parent.bytes
        case .relative: return Array(event.path.relative(to: event.root) ?? event.path.lastComponent)
        case .root: return event.root.bytes
        case .rule: return Array(rule.utf8)
        case .event: return Array(event.kind.rawValue.utf8)
        case .from: return event.from?.bytes ?? []
        case .type: return Array(event.snapshot.type.rawValue.utf8)
        case .size: return Array(String(event.snapshot.size).utf8)
        case .mode: return Array(String(event.snapshot.mode, radix: 8, width: 4).utf8)
        case .nlink: return Array(String(event.snapshot.links).utf8)
        case .inode: return Array(String(event.snapshot.identity.inode).utf8)
        case .id: return Array(event.snapshot.identity.description.utf8)
        case .job: return Array(job.utf8)
        case .attempt: return Array(String(attempt).utf8)
        case .mtime(let format):
            // A date puts the file in order; without a format, the time describes it.
            let time = format == nil ? event.snapshot.modified : event.snapshot.modified(asOf: event.time)
            return Self.text(of: time, format: format)
        case .now(let format): return Self.text(of: now, format: format)
        case .stepOutput(let step, let output):
            guard step < stepOutputs.count, output < stepOutputs[step].count else { return [] }
            return stepOutputs[step][output].bytes
        case .group(let number): return captures.numbered[number] ?? []
        case .namedGroup(let name): return captures.named[name] ?? []
        }
    }

    /// The name, split at its last dot; leading dots belong to the stem, so `.profile` has no extension.
    ///
    /// `...jpg` has none either, because its stem would be `..`: no file name may lead a template into another
    /// directory.
    private var splitName: (stem: ArraySlice<UInt8>, extension: ArraySlice<UInt8>) {
        let name = event.path.lastComponent
        guard let dot = name.lastIndex(of: .dot), name[..<dot].contains(where: { $0 != .dot }) else {
            return (name, [])
        }
        return (name[..<dot], name[(dot + 1)...])
    }

    private static func text(of time: Timestamp, format: String?) -> [UInt8] {
        guard let format else { return Array(time.description.utf8) }
        var seconds = time_t(time.seconds)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return Array(time.description.utf8) }
        // A format may expand to an empty string (%p in some locales), so 0 is not an error: the buffer is large.
        var buffer = [CChar](repeating: 0, count: format.utf8.count * 32 + 64)
        let length = strftime(&buffer, buffer.count, format, &parts)
        return buffer[..<length].map { UInt8(bitPattern: $0) }
    }
}

/// The captures of a rule's regular expressions in a name: the values of `${1}` and `${match.NAME}`.
package struct Captures: Sendable, Hashable {
    /// The captures by the numbers of groups, from 1.
    package var numbered: [Int: [UInt8]] = [:]
    package var named: [String: [UInt8]] = [:]

    package init() {}

    /// Searches the last component of a path.
    ///
    /// If several expressions have a group with the same number or name, the first expression wins. A group that did
    /// not take part has no value.
    package init(of path: PathBytes, by expressions: [RegularExpression]) {
        let name = path.lastComponent
        for expression in expressions.reversed() {
            guard case .found(let groups) = expression.search(name) else { continue }
            for number in 0..<groups.count where number > 0 {
                numbered[number] = Self.safe(groups[number] ?? [])
            }
            for (word, numbers) in expression.names {
                named[word] = Self.safe(numbers.lazy.compactMap { groups[$0] }.first ?? [])
            }
        }
    }

    /// A name is never `.` or `..`, which would change the directory of a path, but a part of a name may be.
    private static func safe(_ capture: [UInt8]) -> [UInt8] {
        capture == [.dot] || capture == [.dot, .dot] ? capture.map { _ in UInt8(ascii: "_") } : capture
    }
}
