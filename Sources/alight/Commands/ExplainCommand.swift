import ArgumentParser
import FileEvents
import FileWatching
import Glibc
import RuleLoading
import Rules
import Settling

/// `alight explain`: what each rule does with a path, and why.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say which rules take a path, and of each other rule why it does not.",
        discussion: """
            The paths need not exist. Of a rule that leaves a path the first reason is told. Nothing is run, and a \
            running Alight is not asked.

            \(ExitStatus.table)
            """)

    @Argument(help: ArgumentHelp("Files or folders.", valueName: "path"))
    var paths: [String]

    @OptionGroup var rules: NamedRules

    @Option(help: ArgumentHelp("Look at this rule alone.", valueName: "name"))
    var rule: String?

    @Flag(help: "Print one JSON object a line, for each path and rule.")
    var json = false

    func validate() throws {
        if let path = paths.first(where: \.isEmpty) { throw ValidationError("'\(path)' is no path") }
    }

    func run() throws {
        let program = try ProgramSurroundings()
        let loaded = try rules.load(program)
        let disabled = Set(loaded.disabledRules.map(\.name))
        let rules = try chosen(from: loaded)
        var isTaken = false
        for path in RawArguments.paths(paths) {
            let absolute =
                path.bytes.first == .slash ? path : program.loading.currentFolder.appending(path.bytes)
            let explained = PathExplanation(absolute.normalized, rules: rules, in: loaded.ruleset) {
                disabled.contains($0)
            }
            isTaken = isTaken || explained.rules.contains(where: \.explanation.isTaken)
            if json {
                for object in explained.objects { Output.standard.write(Reporter.json(object)) }
            } else {
                Output.standard.write(explained.text)
            }
        }
        throw Exit(isTaken ? .done : .nothingMatched)
    }

    /// All rules in the order of the files, or the one that was named.
    private func chosen(from loaded: LoadedRules) throws -> [Rule] {
        guard let rule else { return loaded.rulesInOrder }
        return [try loaded.rule(named: rule)]
    }
}

/// The arguments of the program as bytes: the parser has them as text, which repairs names that are not UTF-8.
enum RawArguments {
    /// The exact paths of arguments that were parsed, in the order in which they were given.
    static func paths(_ arguments: [String]) -> [PathBytes] {
        var raw: [PathBytes: [PathBytes]] = [:]
        for index in 0..<Int(CommandLine.argc) {
            guard let argument = CommandLine.unsafeArgv[index] else { continue }
            let path = PathBytes(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
            raw[PathBytes(path.description), default: []].append(path)
        }
        return arguments.map { argument in
            let repaired = PathBytes(argument)
            guard let found = raw[repaired]?.first else { return repaired }
            raw[repaired]?.removeFirst()
            return found
        }
    }
}
