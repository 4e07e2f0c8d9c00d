import ArgumentParser
import Configuration
import FileEvents
import Plugins
import Rules
import System

/// `alight new`: writes a first rule, with comments.
struct NewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Write a first rule, with comments.",
        discussion: """
            Asks no questions, and overwrites no file.

              alight new ~/inbox
              alight new ~/inbox --output rules/inbox.yaml --exec lp '${path}'
              alight new ~/Pictures/inbox --use thumbnail

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Argument(
        help: ArgumentHelp("The directory to watch; the current directory if omitted.", valueName: "directory"),
        completion: .directory)
    var folder: String = "."

    @Option(
        name: .customLong("event"),
        help: ArgumentHelp(
            "An event to run for; may be repeated. Default: 'created' and 'modified', and what the handler needs.",
            valueName: "event"),
        completion: .list(EventMask.words))
    var events: [String] = []

    @Option(
        help: ArgumentHelp("A built-in handler or a plugin; 'log' without it.", valueName: "handler"),
        completion: OfferedWords.handlers)
    var use: String?

    @Option(help: ArgumentHelp("The name of the rule.", valueName: "name"))
    var name: String?

    @OptionGroup var output: NewFile

    @Option(
        name: .customLong("exec"), parsing: .remaining,
        help: ArgumentHelp("A program to run; everything after it is its arguments.", valueName: "program"))
    var command: [String] = []

    func run() throws {
        let program = try CommandContext()
        guard use == nil || command.isEmpty else {
            throw Exit(.usage, error: "'--use' cannot be combined with '--exec'", help: "choose one of them")
        }
        for word in events where EventMask(word: word) == nil {
            throw Exit(.usage, error: "unknown event '\(Display.text(word))'", help: EventSpelling.help(for: word))
        }
        guard !folder.isEmpty else { throw Exit(.usage, error: "the path is empty", help: "name a directory") }
        let folder =
            (folder.hasPrefix("/") ? PathBytes(folder) : program.loading.currentFolder.appending(Array(folder.utf8)))
            .normalized
        guard String(validating: folder.bytes, as: UTF8.self) != nil else {
            throw Exit(
                .usage, error: "the path of the directory is not UTF-8, which YAML requires",
                help: "write a rule with '?' in place of the other bytes")
        }
        let work = try work(program)
        if case .use(let name, let handler) = work, let covered = handler.covered {
            for word in events {
                guard let event = EventMask(word: word), !covered.isSuperset(of: event) else { continue }
                throw Exit(
                    .usage, error: "'\(Display.text(name))' does not support the event '\(word)'",
                    help: "it supports \(EventSpelling.words(of: handler.events ?? covered).joined(separator: ", "))")
            }
        }
        let rule = FirstRule(
            name: name ?? FirstRule.name(for: folder), folder: folder, home: program.loading.home.map { PathBytes($0) },
            events: events.isEmpty ? nil : events, work: work)
        try output.write(rule.text)
        if !rule.unfilled.isEmpty {
            let names = rule.unfilled.map { "'\(Display.text($0))'" }.joined(separator: ", ")
            Output.error.write("warning: fill in \(names): the handler has no example")
        }
    }

    private func work(_ program: CommandContext) throws -> FirstRule.Work {
        if !command.isEmpty { return .exec(command) }
        let name = use ?? "log"
        let here = program.loading.currentFolder
        switch program.registry.find(name, from: here) {
        case .success(let description): return .use(name, description)
        case .failure(let problem):
            let help =
                problem.help
                ?? Spelling.help(for: name, candidates: program.registry.names(from: here), noun: "handlers")
            throw Exit(.usage, error: problem.message, help: help)
        }
    }
}
