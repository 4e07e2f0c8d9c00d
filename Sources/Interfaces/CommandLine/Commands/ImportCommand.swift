import ArgumentParser
import FileEvents
import Foundation
import Glibc
import RuleLoading
import System

/// `alight import`: rules from the tables of other programs.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Convert an incron table or a direvent configuration to rules.",
        discussion: ExitStatus.table(of: [.done, .runtimeError, .usage]),
        subcommands: [Incrontab.self, Direvent.self])

    struct Incrontab: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "incrontab",
            abstract: "Convert an incron table to rules.",
            discussion: """
                Each line becomes a rule, with comments on the differences. To convert your own table:

                  incrontab -l | alight import incrontab - --output rules/incron.yaml

                \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
                """)

        @OptionGroup var files: ImportedTable

        func run() throws {
            let table = try files.read()
            try files.write(
                IncrontabImport.rules(from: table, source: files.shown) { ImportedTable.nature(ofGlob: $0) })
        }
    }
}

/// The table to read, and where the rules go.
struct ImportedTable: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The file to convert; '-' for standard input.", valueName: "file"), completion: .file())
    var table: String

    @OptionGroup var output: NewFile

    /// What the comment at the top calls it.
    var shown: String { table == "-" ? "standard input" : table }

    /// More than any table has.
    private static let largest = 4 << 20

    /// The bytes of the table.
    ///
    /// - Throws: `Exit` when it can't be read; it has been said.
    func read() throws -> [UInt8] {
        let handle: FileHandle?
        if table == "-" {
            handle = .standardInput
        } else {
            handle = FileHandle(forReadingAtPath: table)
        }
        guard let handle else {
            throw Exit(
                .usage, error: "cannot read '\(table)': \(String(cString: strerror(errno)))",
                help: "name a table, or '-' for standard input")
        }
        guard let data = try? handle.read(upToCount: Self.largest + 1) else {
            throw Exit(.usage, error: "cannot read '\(table)'", help: "name a table, not a folder")
        }
        guard data.count <= Self.largest else {
            throw Exit(.usage, error: "'\(table)' is too large", help: "at most 4 MiB are read")
        }
        return Array(data)
    }

    func write(_ text: String) throws { try output.write(text) }

    /// What a path names that may hold wildcards: of several, a folder if there is one.
    static func nature(ofGlob path: PathBytes) -> PathNature {
        let plain = PathNature.now(at: path)
        guard plain == .missing, path.bytes.contains(where: { "*?[".utf8.contains($0) }) else { return plain }
        var found = glob_t()
        defer { globfree(&found) }
        guard path.withCString({ glob($0, 0, nil, &found) }) == 0 else { return .missing }
        var nature = PathNature.missing
        for index in 0..<Int(found.gl_pathc) {
            guard let match = found.gl_pathv[index] else { continue }
            switch PathNature.now(at: PathBytes(String(cString: match))) {
            case .folder: return .folder
            case .file: nature = .file
            case .missing: break
            }
        }
        return nature
    }
}

/// Where a command puts the rules file that it makes.
struct NewFile: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write to this file instead of standard output. An existing file is not overwritten.", valueName: "file"),
        completion: .file())
    var output: String?

    /// Writes the text, to the file only if there is none.
    ///
    /// - Throws: `Exit` when that fails; it has been said.
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
                ? "name another file, or remove this one" : "name a file in a folder that you may write to"
            throw Exit(
                .runtimeError, error: "cannot make '\(output)': \(String(cString: strerror(error)))", help: help)
        }
        do {
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        } catch {
            throw Exit(
                .runtimeError, error: "cannot write '\(output)'",
                help: "see whether there is room, and remove the rest of the file")
        }
        Output.error.write(
            "wrote '\(Display.text(output))'; see what it says with 'alight check \(Display.text(output))'")
    }
}

extension ImportCommand {
    struct Direvent: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "direvent",
            abstract: "Convert a direvent configuration to rules.",
            discussion: """
                Each watcher becomes a rule, with comments on the differences.

                  alight import direvent /etc/direvent.conf --output rules/direvent.yaml

                \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
                """)

        @OptionGroup var files: ImportedTable

        func run() throws {
            let configuration = try files.read()
            try files.write(DireventImport.rules(from: configuration, source: files.shown))
        }
    }
}
