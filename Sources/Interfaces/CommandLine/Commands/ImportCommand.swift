import ArgumentParser
import Configuration
import Foundation
import Glibc
import System

/// `alight import`: converts the tables of other programs to rules.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Convert an incron table or a direvent configuration to rules.",
        discussion: ExitStatus.table(of: [.done, .runtimeError, .usage]), subcommands: [Incrontab.self, Direvent.self])

    struct Incrontab: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "incrontab", abstract: "Convert an incron table to rules.",
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

/// The table to convert, and the output file.
struct ImportedTable: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The file to convert; '-' for standard input.", valueName: "file"), completion: .file())
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
            throw Exit(.usage, error: "cannot read '\(table)'", help: "name a table, not a directory")
        }
        guard data.count <= Self.largest else {
            throw Exit(.usage, error: "'\(table)' is too large", help: "at most 4 MiB are read")
        }
        return Array(data)
    }

    func write(_ text: String) throws { try output.write(text) }

    /// Returns the nature of a path that may contain wildcards; if one of several matches is a directory, the result
    /// is a directory.
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

/// The destination of the rules file that a command generates.
struct NewFile: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write to this file instead of standard output. An existing file is not overwritten.", valueName: "file"),
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
                .runtimeError, error: "cannot create '\(output)': \(String(cString: strerror(error)))", help: help)
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
        Output.error.write(
            "wrote '\(Display.text(output))'; check it with 'alight check \(Display.text(output))'")
    }
}

extension ImportCommand {
    struct Direvent: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "direvent", abstract: "Convert a direvent configuration to rules.",
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
