import Configuration
import FileEvents
import Rules
import System
import Testing
import TestKit

struct ImportTests {
    private static let directory = Golden.directory.appending("Import")

    private static let tables = TestFile.names(in: directory).map { String(decoding: $0, as: UTF8.self) }
        .filter { $0.hasSuffix(".incrontab") }

    /// Treats a path with an extension as a file and any other path as a directory.
    private static func nature(_ path: PathBytes) -> PathNature {
        let name = String(decoding: path.lastComponent, as: UTF8.self)
        if path == "/srv/a" { return .missing }
        return name.contains(".") ? .file : .directory
    }

    private static func rules(_ name: String) -> String {
        let table = TestFile.read(directory.appending(name)) ?? []
        return IncrontabImport.rules(from: table, source: name, nature: nature)
    }

    @Test func `there are enough tables`() {
        #expect(Self.tables.count >= 3)
        let lines = Self.tables.reduce(0) { count, name in
            count + (TestFile.read(Self.directory.appending(name)) ?? []).count { $0 == UInt8(ascii: "\n") }
        }
        #expect(lines >= 50)
    }

    @Test(arguments: tables)
    func `a table produces the recorded rules`(name: String) {
        let text = Self.rules(name)
        #expect(text == Golden.text("Import/\(name)", recording: text))
    }

    @Test(arguments: tables)
    func `the rules load without an error, one for each imported line`(name: String) {
        let text = Self.rules(name)
        // The programs of the tables do not exist on every machine.
        let loaded = load(text.replacing("bin/relative", with: "/bin/echo"))
        #expect(loaded.diagnostics.filter { $0.severity == .error }.map(\.description) == [])
        let count = text.split(separator: "\n").count { $0.hasPrefix("  - name: ") }
        #expect(loaded.rulesInOrder.count == count)
    }

    private static func rule(_ line: String) -> Rule? {
        load(IncrontabImport.rules(from: Array(line.utf8), source: "t", nature: nature)).rulesInOrder.first
    }

    private static func arguments(_ line: String) -> [String] {
        guard case .exec(let words) = rule(line)?.actions.first?.work else { return [] }
        return words.map { word in
            word.parts.map { part in
                switch part {
                case .literal(let bytes): String(decoding: bytes, as: UTF8.self)
                case .placeholder(let placeholder): "<\(placeholder)>"
                }
            }.joined()
        }
    }

    @Test(arguments: [
        ("$@/$#", ["<path>"]), ("$@ $#", ["<directory>", "<name>"]), ("a$#b", ["a<name>b"]), ("$$", ["$"]),
        ("$&", ["8"]), ("$%", ["IN_CLOSE_WRITE"]), (#""a b" 'c d' e\ f"#, ["a b", "c d", "e f"]),
        ("a;b >c |", ["a;b", ">c", "|"]), (#"'${name}'"#, ["{name}"]), ("$${name}", ["${name}"]),
        (#""" x"#, ["", "x"]), (#""\$@""#, ["\\<directory>"]),
    ])
    func `the arguments of a command are split`(command: String, expected: [String]) {
        #expect(Self.arguments("/srv/in IN_CLOSE_WRITE /bin/echo \(command)").dropFirst() == expected[...])
    }

    @Test func `in a shell command a name is a quoted variable`() {
        #expect(
            Self.arguments(#"/srv/in IN_CLOSE_WRITE /bin/sh -c "cp $@/$# /x; echo 'of $#'""#)
                == ["/bin/sh", "-c", #"cp "$ALIGHT_PATH" /x; echo 'of '"${ALIGHT_PATH##*/}"''"#])
    }

    @Test func `a directory is watched as incron watches it`() {
        let rule = Self.rule("/srv/in IN_CREATE /bin/echo")
        func takes(_ path: PathBytes) -> Bool { rule?.root(matching: path) != nil }
        #expect(takes("/srv/in/a") && takes("/srv/in/.a") && takes("/srv/in/x/y/a.tmp") && takes("/srv/in/.hidden"))
        #expect(!takes("/srv/in/.hidden/a") && !takes("/srv/in/x/.hidden/y/a") && !takes("/srv/in"))
        #expect(Self.rule("/srv/in IN_CREATE,dotdirs=true /bin/echo")?.root(matching: "/srv/in/.hidden/a") != nil)
        #expect(Self.rule("/srv/in IN_CREATE,recursive=false /bin/echo")?.root(matching: "/srv/in/x/a") == nil)
        #expect(Self.rule("/srv/in IN_CREATE,recursive=false /bin/echo")?.root(matching: "/srv/in/.x") != nil)
    }

    @Test func `control characters in a comment of the rules file are removed`() {
        let text = IncrontabImport.rules(
            from: Array("# a\u{1b}[2J\u{2028}b\n/srv/in IN_CREATE /bin/echo \u{1b}\u{85}rules: x".utf8), source: "a\nb",
            nature: Self.nature)
        #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
        #expect(!load(text).hasErrors)
    }
}

struct FirstRuleTests {
    private static func text(_ directory: PathBytes, _ work: FirstRule.Work, events: [String]? = nil) -> String {
        FirstRule(
            name: FirstRule.name(for: directory, nil, excluding: []), directory: directory, home: "/home/ada",
            events: events, work: work
        )
        .text
    }

    @Test(
        arguments: FakeCatalog.handlers.filter { $0.reference.name != "cuts" }.map(\.reference.name))
    func `a first rule with a handler loads`(name: String) throws {
        let handler = try #require(FakeCatalog.handlers.first { $0.reference.name == name })
        let loaded = load(Self.text("/srv/in", .use(name, handler)))
        #expect(loaded.diagnostics.map(\.description) == [])
        #expect(loaded.ruleset.rules.first?.name == "in")
    }

    @Test(
        arguments: ["/srv/in", "/home/ada", "/home/ada/a b", "/", "/srv/{a}*[b]", "/srv/a: #'\"", "/srv/${env:X}"]
            as [PathBytes])
    func `a first rule matches the files of its directory`(directory: PathBytes) {
        let text = Self.text(directory, .exec(["cp", "--", "${path}", "a\"b\n"]), events: ["created", "deleted"])
        let rule = load(text).ruleset.rules.first
        #expect(rule?.root(matching: directory.appending("a.txt")) == directory)
        #expect(rule?.root(matching: directory.appending("x/a.txt")) == nil)
        #expect(rule?.events == [.created, .deleted])
    }

    @Test(arguments: [
        "", "~", "null", "1", "0x1", "yes", "- a", "a: b", "a #b", "'", "\"\\", "\u{1b}", "{", "é", "true", "-", "a,b",
        "*x",
    ])
    func `a scalar is read back unchanged`(text: String) {
        let loaded = load("rules: [{name: r, path: /in/*, action: {exec: [/bin/echo, \(YAMLText.scalar(text))]}}]")
        guard case .exec(let words) = loaded.ruleset.rules.first?.actions.first?.work else {
            Issue.record("it does not load: \(loaded.diagnostics)")
            return
        }
        #expect(words.last?.literal == (text == "~" ? Array("/home/ada".utf8) : Array(text.utf8)))
    }
}
