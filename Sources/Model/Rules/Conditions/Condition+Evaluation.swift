package import FileEvents
import Globbing
package import RegularExpressions
package import System

extension Condition {
    /// Evaluates the condition as far as the input allows.
    ///
    /// Cheap tests decide before tests that need the content, in any order of the conditions.
    package func answer(_ input: ConditionInput) -> ConditionAnswer {
        switch self {
        case .all(let conditions):
            var open = ConditionAnswer.holds
            for condition in conditions {
                switch condition.answer(input) {
                case .holds: break
                case .fails(let reason): return .fails(reason)
                case let answer: open = open.joined(with: answer)
                }
            }
            return open
        case .any(let conditions):
            var open: ConditionAnswer?
            var reasons: [String] = []
            for condition in conditions {
                switch condition.answer(input) {
                case .holds: return .holds
                case .fails(let reason): reasons.append(reason)
                case let answer: open = open?.joined(with: answer) ?? answer
                }
            }
            return open ?? .fails("no condition of 'any' is true: \(reasons.joined(separator: "; "))")
        case .not(let condition):
            switch condition.answer(input) {
            case .holds: return .fails("excluded by 'not': \(condition.inspection(input).joined(separator: "; "))")
            case .fails: return .holds
            case let answer: return answer
            }
        default:
            switch finding(input) {
            case .determined(true, _): return .holds
            case .determined(false, let found): return .fails("\(found), expected \(wanted)")
            case .needsContent: return .needsContent
            case .unknown(let reason): return .unknown(reason)
            case .unreadable(let reason): return .unreadable(reason)
            }
        }
    }

    /// Evaluates the condition.
    ///
    /// If the result depends on the content, reads its type and adds it to the input.
    package func answer(_ input: inout ConditionInput, reading read: () -> ConditionInput.Content) -> ConditionAnswer {
        let answer = answer(input)
        guard answer == .needsContent else { return answer }
        input.content = read()
        return self.answer(input)
    }

    // MARK: - One thing

    private enum Finding {
        /// Whether the condition holds, with the value found: `size is 300 B`.
        case determined(Bool, String)
        case needsContent
        case unknown(String)
        case unreadable(String)

        static let noMetadata = Finding.unknown("the metadata of the file is unknown")
    }

    private func finding(_ input: ConditionInput) -> Finding {
        switch self {
        case .all, .any, .not: preconditionFailure("these have answers of their parts")
        case .depth(let wanted):
            let relative = input.path.relative(to: input.root) ?? input.path.lastComponent
            let depth = max(0, relative.split(separator: .slash).count - 1)
            return .determined(wanted.hold(depth), "depth is \(depth)")
        case .name(let globs):
            let name = input.path.lastComponent
            return .determined(globs.contains { $0.matches(name) }, "name is \(Self.quoted(name))")
        case .path(let globs):
            let relative = input.path.relative(to: input.root) ?? input.path.lastComponent
            let isMatch = globs.contains { $0.matches($0.root.first == .slash ? input.path.bytes[...] : relative) }
            return .determined(isMatch, "path is \(Self.quoted(relative))")
        case .regex(let expression):
            let name = input.path.lastComponent
            switch expression.search(name) {
            case .found: return .determined(true, "name is \(Self.quoted(name))")
            case .notFound: return .determined(false, "name is \(Self.quoted(name))")
            case .tooComplex:
                return .unknown("the regex '\(expression.pattern)' is too complex for the name \(Self.quoted(name))")
            }
        case .mime(let patterns): return content(input, patterns)
        case .by(let programs): return writer(input.writer, programs)
        case .size(let wanted):
            guard let size = input.snapshot?.size else { return .noMetadata }
            return .determined(wanted.hold(size), "size is \(SizeText.shown(size))")
        case .age(let wanted):
            guard let snapshot = input.snapshot else { return .noMetadata }
            let age = input.now.since(snapshot.modified(asOf: input.now))
            return .determined(wanted.hold(age), "age is \(DurationText.shown(age))")
        case .owner(let owners):
            guard let snapshot = input.snapshot else { return .noMetadata }
            return .determined(owners.contains { $0.matches(snapshot) }, "owner is \(snapshot.uid):\(snapshot.gid)")
        }
    }

    /// Returns the finding for the content type.
    ///
    /// The type of a file that is not regular is known without reading it, in the terms of libmagic.
    private func content(_ input: ConditionInput, _ patterns: [MediaPattern]) -> Finding {
        func determined(_ type: String) -> Finding {
            .determined(patterns.contains { $0.matches(type) }, "mime is '\(type)'")
        }
        switch input.snapshot?.type {
        case .directory: return determined("inode/directory")
        case .symlink: return determined("inode/symlink")
        case .other: return determined("inode/special")
        case .file, nil: break
        }
        switch input.content {
        case .notAsked: return .needsContent
        case .type(let type): return determined(type)
        case .unknown(let reason): return .unknown(reason)
        case .unreadable(let reason): return .unreadable(reason)
        }
    }

    private func writer(_ writer: Writer, _ programs: [Program]) -> Finding {
        switch writer {
        case .notAsked: return .unknown("the writer is known only when the file is written")
        case .unknown(let reason): return .unknown(reason.words)
        case .process(let process):
            let answers = programs.map { $0.matches(process) }
            if answers.contains(true) || !answers.contains(nil) {
                return .determined(answers.contains(true), "it was written by \(process.words)")
            }
            let missing =
                process.name == nil && process.executable == nil
                ? "that process had exited before its name could be read"
                : "the path of its program could not be read"
            return .unknown("it was written by \(process.words), and \(missing)")
        }
    }

    /// The expected value, as it was written.
    private var wanted: String {
        func list(_ texts: [String]) -> String { texts.map { "'\($0)'" }.joined(separator: " or ") }
        switch self {
        case .all, .any, .not: return ""
        case .size(let comparisons): return comparisons.text
        case .age(let comparisons): return comparisons.text
        case .depth(let comparisons): return comparisons.text
        case .mime(let patterns): return list(patterns.map(\.text))
        case .name(let globs), .path(let globs): return list(globs.map(\.description))
        case .regex(let expression): return "the regex '\(expression.pattern)'"
        case .owner(let owners): return list(owners.map(\.text))
        case .by(let programs): return list(programs.map(\.glob.description))
        }
    }

    /// Returns the values that make the condition hold: `size is 300 B (< 1 KB)`.
    package func inspection(_ input: ConditionInput) -> [String] {
        switch self {
        case .all(let conditions): return conditions.flatMap { $0.inspection(input) }
        case .any(let conditions):
            return conditions.first { $0.answer(input) == .holds }.map { $0.inspection(input) } ?? []
        case .not(let condition):
            guard case .fails(let reason) = condition.answer(input) else { return [] }
            return ["not so: \(reason)"]
        default:
            guard case .determined(_, let found) = finding(input) else { return [] }
            return ["\(found) (\(wanted))"]
        }
    }

    private static func quoted(_ bytes: ArraySlice<UInt8>) -> String { "'\(String(decoding: bytes, as: UTF8.self))'" }
}

extension UnknownWriter {
    /// The reason why the writer is unknown.
    fileprivate var words: String {
        switch self {
        case .denied:
            "the writer is unknown: the kernel reports it only to programs with CAP_SYS_ADMIN, such as those of root"
        case .unseen: "the writer is unknown: the kernel did not report it"
        case .overflow: "the writer is unknown: the kernel's event queue overflowed"
        }
    }
}

extension WritingProcess {
    /// The process as far as it is known: `'cp' (process 4711, /usr/bin/cp)`.
    package var words: String {
        let known = ["process \(pid)", executable.map { "\($0)" }].compactMap(\.self).joined(separator: ", ")
        return name.map { "'\($0)' (\(known))" } ?? known
    }
}

extension ConditionAnswer {
    /// Joins two undecided answers.
    ///
    /// The content is needed unless both answers are unknown regardless of it.
    fileprivate func joined(with other: ConditionAnswer) -> ConditionAnswer {
        if self == .needsContent || other == .needsContent { return .needsContent }
        if case .unreadable = self { return self }
        if case .unreadable = other { return other }
        if case .unknown = self { return self }
        return other
    }
}

extension Rule {
    /// Evaluates whether the conditions let an event become a job.
    ///
    /// Events about the watching, not about a file, always pass.
    package func admits(_ event: FileEvent) -> ConditionAnswer {
        guard let condition, !event.kind.isLifecycle else { return .holds }
        return condition.answer(ConditionInput(event))
    }

    /// Like ``admits(_:)``, but reads the content type if the result depends on it.
    package func admits(_ event: FileEvent, reading read: ContentReader) -> ConditionAnswer {
        guard let condition, !event.kind.isLifecycle else { return .holds }
        var input = ConditionInput(event)
        return condition.answer(&input) { read(event) }
    }
}

// Conditions that become true by the passage of time alone.
extension Rule {
    /// Returns the earliest time from an event on at which a condition with an age holds if the file does not change.
    ///
    /// - Returns: The first time at which the condition holds, or needs the content, starting with the time of the
    ///   event. Nil if there is none, or if the condition compares no age.
    package func opening(of event: FileEvent) -> Timestamp? {
        guard let condition, !event.kind.isLifecycle, !event.kind.isRaw, event.kind != .deleted else { return nil }
        var event = event
        let ages = condition.ages.flatMap { [$0, $0 + .nanoseconds(1)] }.sorted()
        guard !ages.isEmpty else { return nil }
        let modified = event.snapshot.modified(asOf: event.time)
        let times = ages.map { modified.advanced(by: $0) }.filter { $0 > event.time }
        return ([event.time] + times).first { time in
            event.time = time
            return [.holds, .needsContent].contains(admits(event))
        }
    }
}

// The single conditions, whatever combines them.
extension Condition {
    /// The conditions that are not combinations of others.
    private var single: [Condition] {
        switch self {
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.single)
        case .not(let condition): condition.single
        default: [self]
        }
    }

    /// Whether any part of the condition tests the writer.
    var asksForWriter: Bool { single.contains { if case .by = $0 { true } else { false } } }

    /// The ages in the condition's comparisons, each of which may change its answer.
    package var ages: [Duration] {
        single.flatMap { if case .age(let age) = $0 { age.bounds.map(\.value) } else { [Duration]() } }
    }

    /// All regular expressions of the condition.
    package var expressions: [RegularExpression] {
        single.compactMap { if case .regex(let expression) = $0 { expression } else { nil } }
    }

    /// The regular expressions that have matched whenever the condition holds: none below `any` and `not`.
    package var certainExpressions: [RegularExpression] {
        switch self {
        case .regex(let expression): [expression]
        case .all(let conditions): conditions.flatMap(\.certainExpressions)
        default: []
        }
    }
}
