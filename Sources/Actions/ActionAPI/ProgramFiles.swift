import Glibc
import Rules
package import System

/// The files that determine what a command does, as far as its words name them.
package enum ProgramFiles {
    /// Returns the executable, its interpreters, the program after `env`, the script of an interpreter, the commands of
    /// a shell command line, and the directories in which these are searched for first.
    ///
    /// Relative paths are left out: only the program knows what they are relative to.
    ///
    /// - Parameters:
    ///   - words: The path of the executable, and its arguments.
    ///   - searchPath: Its `PATH`.
    ///   - depth: The maximum depth: as deep as the kernel follows interpreters, and a few wrappers more.
    ///   - line: Returns the first line of a file.
    /// - Returns: The files, in the order in which they are read.
    package static func of(
        _ words: [[UInt8]], searchPath: [UInt8], depth: Int = 8,
        line: (PathBytes) -> ScriptLine? = ScriptLine.init(of:)
    ) -> [PathBytes] {
        var files: [PathBytes] = []
        guard depth > 0, let word = words.first, let program = program(word, searchPath, &files) else { return files }
        files.append(program)
        var searchPath = searchPath
        var commands: [[[UInt8]]] = []
        let name = String(decoding: program.lastComponent, as: UTF8.self)
        if let first = line(program) {
            let argument = first.argument.map { [$0] } ?? []
            commands = [[first.interpreter.bytes] + argument + words]
        } else if name == "env" {
            commands = [command(ofEnvironment: words.dropFirst(), &searchPath)]
        } else if interpreters.contains(stem(of: name)) {
            let options = words.dropFirst().prefix { $0.first == UInt8(ascii: "-") }
            guard let operand = words.dropFirst(1 + options.count).first else { return files }
            if options.last?.last == UInt8(ascii: "c") {
                if shells.contains(name) { commands = Self.commands(ofLine: operand) }
            } else if operand.first == .slash {
                files.append(PathBytes(operand))
            }
        }
        return commands.reduce(into: files) { files, command in
            files += of(command, searchPath: searchPath, depth: depth - 1, line: line)
        }
    }

    /// Returns the file that a command's first word names, and adds the directories in which a file of that name would
    /// be found before it.
    private static func program(_ word: [UInt8], _ searchPath: [UInt8], _ files: inout [PathBytes]) -> PathBytes? {
        if word.first == .slash { return PathBytes(word) }
        guard !word.isEmpty, !word.contains(.slash) else { return nil }
        for directory in searchPath.split(separator: UInt8(ascii: ":")) where directory.first == .slash {
            let program = PathBytes(directory).appending(word)
            if ExecutableCheck.problem(with: program) == nil { return program }
            // Those of every program belong to the system.
            if !Action.searchPath.utf8.split(separator: UInt8(ascii: ":")).contains(where: directory.elementsEqual) {
                files.append(PathBytes(directory))
            }
        }
        return nil
    }

    /// Returns the command that env(1) starts with these arguments, which may set the search path.
    private static func command(
        ofEnvironment arguments: ArraySlice<[UInt8]>, _ searchPath: inout [UInt8]
    ) -> [[UInt8]] {
        var rest = arguments
        while let word = rest.first {
            let text = String(decoding: word, as: UTF8.self)
            if text.hasPrefix("-S") {
                rest = split(word.dropFirst(2)) + rest.dropFirst()
            } else if ["-u", "-C"].contains(text) {
                rest = rest.dropFirst(2)
            } else if text.hasPrefix("-") || text.contains("=") {
                if text.hasPrefix("PATH=") { searchPath = Array(word.dropFirst(5)) }
                rest = rest.dropFirst()
            } else {
                return Array(rest)
            }
        }
        return []
    }

    /// Returns the simple commands of a shell command line, separated without regard to quotes.
    private static func commands(ofLine line: [UInt8]) -> [[[UInt8]]] {
        let separators = Array(";|&(){}`\n".utf8)
        let quotes = Array("\"'".utf8)
        return line.split { separators.contains($0) }.map { command in
            let words = split(command).map { word in word.filter { !quotes.contains($0) } }
            return Array(
                words.drop { word in
                    word.contains(UInt8(ascii: "=")) || keywords.contains(String(decoding: word, as: UTF8.self))
                })
        }
    }

    private static func split(_ text: ArraySlice<UInt8>) -> ArraySlice<[UInt8]> {
        text.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map(Array.init)[...]
    }

    /// Returns the name without its version: `python` for `python3.11`.
    private static func stem(of name: String) -> Substring { name.prefix { !$0.isNumber && $0 != "." && $0 != "-" } }

    /// The words after which another command follows, or a file of commands.
    private static let keywords: Set<String> = [
        "!", ".", "command", "do", "elif", "else", "exec", "if", "nohup", "source", "then", "time", "until", "while",
    ]
    private static let shells: Set<String> = ["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"]
    private static let interpreters = Set(shells.map { $0[...] }).union([
        "fish", "guile", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python", "Rscript", "ruby", "tclsh",
    ])
}

/// The first line of a script.
package struct ScriptLine: Sendable {
    /// The path after `#!`.
    package let interpreter: PathBytes
    /// The rest of the line, which the kernel passes on as one argument.
    let argument: [UInt8]?

    /// Reads the first line of a file; nil if it names no interpreter.
    package init?(of file: PathBytes) {
        // Opening a file that is not regular must not block.
        let descriptor = file.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // The kernel reads as many bytes.
        var line = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &line, line.count)
        guard count > 2, line.starts(with: Array("#!".utf8)) else { return nil }
        let blanks = Array(" \t".utf8)
        let rest = line[2..<count].prefix { $0 != UInt8(ascii: "\n") && $0 != 0 }.drop { blanks.contains($0) }
        let path = rest.prefix { !blanks.contains($0) }
        guard path.first == .slash else { return nil }
        interpreter = PathBytes(Array(path))
        let words = rest.dropFirst(path.count).drop { blanks.contains($0) }
        argument = words.lastIndex { !blanks.contains($0) }.map { Array(words[...$0]) }
    }
}
