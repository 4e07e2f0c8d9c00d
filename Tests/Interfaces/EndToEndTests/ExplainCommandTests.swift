import Foundation
import Glibc
import System
import Testing
import TestKit

/// S58: why nothing happened.
///
/// `alight explain`, as the built program.
struct ExplainCommandTests {
    private static let rules = """
        rules:
          - name: photos
            path: in/**/*.{jpg,png}
            exclude: ["**/cache"]
            outputs: ["thumbs/**"]
            depth: 2
            action: log
          - name: patient
            path: in/*
            hidden: true
            existing: process
            events: [created, truncated]
            settle: 500ms
            stable: { every: 1s, rounds: 2 }
            locks: wait
            max_wait: 1m
            action: log
          - name: later
            path: [missing/*, in/x/*/*.txt]
            missing: create
            action: log
          - name: folders
            path: in/*
            types: [directory]
            backend: poll
            poll: 5s
            action: log
          - name: off
            path: in/**
            enabled: false
            action: log
        """

    private static func explain(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> (
        status: Int32?, program: RunningProgram
    ) {
        let program = RunningProgram.alight(["explain", "--rules", "rules.yaml"] + arguments, in: tree.root)
        return (program.wait(), program)
    }

    private static func make(_ tree: borrowing TemporaryTree) {
        TestFile.write(tree.path("rules.yaml"), rules)
        TestFile.write(tree.path("in/a.jpg"), "hello")
        TestFile.makeDirectory(tree.path("in/x/y/z"))
    }

    private static let reasons: [(String, rule: String, String)] = [
        ("in/cache/b.jpg", "photos", "'**/cache' in 'exclude' excludes 'cache' and everything below it"),
        ("in/thumbs/b.jpg", "photos", "'thumbs/**' in 'outputs' excludes it, as written by the rule's own action"),
        (
            "in/a.jpg~", "patient",
            "the built-in ignore '**/*~' excludes it (Vim, Emacs, gedit and others store the previous version as name~)"
        ),
        ("missing/a", "later", "the root '~/missing' does not exist; 'alight run' would create it ('missing: create')"),
        ("in/x/b.txt", "later", "'~/in/x/*/*.txt' matches only paths further down"),
        ("in/link/b.jpg", "photos", "'~/in/link' is a symbolic link, and links below the root are not followed"),
    ]

    @Test(arguments: reasons)
    func `S58 the first reason is printed`(_ path: String, _ rule: String, _ reason: String) {
        withTempTree { tree in
            Self.make(tree)
            _ = "x".withCString { target in tree.path("in/link").withCString { symlink(target, $0) } }
            let (status, program) = Self.explain(tree, ["--rule", rule, path])
            let output = program.output.replacing("\(tree.root)", with: "~")
            #expect(output.split(separator: "\n").contains { $0.hasSuffix("no match: \(reason)") }, "\(output)")
            #expect(status == 4)
        }
    }

    @Test func `S58 a writer and a lock are printed`() {
        withTempTree { tree in
            Self.make(tree)
            let writer = tree.path("in/a.jpg").withCString { open($0, O_WRONLY | O_CLOEXEC) }
            defer { close(writer) }
            flock(writer, LOCK_EX)
            let (status, program) = Self.explain(tree, ["in/a.jpg", "--rule", "patient"])
            #expect(status == 0)
            #expect(program.output.contains("(process \(getpid())) has it open for writing, so it would wait\n"))
            #expect(program.output.contains("now: a process holds a write lock on it, so it would wait\n"))
        }
    }

    @Test func `S58 a file system that does not report every change is named`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("rules.yaml"), "rules:\n  - { name: kernel, path: '/proc/sys/**', action: log }\n")
            let (_, program) = Self.explain(tree, ["/proc/sys/kernel/hostname"])
            let text = "watched: by polling every 10 s (the kernel does not report all changes on proc)\n"
            #expect(program.output.contains(text), "\(program.output)")
        }
    }

    @Test func `S58 a path is known by the name below a root that is a link`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), "rules:\n  - { name: linked, path: 'link/*', action: log }\n")
            TestFile.write(tree.path("real/a"), "x")
            _ = "real".withCString { target in tree.path("link").withCString { symlink(target, $0) } }
            let (status, program) = Self.explain(tree, ["real/a"])
            #expect(status == 0, "\(program.output)")
            #expect(program.output.contains("match\n    by the name \(tree.root)/link/a\n"), "\(program.output)")
        }
    }

    @Test func `S58 JSON output is one object for each path and rule`() throws {
        try withTempTree { tree in
            Self.make(tree)
            let odd = tree.path("in").appending([0x62, 0xE9])
            TestFile.write(odd, "x")
            let line = #"exec "$0" explain --rules rules.yaml --json in/a.jpg in/cache/b.jpg "$(printf 'in/b\351')""#
            let program = RunningProgram(
                "/bin/sh", ["-c", line, "\(Places.alight)"], in: tree.root, output: tree.path("run"))
            #expect(program.wait() == 0)
            let objects = try program.lines.map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
            #expect(objects.count == 15)
            #expect(
                objects.map { $0["rule"] as? String }.prefix(5) == ["photos", "patient", "later", "folders", "off"])
            let taken = objects[1]
            #expect(taken["matches"] as? Bool == true)
            #expect(taken["path"] as? String == "\(tree.root)/in/a.jpg")
            #expect(taken["relative"] as? String == "a.jpg")
            #expect(taken["events"] as? [String] == ["created", "truncated"])
            // Another rule sets polling, and both rules have the same root.
            #expect(taken["backend"] as? String == "poll")
            #expect(taken["settle_ms"] as? Double == 500)
            #expect((taken["stable"] as? [String: Any])?["rounds"] as? Int == 2)
            #expect(taken["held_by"] as? [String] == [])
            let left = objects[5]
            #expect(left["matches"] as? Bool == false)
            #expect(left["reason"] as? String == "exclude")
            #expect(left["pattern"] as? String == "**/cache")
            #expect(left["part"] as? String == "cache")
            #expect(left["type"] is NSNull)
            let exact = (objects[11]["path_base64"] as? String).flatMap { Data(base64Encoded: $0) }
            #expect(exact.map { PathBytes($0) } == odd)
            #expect(objects[11]["type"] as? String == "file")
        }
    }

    private static let statuses: [([String], Int32, String)] = [
        (["in/a.jpg"], 0, ""), (["in/nothing/such", "--rule", "folders"], 4, ""),
        (["nowhere", "in/a.jpg"], 0, ""), (["nowhere"], 4, ""),
        (["--rule", "photo", "in/a.jpg"], 2, "help: write 'photos'"), ([], 2, "Missing expected argument"),
        ([""], 2, "'' is not a path"), (["--rules", "none.yaml", "in/a.jpg"], 3, "no such file"),
    ]

    @Test(arguments: statuses)
    func `S58 the exit status shows whether any rule matches a path`(
        _ arguments: [String], _ expected: Int32, _ error: String
    ) {
        withTempTree { tree in
            Self.make(tree)
            let (status, program) = Self.explain(tree, arguments)
            #expect(status == expected, "\(program.output)\(program.error)")
            #expect(error.isEmpty ? program.error.isEmpty : program.error.contains(error), "\(program.error)")
        }
    }

    @Test func `S58 rules come from the usual locations when none are named`() {
        withTempTree { tree in
            Self.make(tree)
            TestFile.write(tree.path("rules/a.yaml"), "rules:\n  - { name: one, path: '../in/*', action: log }\n")
            let program = RunningProgram.alight(["explain", "in/a.jpg"], in: tree.root)
            #expect(program.wait() == 0)
            #expect(program.output.contains("rule 'one' (rules/a.yaml:2:5): match"))
        }
    }

    @Test func `S58 the page shows the output of the program`() throws {
        try withTempTree { tree in
            let page = String(
                decoding: try #require(TestFile.read(Places.checkout.appending("docs/explain.md"))), as: UTF8.self)
            let blocks = page.split(separator: "```\n", omittingEmptySubsequences: false)
            let rules = try #require(
                page.split(separator: "```yaml\n").dropFirst().first?.split(separator: "```").first)
            let recording = try #require(blocks.first { $0.hasPrefix("$ alight explain") })
            TestFile.write(tree.path("rules.yaml"), String(rules))
            TestFile.write(tree.path("inbox/cat.jpg"), "hello")
            TestFile.makeDirectory(tree.path("albums"))
            var shown = ""
            for line in recording.split(separator: "\n") where line.hasPrefix("$ alight ") {
                let arguments = line.split(separator: " ").dropFirst(2).map(String.init)
                let program = RunningProgram.alight(arguments, in: tree.root)
                #expect(program.wait() == (program.output.contains("): match") ? 0 : 4))
                shown += "\(line)\n" + program.output.replacing("\(tree.root)", with: "~")
            }
            #expect(shown == String(recording))
        }
    }

    @Test func `only the system's database determines the content type of a file`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("in/a"), "%PDF-1.4\n")
            let magic = "0 string %PDF own words\n!:mime application/x-own\n"
            TestFile.write(tree.path("own"), magic)
            TestFile.write(tree.path(".magic"), magic)
            TestFile.write(
                tree.path("rules.yaml"),
                "rules: [{ name: r, path: in/*, where: { mime: application/pdf }, action: log }]\n")
            for environment in [[:], ["MAGIC": tree.path("own").description]] {
                let program = RunningProgram.alight(
                    ["explain", "--rules", "rules.yaml", "in/a"], in: tree.root, environment: environment)
                #expect(program.wait() == 0, "\(program.output)\(program.error)")
            }
        }
    }
}
