import ArgumentParser
import Configuration
import FileEvents
import Foundation
import Glibc
import Plugins
import Rules
import System

/// `alight new`: writes a first rule, with comments.
struct NewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "new", "Write a first rule, with comments.",
        discussion: """
            Asks no questions, and overwrites no file.

              alight new ~/inbox
              alight new ~/inbox --output rules/inbox.yaml --exec lp '${path}'
              alight new ~/Pictures/inbox --use thumbnail
            """)

    @Argument(
        help: .value("directory", "The directory to watch; the current directory if omitted."), completion: .directory)
    var directory: String = "."

    @Option(
        name: .customLong("event"),
        help: .value(
            "event",
            "An event to run for; may be repeated. Default: 'created' and 'modified'."),
        completion: .list(EventMask.words))
    var events: [String] = []

    @Option(
        help: .value("handler", "A built-in handler or a plugin; 'log' without it."), completion: OfferedWords.handlers)
    var use: String?

    @Option(help: .value("name", "The name of the rule."))
    var name: String?

    @OptionGroup var output: NewFile

    @Option(
        name: .customLong("exec"), parsing: .remaining,
        help: .value("program", "A program to run; everything after it is its arguments."))
    var command: [String] = []

    func run() throws {
        let program = try CommandContext()
        guard use == nil || command.isEmpty else {
            throw Exit(.usage, error: "'--use' cannot be combined with '--exec'", help: "choose one of them")
        }
        for word in events where EventMask(word: word) == nil {
            throw Exit(.usage, error: "unknown event '\(Display.text(word))'", help: EventSpelling.help(for: word))
        }
        guard !directory.isEmpty else { throw Exit(.usage, error: "the path is empty", help: "name a directory") }
        let directory = program.path(PathBytes(directory))
        guard String(validating: directory.bytes, as: UTF8.self) != nil else {
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
            name: name
                ?? FirstRule.name(
                    for: directory, use ?? command.first, excluding: otherNames(program)), directory: directory,
            home: program.loading.home.map { PathBytes($0) },
            events: events.isEmpty ? nil : events, work: work)
        try output.write(rule.text)
        if !rule.unfilled.isEmpty {
            let names = Display.list(rule.unfilled)
            Output.error.write("warning: fill in \(names): the handler has no example")
        }
    }

    /// Returns the names of the rules in the default location, and beside the new file.
    private func otherNames(_ program: CommandContext) -> Set<String> {
        let beside = output.output.map { [program.path(PathBytes($0)).parent] }
        let loaded = [[], beside].compactMap { $0.flatMap(program.rulesInSilence) }
        return Set(loaded.flatMap { $0.rulesInOrder.map(\.name) + $0.refusedRules })
    }

    private func work(_ program: CommandContext) throws -> FirstRule.Work {
        if !command.isEmpty { return .exec(command) }
        let name = use ?? "log"
        let here = program.loading.currentDirectory
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

/// `alight import`: converts the table of another program to rules.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "import", "Convert an incron table to rules.", subcommands: [Incrontab.self])

    struct Incrontab: ParsableCommand {
        static let configuration = CommandConfiguration(
            "incrontab", "Convert an incron table to rules.",
            discussion: """
                Each line becomes a rule, with comments on the differences. To convert your own table:

                  incrontab -l | alight import incrontab - --output rules/incron.yaml
                """)

        @OptionGroup var files: ImportedTable

        func run() throws {
            let table = try files.read()
            let text = IncrontabImport.rules(from: table, source: files.shown) { ImportedTable.nature(ofGlob: $0) }
            try files.output.write(text)
        }
    }
}

/// The table to convert, and the output file.
struct ImportedTable: ParsableArguments {
    @Argument(help: .value("file", "The file to convert; '-' for standard input."), completion: .file())
    var table: String

    @OptionGroup var output: NewFile

    /// The name of the table in the comment at the top of the output.
    var shown: String { table == "-" ? "standard input" : table }

    /// The size limit in bytes, larger than any real table.
    private static let largest = 4 << 20

    /// Reads the table.
    ///
    /// - Throws: `Exit` when it cannot be read; the error has been printed.
    func read() throws -> [UInt8] {
        guard let handle = table == "-" ? .standardInput : FileHandle(forReadingAtPath: table) else {
            throw Exit(
                .usage, error: "cannot read '\(table)': \(SystemError(errno: errno))",
                help: "name a table, or '-' for standard input")
        }
        guard let data = try? handle.read(upToCount: Self.largest + 1) else {
            throw Exit(.usage, error: "cannot read '\(table)'", help: "name a table, not a directory")
        }
        guard data.count <= Self.largest else {
            throw Exit(.usage, error: "'\(table)' is too large", help: "at most 4 MiB are read")
        }
        return Array(data)
    }

    /// Returns the nature of a path that may contain wildcards; if one of several matches is a directory, the result
    /// is a directory.
    static func nature(ofGlob path: PathBytes) -> PathNature {
        let plain = PathNature.now(at: path)
        guard plain == .missing, path.bytes.contains(where: { "*?[".utf8.contains($0) }) else { return plain }
        var found = glob_t()
        defer { globfree(&found) }
        guard path.withCString({ glob($0, 0, nil, &found) }) == 0 else { return .missing }
        let matches = (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0] }
        let natures = matches.map { PathNature.now(at: PathBytes(String(cString: $0))) }
        return [.directory, .file].first(where: natures.contains) ?? .missing
    }
}

/// The destination of the rules file that a command generates.
struct NewFile: ParsableArguments {
    @Option(
        help: .value("file", "Write to this file instead of standard output. An existing file is not overwritten."),
        completion: .file())
    var output: String?

    /// Writes the text to standard output or to the file; an existing file is not overwritten.
    ///
    /// - Throws: `Exit` when that fails; an error about the file has been printed.
    func write(_ text: String) throws {
        guard let output else {
            guard case .failed = Output.standard.writeRaw(text) else { return }
            throw Exit(.runtimeError)
        }
        let descriptor = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        let error = errno
        guard descriptor >= 0 else {
            let help =
                error == EEXIST
                ? "name another file, or remove this one" : "name a file in a directory that you may write to"
            throw Exit(
                .runtimeError, error: "cannot create '\(output)': \(SystemError(errno: error))", help: help)
        }
        do {
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        } catch {
            throw Exit(
                .runtimeError, error: "cannot write '\(output)'",
                help: "free disk space, and remove the incomplete file")
        }
        Output.error.write("wrote '\(Display.text(output))'; check it with 'alight check \(Display.text(output))'")
    }
}
