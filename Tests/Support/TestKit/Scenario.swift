/// A script of changes to files and the expected reactions of the program.
///
/// Each file `Tests/Interfaces/EndToEndTests/Scenarios/NAME.scenario` is one test: ``ScenarioRunner`` runs it in a new
/// directory, against the built program; if root runs the tests, it also runs as user 65534. `S31` in a name is the
/// behaviour that the scenario shows, as numbered at the end of `docs/events.md`. The first line is a comment that
/// states the behaviour.
///
/// ```
/// # A finished upload is one event with the whole content, and a rename of it is another.
/// rule    path in/*.txt, events created moved, settle 200ms, action log
/// tree    in/
/// write   in/a.part = "hello "
/// append  in/a.part = "you"
/// move    in/a.part -> in/a.txt
/// expect  created in/a.txt message "created 9"
/// move    in/a.txt -> in/b.txt
/// expect  moved in/b.txt from in/a.txt
/// expect  nothing more within 500ms
/// ```
///
/// Each line is one statement; they run one after the other. Empty lines and lines that start with `#` are ignored.
/// Spaces separate words; `"…"` is one word, in which `\n` is a newline, `\xE9` a byte, `\"` a quotation mark and `\\`
/// a backslash. Paths are relative to the directory.
///
/// The rules, in one of two ways:
///
/// - `rule KEY VALUE, KEY VALUE, …`: one rule; repeat it for more. The values of `events`, `types` and `exclude` are
///   words. `action log` logs `${event} ${size}`. A value cannot contain a comma
/// - `yaml`, then lines, then `end`: the verbatim rules file
///
/// Before the start:
///
/// - `tree PATH = "TEXT"`: writes a file, and creates its parent directories
/// - `tree PATH/`: creates a directory
/// - `first "LINE"`: runs a line of shell in the directory and waits for it; its background processes continue
/// - `needs root`, `needs ordinary`, `needs namespaces`, `needs fuse`, `needs overlay`, `needs btrfs`,
///   `needs writers`: skips the scenario, with a message, where the requirement is not met
/// - `limit watches 8`, `limit instances 0`: lowers a limit of inotify for the program, in a user namespace
///   (`needs namespaces`)
/// - `mounts`: runs the program in a separate mount namespace, in which `sh` can mount (`needs root`)
///
/// The program is `alight run rules.yaml --log-format json`. Without a `start`, the first statement that changes a file
/// starts it. The scenario then waits until every watch is live.
///
/// - `start OPTION…`: starts it, with further options; with `--once` the scenario does not wait
/// - `signal NAME`: sends `TERM`, `INT`, `KILL`, `USR1`, `STOP` or `CONT`
/// - `pause 500ms`: pauses, as a slow writer does; never use it to wait for the program
///
/// Changes to files:
///
/// - `write PATH = "TEXT"`: creates the file or replaces its content, in one step
/// - `append PATH = "TEXT"`: opens, writes at the end, closes
/// - `open PATH`, `put PATH = "TEXT"`, `close PATH`: the same in separate steps: the file stays open in between
/// - `move A -> B`, `link A -> B`: rename(2), link(2)
/// - `symlink TARGET -> PATH`: symlink(2); the target is used as written
/// - `mkdir PATH`, `delete PATH`, `rmtree PATH`: creates a directory and its parents; deletes a file; deletes a
///   directory and its contents
/// - `touch PATH`, `chmod 600 PATH`: sets the times to now, the mode
/// - `sh "LINE"`: runs a line of shell in the directory and waits for it; `$ALIGHT` is the program
///
/// Expectations:
///
/// - `expect EVENT PATH`: the next line that the program prints for an action has this event and path. Optional, each
///   after its keyword: `from` PATH, `by` RULE, `message` TEXT, `outcome` WORD, `state` WORD. With `by`, lines of other
///   events may come before it, since actions of several rules run at the same time
/// - `expect among EVENT PATH`: the same, but lines that are expected further down may come before it
/// - `expect nothing more within 500ms`: no further line is printed in that time
/// - `expect file PATH = "TEXT"`: the file has that content
/// - `expect text PATH "TEXT"`: the content of the file contains the string
/// - `expect no PATH`: the path does not exist
/// - `expect error "TEXT"`: standard error contains the string
/// - `expect exit N`: the program has exited with that status
///
/// `expect` waits for up to 60 seconds, `expect exit` for 120. An expectation must not depend on a duration: where two
/// things have to happen within the quiet time, make the quiet time at least 2 seconds, and let a long action wait for
/// a file that the scenario writes. A program that still runs at the end receives SIGTERM and must exit with 0. When an
/// expectation fails, the test shows its line and the complete output of the program.
package struct Scenario: Sendable {
    package struct Line: Sendable {
        package var number: Int
        package var words: [[UInt8]]

        /// The word at the index as a string; empty if there is none.
        package func text(_ index: Int) -> String {
            index < words.count ? String(decoding: words[index], as: UTF8.self) : ""
        }
    }

    package var name: String
    /// The rules file.
    package var rules: String
    package var lines: [Line]

    /// Parses a script.
    package init(name: String, text: String) {
        self.name = name
        var rules = "rules:\n"
        var lines: [Line] = []
        var raw: [String]?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if raw != nil {
                if line == "end" {
                    rules = raw?.joined(separator: "\n") ?? ""
                    raw = nil
                } else {
                    raw?.append(String(line))
                }
                continue
            }
            let words = Self.words(of: line)
            guard let first = words.first.map({ String(decoding: $0, as: UTF8.self) }), !first.hasPrefix("#") else {
                continue
            }
            switch first {
            case "yaml": raw = []
            case "rule": rules += Self.rule(String(line.drop { $0 != " " }))
            default: lines.append(Line(number: index + 1, words: words))
            }
        }
        self.rules = rules
        self.lines = lines
    }

    /// Converts a line such as `path in/*, events created moved, settle 200ms, action log` to YAML.
    private static func rule(_ text: String) -> String {
        var keys = ""
        for (index, part) in text.split(separator: ",").enumerated() {
            let words = part.split(separator: " ")
            guard let key = words.first else { continue }
            var value = words.dropFirst().joined(separator: " ")
            switch key {
            case "events", "types", "exclude":
                value = "[" + words.dropFirst().map { "'\($0)'" }.joined(separator: ", ") + "]"
            case "action" where value == "log":
                value = "{ use: log, with: { message: '${event} ${size}' } }"
            case "path": value = "'\(value)'"
            default: break
            }
            keys += "\(index == 0 ? "  - " : "    ")\(key): \(value)\n"
        }
        return keys
    }

    /// Splits a line at spaces, except in quoted words.
    static func words(of line: some StringProtocol) -> [[UInt8]] {
        var words: [[UInt8]] = []
        var word: [UInt8]?
        var isQuoted = false
        var bytes = Array(line.utf8)[...]
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "\""):
                isQuoted.toggle()
                word = word ?? []
            case UInt8(ascii: " ") where !isQuoted:
                if let finished = word { words.append(finished) }
                word = nil
            case UInt8(ascii: "\\") where isQuoted:
                switch bytes.popFirst() {
                case UInt8(ascii: "n"): word?.append(10)
                case UInt8(ascii: "x"):
                    word?.append(UInt8(String(decoding: bytes.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                    bytes = bytes.dropFirst(2)
                case let other?: word?.append(other)
                case nil: break
                }
            default:
                word = (word ?? []) + [byte]
            }
        }
        if let word { words.append(word) }
        return words
    }
}
