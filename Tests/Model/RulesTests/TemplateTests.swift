import FileEvents
import Glibc
import Rules
import System
import Testing
import TestKit

struct TemplateTests {
    struct Parsing: Sendable, CustomTestStringConvertible {
        var text: String
        var parts: [Template.Part]
        var testDescription: String { text.debugDescription }

        init(_ text: String, _ parts: [Template.Part]) {
            self.text = text
            self.parts = parts
        }
    }

    static func literal(_ text: String) -> Template.Part { .literal(Array(text.utf8)) }

    static let parsed = [
        Parsing("", []),
        Parsing("plain", [literal("plain")]),
        Parsing("${name}", [.placeholder(.name)]),
        Parsing("a${name}b", [literal("a"), .placeholder(.name), literal("b")]),
        Parsing("${stem}${extension}", [.placeholder(.stem), .placeholder(.extension)]),
        Parsing("$", [literal("$")]),
        Parsing("$$", [literal("$$")]),
        Parsing("5$ and $name", [literal("5$ and $name")]),
        Parsing("$${name}", [literal("${name}")]),
        Parsing("a$${", [literal("a${")]),
        Parsing("$$${name}", [literal("$${name}")]),
        Parsing("$${a}${size}", [literal("${a}"), .placeholder(.size)]),
        Parsing("}{", [literal("}{")]),
        Parsing("${name}}", [.placeholder(.name), literal("}")]),
        Parsing("${mtime}", [.placeholder(.mtime(format: nil))]),
        Parsing("${mtime:%Y/%m}", [.placeholder(.mtime(format: "%Y/%m"))]),
        Parsing("${now:%H:%M}", [.placeholder(.now(format: "%H:%M"))]),
        Parsing("${steps.0.outputs.2}", [.placeholder(.stepOutput(step: 0, output: 2))]),
        Parsing("grün ${name} 日本", [literal("grün "), .placeholder(.name), literal(" 日本")]),
    ]

    @Test(arguments: parsed)
    func parsing(_ example: Parsing) throws {
        let template = try #require(Template(example.text))
        #expect(template.parts == example.parts)
    }

    static let refused = [
        "${",
        "ab${name",
        "ü${name",
        "${}",
        "${ name}",
        "${Name}",
        "x${nam}",
        "${${name}}",
        "${mtime:}",
        "${now:}",
        "${steps.0.outputs}",
        "${steps.0.outputs.}",
        "${steps.-1.outputs.0}",
        "${steps.+1.outputs.0}",
        "${steps.0.outputs.-0}",
        "${steps.0.output.0}",
        "${env:NONE}",
        "a${env:}",
        "${a} ${",
    ]

    @Test(arguments: refused)
    func refusal(_ text: String) {
        #expect(Template(text) == nil)
    }

    @Test func `a template without placeholders is literal, and one with placeholders is not`() throws {
        #expect(Template("a$${b}")?.literal == Array("a${b}".utf8))
        #expect(Template("a${path}")?.literal == nil)
        #expect(Template(literal: "${path}").literal == Array("${path}".utf8))
        #expect(Template("${path} ${size}")?.placeholders == [.path, .size])
    }

    @Test func `an unclosed placeholder is found after an escaped one`() {
        #expect(PlaceholderScan("$${ ${x").unclosed == 4)
        #expect(PlaceholderScan("$${a} ${x}").unclosed == nil)
    }

    // MARK: Expansion

    static func values(
        _ path: PathBytes, root: PathBytes = "/in", kind: EventKind = .created, from: PathBytes? = nil,
        outputs: [[PathBytes]] = []
    ) -> PlaceholderValues {
        PlaceholderValues(
            event: .sample(kind, path, root: root, from: from, .sample(file: 77, size: 1234)), rule: "the rule",
            job: "01J", attempt: 3, now: Timestamp(seconds: 86_400, nanoseconds: 0), stepOutputs: outputs)
    }

    struct Expansion: Sendable, CustomTestStringConvertible {
        var template: String
        var path: PathBytes
        var result: [UInt8]
        var testDescription: String { "\(template) of \(path.description.debugDescription)" }

        init(_ template: String, _ path: PathBytes, _ result: [UInt8]) {
            self.template = template
            self.path = path
            self.result = result
        }

        init(_ template: String, _ path: PathBytes, _ result: String) {
            self.init(template, path, Array(result.utf8))
        }
    }

    static let odd = PathBytes("/in/".utf8 + [0xff, 0xfe] + ".j".utf8 + [0x80])

    static let expanded = [
        Expansion("${path}", "/in/s/a.txt", "/in/s/a.txt"),
        Expansion("${name}", "/in/s/a.txt", "a.txt"),
        Expansion("${stem}|${extension}", "/in/s/a.txt", "a|txt"),
        Expansion("${directory}", "/in/s/a.txt", "/in/s"),
        Expansion("${relative}", "/in/s/a.txt", "s/a.txt"),
        Expansion("${root}", "/in/s/a.txt", "/in"),
        Expansion("${rule} ${job} ${attempt} ${event}", "/in/a", "the rule 01J 3 created"),
        Expansion("${size} ${inode}", "/in/a", "1234 77"),
        Expansion("${type} ${mode} ${nlink} ${id}", "/in/a", "file 0644 1 8:1:77:77000000000"),
        Expansion("[${from}]", "/in/a", "[]"),
        Expansion("${now}", "/in/a", "1970-01-02T00:00:00Z"),
        Expansion("${mtime}", "/in/a", "1970-01-01T00:16:40Z"),
        Expansion("${stem}|${extension}", "/in/a", "a|"),
        Expansion("${stem}|${extension}", "/in/.profile", ".profile|"),
        Expansion("${stem}|${extension}", "/in/.profile.bak", ".profile|bak"),
        Expansion("${stem}|${extension}", "/in/a.tar.gz", "a.tar|gz"),
        Expansion("${stem}|${extension}", "/in/a.", "a|"),
        Expansion("${stem}|${extension}", "/in.d/a", "a|"),
        Expansion("${stem}|${extension}", "/in/..a", "..a|"),
        // Characters in a name are not expanded again.
        Expansion("<${name}>", "/in/${name}", "<${name}>"),
        Expansion("<${name}>", "/in/$${path} $(rm -rf) `x` ;|&", "<$${path} $(rm -rf) `x` ;|&>"),
        Expansion("<${name}>", "/in/a\nb\t.txt", "<a\nb\t.txt>"),
        Expansion("<${name}>", "/in/ - ", "< - >"),
        Expansion("${name}", odd, [0xff, 0xfe] + Array(".j".utf8) + [0x80]),
        Expansion("${stem}.webp", odd, [0xff, 0xfe] + Array(".webp".utf8)),
        Expansion("${extension}", odd, [0x6a, 0x80]),
        // A path outside the root still expands to its name.
        Expansion("${relative}", "/other/a.txt", "a.txt"),
        Expansion("${steps.0.outputs.0}", "/in/a", ""),
    ]

    @Test(arguments: expanded)
    func expansion(_ example: Expansion) throws {
        let template = try #require(Template(example.template))
        #expect(template.expanded(with: Self.values(example.path)) == example.result)
    }

    @Test func `a moved file has its former path, and steps have their outputs`() throws {
        let values = Self.values("/in/b", kind: .moved, from: "/in/a", outputs: [[], ["/x", "/y z"]])
        let template = try #require(Template("${from}>${steps.1.outputs.1}>${steps.0.outputs.0}${steps.7.outputs.0}"))
        #expect(template.expanded(with: values) == Array("/in/a>/y z>".utf8))
    }

    @Test func `the root directory of the file system is a valid root`() throws {
        let values = Self.values("/a.txt", root: "/")
        let template = try #require(Template("${relative}|${directory}|${root}"))
        #expect(template.expanded(with: values) == Array("a.txt|/|/".utf8))
    }

    @Test func `formatted times are in local time`() async {
        // The time zone belongs to the process, so the test sets it in a separate one.
        await #expect(processExitsWith: .success) {
            setenv("TZ", "Asia/Kolkata", 1)
            tzset()
            // 2026-12-31T20:00:00Z is 01:30 on January 1st there.
            let now = Timestamp(seconds: 1_798_747_200, nanoseconds: 123_000_000)
            var values = TemplateTests.values("/in/a")
            values.now = now
            values.event.time = now
            values.event.snapshot.modified = now
            let cases = [
                ("${mtime:%Y/%m}", "2027/01"), ("${now:%Y-%m-%d %H:%M:%S}", "2027-01-01 01:30:00"),
                ("${mtime:%%Y}", "%Y"), ("${mtime:%z}", "+0530"), ("${mtime:x y}", "x y"),
                ("${mtime}", "2026-12-31T20:00:00.123Z"),
            ]
            for (text, result) in cases {
                let template = try #require(Template(text))
                let expanded = String(decoding: template.expanded(with: values), as: UTF8.self)
                #expect(expanded == result, "\(text)")
            }
        }
    }

    @Test func `every placeholder in the reference for messages is valid`() {
        for word in Placeholder.words where !word.hasPrefix("env:") {
            let filled = word.replacing("FORMAT", with: "%Y").replacing(".N.", with: ".0.")
            #expect(Placeholder(word: filled) != nil, "\(word)")
        }
    }
}
