import ArgumentParser
import Configuration
import Dashboard
import FileEvents
import Glibc
import Globbing
import Programs
import Rules
import Running
import System
import Watching

/// `alight check`: loads and validates rules, and prints what they would watch.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "check", "Check rules, and show what they would watch.", exits: [.done, .runtimeError, .usage, .rulesInvalid])

    @OptionGroup var rules: RulesOptions

    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        help: .value(
            "text|json", "The format of errors and warnings: text, or json (one object per line, and nothing else)."))
    var format = DiagnosticFormat.text

    func run() throws {
        let program = try CommandContext(try configuration.load().settings)
        let loaded = try rules.load(program, diagnostics: format)
        if format == .json { return }
        for rule in loaded.ruleset.rules {
            let events = EventSpelling.words(of: rule.events).joined(separator: ", ")
            let actions = rule.actions.map(\.name).joined(separator: " + ")
            let failure = rule.onFailure.isEmpty ? "" : "; on failure \(rule.failureActionNames)"
            Output.standard.write("\(Self.title(of: rule)): \(events) → \(actions)\(failure)")
            for action in rule.actions + rule.onFailure {
                guard case .exec(let command) = action.work, let program = command.first?.literal else { continue }
                let input = action.input(rule.input).words
                Output.standard.write("    standard input of \(Display.path(PathBytes(program))): \(input)")
            }
            if !rule.formerly.isEmpty {
                let names = Display.list(rule.formerly)
                Output.standard.write("    formerly \(names): jobs and known files of that name belong to this rule")
            }
            for glob in rule.globs {
                let root = PathBytes(glob.root)
                let state =
                    switch KernelFileSystem().stat(root) {
                    case .present(let snapshot) where snapshot.type == .file: " (it is a file)"
                    case .present: ""
                    case .absent: " (it does not exist; \(Self.consequence(of: rule.missing)))"
                    case .unreadable: " (it cannot be accessed)"
                    }
                Output.standard.write("    \(Display.text(glob.pattern)), watched from \(Display.path(root))\(state)")
            }
        }
        for (rules, state) in [(loaded.disabledRules, "disabled"), (loaded.untaggedRules, "excluded by --tag")] {
            for rule in rules { Output.standard.write("\(Self.title(of: rule)): \(state)") }
        }
        survey(loaded.ruleset)
        if let problem = program.scratchProblem(for: loaded.ruleset.rules) {
            Output.standard.write("warning: \(Display.text(problem.message)); \(problem.help)")
        }
        let rules = Reporter.count(loaded.ruleset.rules.count, "rule")
        Output.standard.write("\(rules) in \(Reporter.count(loaded.files.count, "file")): no errors")
    }

    private static func title(of rule: Rule) -> String { "rule '\(Display.text(rule.name))' (\(rule.location))" }

    /// Prints the number of directories that would be watched, and the directories that would be polled.
    private func survey(_ ruleset: Ruleset) {
        let survey = WatchSurvey(ruleset.scope, until: .now + .seconds(10))
        var line = "watches: \(survey.isComplete ? "" : "more than ")\(Wording.number(survey.directories)) needed, "
        line += survey.used.map { "\(Wording.number($0)) in use, " } ?? ""
        line += "limit \(Wording.number(survey.limit.value)) (\(survey.limit.name))"
        Output.standard.write(line)
        for (directory, reason) in survey.polled {
            Output.standard.write("polled: '\(Display.path(directory))': \(reason.text)")
        }
        for root in ruleset.roots {
            guard let error = WatchError.obstacle(at: root) else { continue }
            Output.standard.write("warning: \(Display.text(error.description)); \(error.help)")
        }
        for root in Self.rootsWithUnseenWriters(of: ruleset) {
            Output.standard.write(
                "warning: '\(Display.path(root))': other users can write here, and without CAP_LEASE Alight may not see that"
                    + " they still have a file open; use 'ready', or give it that capability (rules.md#unseen-writers)")
        }
    }

    /// Returns the roots in which a file may be considered finished while another user still writes it.
    private static func rootsWithUnseenWriters(of ruleset: Ruleset) -> [PathBytes] {
        guard !DiskProbe.mayLeaseAnyFile else { return [] }
        let rules = ruleset.rules.filter { $0.settle.writers == .wait && $0.types.contains(.file) && $0.ready == nil }
        return Set(rules.flatMap(\.roots)).sorted().filter { root in
            guard let snapshot = KernelFileSystem().stat(root).snapshot, snapshot.type == .directory else {
                return false
            }
            return snapshot.uid != geteuid() || snapshot.mode & 0o022 != 0
        }
    }

    /// Returns how `alight run` handles a root that does not exist.
    private static func consequence(of missing: MissingRoot) -> String {
        switch missing {
        case .wait: "'alight run' waits for it"
        case .fail: "'alight run' will fail"
        case .create: "'alight run' creates it"
        }
    }
}
