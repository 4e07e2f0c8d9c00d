import ArgumentParser
import FileEvents
import Foundation
import Handling
import RuleLoading
import Rules

/// Loads rules as the commands need them, with plugins and surroundings.
struct RulesOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Rules files, or folders of them.",
            discussion: "Default: ./rules, else $XDG_CONFIG_HOME/alight/rules, as root /etc/alight/rules."))
    var rules: [String] = []

    /// The rules that were named, or those in the first default place that exists.
    ///
    /// - Throws: `Exit` when nothing was named and no default place exists; it has been said.
    func places(_ surroundings: ProgramSurroundings) throws -> [String] {
        if !rules.isEmpty { return rules }
        let candidates = surroundings.defaultRules
        for candidate in candidates where FileManager.default.fileExists(atPath: candidate) { return [candidate] }
        Output.error.write(
            """
            error: there are no rules
                help: name a rules file, or put one into \(candidates.joined(separator: " or "))
            """)
        throw Exit(.rulesInvalid)
    }

    /// Loads the rules and says what is wrong with them.
    ///
    /// - Throws: `Exit` when they can't be used.
    func load(_ program: ProgramSurroundings) throws -> LoadedRules {
        let loader = RuleLoader(catalog: program.registry, surroundings: program.loading)
        let loaded = loader.load(try places(program))
        for diagnostic in loaded.diagnostics {
            Output.error.write(diagnostic.description)
        }
        if loaded.hasErrors { throw Exit(.rulesInvalid) }
        guard !loaded.ruleset.rules.isEmpty || !loaded.disabledRules.isEmpty else {
            let files = loaded.files.map { "'\(Display.path($0))'" }.joined(separator: ", ")
            Output.error.write("error: there is no rule in \(files)\n    help: add one below 'rules:'")
            throw Exit(.rulesInvalid)
        }
        return loaded
    }
}
