import ArgumentParser
import Configuration
import FileEvents
import JSON
import Records
import Rules
import Storage
import System

/// `alight explain`: shows which rules match a path, and why the others do not.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "explain", "Show which rules match a path, and why the others do not.",
        exits: [.done, .runtimeError, .usage, .rulesInvalid, .nothingMatched],
        discussion: """
            For a rule that matches, shows the next event, what would delay the action, and the action with its \
            placeholders expanded; for any other rule, the first condition that fails. Pending and past jobs of the \
            path are read from the journal, and the running instance is asked whether a slot is free. Paths need not \
            exist, and nothing is run.
            """)

    @Argument(help: .value("path", "Files or directories."), completion: .file())
    var paths: [String]

    @OptionGroup var rules: NamedRules

    @Option(help: .value("name", "Explain only this rule."), completion: OfferedWords.rules)
    var rule: String?

    @Option(
        help: .value(
            "event", "Explain this event.",
            discussion: "Default: created if the path is not in the journal, else modified."),
        completion: .list(EventChoice.words))
    var event: String?

    @OptionGroup var journal: JournalOptions

    @Flag(help: "Print one JSON object per line, for each path and rule.")
    var json = false

    func validate() throws {
        if let path = paths.first(where: \.isEmpty) { throw ValidationError("'\(path)' is not a path") }
        guard let event, EventChoice(event) == nil else { return }
        let list = EventChoice.words.joined(separator: ", ")
        throw ValidationError("'--event \(event)' is not an event of a path; write one of \(list)")
    }

    func run() throws {
        let settings = try journal.settings()
        let program = try CommandContext(settings, startsPlugins: false, asRunning: true)
        let loaded = try rules.load(program)
        let rules = try rule.map { [try loaded.rule(named: $0)] } ?? loaded.rulesInOrder
        program.reportUndescribed()
        let environment = PathExplanation.Environment(
            ruleset: loaded.ruleset, runner: program.runner,
            journal: openJournal(settings), choice: event.flatMap(EventChoice.init), slots: RunningSlots(settings))
        var isMatch = false
        for path in RawArguments.paths(paths) {
            let absolute = program.path(path)
            let explained = explain(absolute, rules, environment)
            isMatch = isMatch || explained.rules.contains(where: \.explanation.isMatch)
            for text in json ? explained.objects.map(\.line) : [explained.text] { Output.standard.write(text) }
        }
        throw Exit(isMatch ? .done : .nothingMatched)
    }

    /// Explains a path; leaves out the journal if it cannot be read.
    private func explain(
        _ path: PathBytes, _ rules: [Rule], _ environment: PathExplanation.Environment
    ) -> PathExplanation {
        do {
            return try PathExplanation(path, rules: rules, environment)
        } catch {
            reportUnread(error)
            var environment = environment
            environment.journal = nil
            return explain(path, rules, environment)
        }
    }

    /// Opens the journal; returns nil if there is none, or, after a warning, if it cannot be read.
    private func openJournal(_ settings: Configuration) -> JournalReader? {
        // Without a location, there is no journal.
        guard case .file(let file)? = try? settings.journalLocation(), KernelFileSystem().resolve(file) != nil else {
            return nil
        }
        do {
            return try JournalReader(file, isTraceless: true)
        } catch {
            reportUnread(error)
            return nil
        }
    }

    private func reportUnread(_ error: StorageError) {
        Reporter(format: .text).emit(
            .warning, "past and pending jobs are not shown: \(Display.text(error.description))", help: error.help)
    }
}

/// The event that `alight explain --event` names.
struct EventChoice: Hashable {
    /// The word as written by the user.
    var word: String
    var kind: EventKind
    /// The changed attributes, for words that name only a part of a kind.
    var changed: [String]

    /// Parses a word; returns nil unless it names a single event of a path.
    init?(_ word: String) {
        guard let mask = EventMask(word: word), mask.isDisjoint(with: .lifecycle), mask.kinds.count == 1,
            let kind = mask.kinds.first
        else { return nil }
        (self.word, self.kind, changed) = (word, kind, Self.changes(of: mask, kind))
    }

    /// Returns the changes of an event whose mask selects only parts of its kind.
    static func changes(of mask: EventMask, _ kind: EventKind) -> [String] {
        guard !mask.contains(EventMask(kind)) else { return [] }
        let narrow: EventMask = kind == .modified ? .content : kind == .attributes ? .anyAttribute : []
        let word = EventSpelling.words(of: mask.intersection(narrow)).first ?? ""
        return [String(word.split(separator: ".").last ?? "")]
    }

    /// The words that are accepted.
    static var words: [String] { EventMask.words.filter { EventChoice($0) != nil } }
}

/// The event of a path that a rule would receive next.
struct NextEvent {
    enum Ground: Hashable {
        case asked
        /// The path is not in the journal.
        case unknown
        case known
        /// Neither applies, but the rule receives no other events.
        case only
    }

    var event: FileEvent
    var ground: Ground

    /// Determines the event.
    ///
    /// - Parameters:
    ///   - choice: The event that the user named; nil for the event that would happen next.
    ///   - rule: The rule, which matches the path by name.
    ///   - root: The root of the path.
    ///   - path: The path of the event.
    ///   - inspected: The snapshot of the path; nil if there is none.
    ///   - isKnown: Whether the journal records the path as known to the rule.
    ///   - now: The current time.
    init(
        _ choice: EventChoice?, _ rule: Rule, root: PathBytes, path: PathBytes, inspected: Snapshot?, isKnown: Bool,
        now: Timestamp
    ) {
        var kind = isKnown ? EventKind.modified : .created
        if isKnown, inspected == nil { kind = .deleted }
        var changed: [String] = []
        ground = isKnown ? .known : .unknown
        if let choice {
            (kind, changed) = (choice.kind, choice.changed)
            ground = .asked
        } else if !rule.events.takes(kind), let first = rule.events.kinds.first(where: { !$0.isLifecycle }) {
            if first != kind { ground = .only }
            kind = first
            changed = EventChoice.changes(of: rule.events, kind)
        }
        var snapshot = Snapshot.unseen
        snapshot.type = FileType.allCases.first(where: rule.types.contains) ?? .file
        event = FileEvent(
            kind: kind, path: path, root: root, snapshot: inspected ?? snapshot, changed: changed, origin: .live,
            time: now)
    }
}
