import Rules
import System

/// The arguments of a command that a program executes as code: the script of `sh -c`, the expression of `perl -e`, the
/// remote command of ssh(1).
///
/// A program can be started by others, as in `sudo -u web timeout 10 sh -c …`.
struct CodeArguments {
    struct Code {
        /// The name of the program that executes it.
        var program: String
        fileprivate var language: Language
    }

    fileprivate enum Language {
        case shell
        /// A shell on another machine, which receives all arguments as one line.
        case remoteShell
        case other
    }

    /// The code by the index of its word; the program is 0.
    private(set) var found: [Int: Code] = [:]
    /// The words; a placeholder is a NUL byte, which words cannot contain.
    private let words: [[UInt8]]

    init(of command: [Template]) {
        words = command.map { template in template.parts.flatMap { $0.literal ?? [0] } }
        readCommand(at: 0)
        // Behind an unknown program, an interpreter is recognized by its name and its option.
        for index in words.indices.dropFirst() {
            guard let program = program(at: index), let syntax = Self.interpreters[program] else { continue }
            read(syntax, program, at: index)
        }
    }

    // MARK: - Parsing

    private mutating func readCommand(at index: Int) {
        guard let program = program(at: index), let syntax = Self.interpreters[program] ?? Self.others[program] else {
            return
        }
        read(syntax, program, at: index)
    }

    /// Returns the name of the program in a word, without its version, as in `python3.11`.
    private func program(at index: Int) -> String? {
        guard words.indices.contains(index), !words[index].contains(0) else { return nil }
        let name = String(decoding: PathBytes(words[index]).lastComponent, as: UTF8.self)
        if Self.interpreters[name] != nil || Self.others[name] != nil { return name }
        let end = name.lastIndex { !$0.isNumber && $0 != "." && $0 != "-" }
        return end.map { String(name[...$0]) }
    }

    private mutating func read(_ syntax: CommandSyntax, _ program: String, at start: Int) {
        let code = Code(program: program, language: syntax.language)
        var index = start + 1
        var operands = 0
        var acceptsOptions = true
        var codeOperand = syntax.codeFlags.isEmpty ? syntax.codeOperand : nil
        /// The first operands, of which one may be code.
        var candidates: [Int] = []
        scan: while index < words.count {
            defer { index += 1 }
            let word = words[index]
            if syntax.isAllCode {
                if word.elementsEqual(":::".utf8) { break }
                found[index] = code
                continue
            }
            if syntax.commandOptions.contains(String(decoding: word, as: UTF8.self)) {
                readCommand(at: index + 1)
                continue
            }
            if acceptsOptions, word.elementsEqual("--".utf8) {
                acceptsOptions = false
                continue
            }
            if acceptsOptions, word.count > 1, syntax.optionSigns.contains(word[0]) {
                for option in syntax.options(in: word) {
                    if syntax.codeFlags.contains(option.name) {
                        codeOperand = 0
                        if option.hasValue { found[index] = code }
                    } else if syntax.code.contains(option.name) {
                        found[option.hasValue ? index : index + 1] = code
                        codeOperand = nil
                        if !option.hasValue { index += 1 }
                    } else if syntax.scripts.contains(option.name) {
                        codeOperand = nil
                        if !option.hasValue { index += 1 }
                    } else if !option.hasValue {
                        index += syntax.valueCount(of: option.name)
                    }
                    if syntax.last.contains(option.name) { return }
                }
                continue
            }
            if syntax.acceptsAssignments, word.contains(UInt8(ascii: "=")) { continue }
            if syntax.hasCodeAssignments, word.contains(UInt8(ascii: "=")) { found[index] = code }
            if operands == syntax.command { readCommand(at: index) }
            candidates.append(index)
            operands += 1
            if !syntax.permutes, operands > max(syntax.command ?? 0, codeOperand ?? 0) { break }
        }
        if let codeOperand, candidates.indices.contains(codeOperand) { found[candidates[codeOperand]] = code }
    }
}

extension CodeArguments.Code {
    /// Returns what to write in place of a placeholder in the code.
    func help(for placeholder: Placeholder, written: String) -> String {
        let variable = ShellVariable.expression(for: placeholder)
        switch language {
        case .shell:
            let argument = "write \"$1\" in the code, and after it the elements sh and \"\(written)\""
            return variable.hasPrefix("\"") ? "use 'shell' and \(variable), or \(argument)" : argument
        case .remoteShell:
            return #"use 'shell', and send the path on standard input: "#
                + #"printf '%s\0' "$ALIGHT_PATH" | ssh HOST 'xargs -0 COMMAND'"#
        case .other:
            return
                "read the environment variable ALIGHT_PATH in the code, or write \"\(written)\" as an argument after it"
        }
    }
}

/// The syntax of a program's arguments, as far as it determines where code or another command is.
///
/// Options of one character are short ones, all others long ones.
private struct CommandSyntax {
    struct Option {
        var name: String
        /// Whether its value is in the same word.
        var hasValue: Bool
    }

    var language = CodeArguments.Language.other
    /// The options whose value is code.
    var code: OptionNames = ""
    /// The options without a value after which the first operand is code, as for shells.
    var codeFlags: OptionNames = ""
    /// The index of the operand that is code if no option gives code.
    var codeOperand: Int?
    /// The options whose value is a file with code.
    var scripts: OptionNames = ""
    /// The other options with a value.
    var valued: OptionNames = ""
    /// The options with two values.
    var pairs: OptionNames = ""
    /// The short options whose value, if any, is in the same word.
    var attached: OptionNames = ""
    /// The options that end those of the program.
    var last: OptionNames = ""
    /// The index of the operand that starts another command.
    var command: Int?
    /// The words after which another command starts.
    var commandOptions: OptionNames = ""
    /// Whether `NAME=value` may come before the command.
    var acceptsAssignments = false
    /// Whether the values in `NAME=value` are code.
    var hasCodeAssignments = false
    /// Whether options may follow operands.
    var permutes = false
    /// Whether long options start with a single hyphen.
    var hasSingleHyphens = false
    /// Whether all arguments are code, up to `:::`.
    var isAllCode = false

    var optionSigns: [UInt8] { codeFlags.isEmpty ? [UInt8(ascii: "-")] : [UInt8(ascii: "-"), UInt8(ascii: "+")] }

    /// Returns the options in a word that starts with a hyphen.
    func options(in word: [UInt8]) -> [Option] {
        let text = String(decoding: word, as: UTF8.self)
        if text.hasPrefix("--") || hasSingleHyphens {
            let parts = text.drop { $0 == "-" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return [Option(name: full(String(parts.first ?? "")), hasValue: parts.count > 1)]
        }
        var options: [Option] = []
        var rest = text.dropFirst()
        while let letter = rest.popFirst() {
            let name = String(letter)
            let takesValue = code.contains(name) || scripts.contains(name) || valueCount(of: name) > 0
            options.append(Option(name: name, hasValue: takesValue && !rest.isEmpty))
            if takesValue || attached.contains(name) { break }
        }
        return options
    }

    /// Returns the option with code that a long option abbreviates, as getopt_long(3) permits; otherwise its name.
    private func full(_ name: String) -> String {
        guard name.count > 1, valueCount(of: name) == 0 else { return name }
        return [code, codeFlags, scripts].lazy.compactMap { $0.names.first { $0.hasPrefix(name) } }.first ?? name
    }

    func valueCount(of option: String) -> Int { valued.contains(option) ? 1 : pairs.contains(option) ? 2 : 0 }

    /// A program that starts another one: the number of its own operands, and its options with values.
    static func wrapper(_ operands: Int = 0, _ valued: OptionNames = "") -> CommandSyntax {
        CommandSyntax(valued: valued, command: operands)
    }
}

/// The names of options, with spaces between them.
private struct OptionNames: ExpressibleByStringLiteral {
    let names: Set<String>

    init(stringLiteral text: String) { names = Set(text.split(separator: " ").map(String.init)) }

    var isEmpty: Bool { names.isEmpty }

    func contains(_ name: String) -> Bool { names.contains(name) }
}

extension CodeArguments {
    private static func table(_ rows: KeyValuePairs<String, CommandSyntax>) -> [String: CommandSyntax] {
        rows.reduce(into: [:]) { table, row in
            for name in row.key.split(separator: " ") { table[String(name)] = row.value }
        }
    }

    /// Interpreters that execute the value of an option.
    fileprivate static let interpreters = table([
        "sh bash dash ash ksh ksh93 mksh lksh oksh posh yash zsh rbash rzsh csh tcsh": CommandSyntax(
            language: .shell, codeFlags: "c", codeOperand: 0, valued: "o O rcfile init-file"),
        "fish": CommandSyntax(
            language: .shell, code: "c command C init-command", valued: "d debug o debug-output f features"),
        "pwsh powershell": CommandSyntax(code: "command c", hasSingleHyphens: true),
        "python pypy": CommandSyntax(code: "c", valued: "W X m", last: "m"),
        "perl": CommandSyntax(code: "e E M m", valued: "I", attached: "i C D F x V"),
        "ruby jruby": CommandSyntax(code: "e", valued: "I r C E", attached: "i K T W F x"),
        "node nodejs bun": CommandSyntax(
            codeFlags: "e p eval print", codeOperand: 0, valued: "r require import C conditions loader"),
        "php": CommandSyntax(code: "r R B E run", valued: "d c z S t f"),
        "lua luajit texlua": CommandSyntax(code: "e", valued: "l"),
        "R Rscript": CommandSyntax(code: "e", permutes: true),
        "julia groovy elixir racket": CommandSyntax(code: "e E eval print"),
        "guile expect": CommandSyntax(code: "c"), "emacs sbcl": CommandSyntax(code: "eval execute", permutes: true),
    ])

    /// Interpreters that execute an operand, and programs that start others.
    fileprivate static let others = table([
        "awk gawk mawk nawk original-awk": CommandSyntax(
            code: "e source", codeOperand: 0, scripts: "f file E exec",
            valued: "v assign F field-separator i include l load"),
        "sed gsed": CommandSyntax(
            code: "e expression", codeOperand: 0, scripts: "f file", valued: "l line-length", attached: "i",
            permutes: true),
        "jq gojq": CommandSyntax(
            codeOperand: 0, scripts: "f from-file", valued: "indent L", pairs: "arg argjson slurpfile rawfile",
            permutes: true),
        "sqlite3": CommandSyntax(
            code: "cmd", codeOperand: 1, valued: "separator newline nullvalue init vfs", permutes: true,
            hasSingleHyphens: true),
        "psql": CommandSyntax(code: "c command", permutes: true),
        "mysql mariadb": CommandSyntax(code: "e execute init-command", permutes: true),
        "duckdb": CommandSyntax(code: "c s cmd", permutes: true, hasSingleHyphens: true),
        "make gmake": CommandSyntax(language: .shell, code: "eval", hasCodeAssignments: true, permutes: true),
        "gdb": CommandSyntax(code: "ex eval-command", permutes: true, hasSingleHyphens: true),
        "vi vim nvim ex": CommandSyntax(code: "c cmd", permutes: true),
        "ssh slogin autossh mosh rsh remsh dbclient plink": CommandSyntax(language: .remoteShell, isAllCode: true),
        "parallel watch tmux": CommandSyntax(language: .shell, isAllCode: true),
        "su runuser": CommandSyntax(
            language: .shell, code: "c command session-command",
            valued: "u user g group G supp-group s shell w whitelist-environment", command: 0, permutes: true),
        "script": CommandSyntax(language: .shell, code: "c command", permutes: true),
        "flock": CommandSyntax(
            language: .shell, code: "c command", valued: "w wait timeout E conflict-exit-code", command: 1),
        "nix-shell": CommandSyntax(language: .shell, code: "run command", permutes: true),
        "entr": CommandSyntax(language: .shell, codeFlags: "s", codeOperand: 0, command: 0),
        "tar": CommandSyntax(
            language: .shell,
            code: "to-command checkpoint-action I use-compress-program F info-script new-volume-script rsh-command",
            valued: "f C T X b g K L N V H", permutes: true),
        "rsync": CommandSyntax(language: .shell, code: "e rsh rsync-path", permutes: true),
        "find": CommandSyntax(commandOptions: "-exec -execdir -ok -okdir", permutes: true),
        "fd fdfind": CommandSyntax(commandOptions: "-x -X --exec --exec-batch", permutes: true),
        "env": CommandSyntax(
            language: .shell, code: "S split-string", valued: "u unset C chdir", command: 0, acceptsAssignments: true),
        "sudo": CommandSyntax(
            valued:
                "u user g group p prompt C close-from c r role t type T command-timeout U other-user D chdir R chroot h host",
            command: 0, acceptsAssignments: true),
        "doas": .wrapper(0, "u C"), "pkexec": .wrapper(0, "user"), "nice": .wrapper(0, "n adjustment"),
        "ionice": .wrapper(0, "c class n classdata"),
        "chrt": .wrapper(1, "T sched-runtime D sched-deadline P sched-period"), "taskset": .wrapper(1),
        "timeout gtimeout": .wrapper(1, "k kill-after s signal"), "time": .wrapper(0, "f format o output"),
        "stdbuf": .wrapper(0, "i input o output e error"),
        "nohup setsid busybox toybox eatmydata torsocks unbuffer catchsegv dbus-run-session": .wrapper(),
        "systemd-inhibit systemd-cat firejail fakeroot valgrind prlimit": .wrapper(),
        "chroot gosu su-exec setuidgid faketime sem": .wrapper(1),
        "setpriv": .wrapper(
            0,
            "reuid regid ruid rgid euid egid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label apparmor-profile"
        ),
        "unshare nsenter": .wrapper(0, "t target S setuid G setgid R root w wd wdns"),
        "sshpass": .wrapper(0, "p f d P"), "proxychains proxychains4": .wrapper(0, "f"),
        "cpulimit": .wrapper(0, "l limit p pid"), "choom": .wrapper(0, "n adjust"),
        "strace ltrace": .wrapper(0, "e o p s S u a b I O P X E"),
        "xargs": .wrapper(0, "a arg-file d delimiter E I L max-lines n max-args P max-procs s max-chars"),
        "xvfb-run": .wrapper(0, "e f n p s w error-file auth-file server-num xauth-protocol server-args wait"),
        "systemd-run": .wrapper(
            0, "p property E setenv u unit M machine H host slice uid gid nice working-directory description"),
    ])
}
