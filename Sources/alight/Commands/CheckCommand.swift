import ArgumentParser
import FileEvents
import FileWatching
import Globbing
import RuleLoading
import Rules
import Settling

/// `alight check`: load and validate, and say what would be watched.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Load the rules, and say what is wrong with them or what they would watch.",
        discussion: ExitStatus.table)

    @OptionGroup var rules: RulesOptions

    func run() throws {
        let program = try ProgramSurroundings()
        let loaded = try rules.load(program)
        for rule in loaded.ruleset.rules {
            let events = EventSpelling.words(of: rule.events).joined(separator: ", ")
            let actions = rule.actions.map(\.name).joined(separator: " + ")
            Output.standard.write("rule '\(Display.text(rule.name))' (\(rule.place)): \(events) → \(actions)")
            for glob in rule.globs {
                let root = PathBytes(glob.root)
                let state =
                    switch DiskProbe.look(at: root) {
                    case .present(let snapshot) where snapshot.type == .file: " (it is a file: a run would stop)"
                    case .present: ""
                    case .absent: " (it does not exist yet, and is waited for)"
                    case .unreadable: " (it can't be looked at)"
                    }
                Output.standard.write("    \(Display.text(glob.pattern)), watched from \(Display.path(root))\(state)")
            }
        }
        for rule in loaded.disabledRules {
            Output.standard.write("rule '\(Display.text(rule.name))' (\(rule.place)): disabled")
        }
        let rules = loaded.ruleset.rules.count
        let files = loaded.files.count
        Output.standard.write(
            "\(rules) \(rules == 1 ? "rule" : "rules") in \(files) \(files == 1 ? "file" : "files"): all in order")
    }
}
