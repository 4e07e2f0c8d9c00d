import Foundation
import Glibc
import JSON
import System
import Testing
import TestKit

/// `alight plugins`, `describe` and `new`, and the plugin written in Swift.
struct PluginsCommandTests {
    private static let turns = Blocking(atMost: 2)

    private static func alight(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> RunningProgram {
        let program = RunningProgram.alight(
            ["plugins"] + arguments,
            in: tree.root, environment: ["PATH": "\(Places.products):/usr/local/bin:/usr/bin:/bin"], output: "output")
        _ = program.wait()
        return program
    }

    private static let yaml = """
        name: thumbs
        version: 1.2.0
        protocol: [1]
        summary: Makes thumbnails.
        run: ./main
        modes: [run, serve]
        parameters:
          type: object
          required: [to]
          additionalProperties: false
          properties:
            to: { type: string, minLength: 1, description: Where it goes. }
            size: { type: integer, minimum: 16, maximum: 4096, default: 256 }
            border: { type: object, properties: { colour: { enum: [black, white], default: black } } }
            key: { type: string, writeOnly: true, default: hunter2 }

        """

    private static func writePlugins(_ tree: borrowing TemporaryTree) {
        TestFile.makeDirectory(tree.path("rules"))
        TestFile.write(tree.path("plugins/thumbs/plugin.yaml"), yaml)
        TestFile.write(tree.path("plugins/thumbs/main"), Array("#!/bin/sh\n".utf8), mode: 0o755)
        TestFile.write(tree.path("plugins/broken/plugin.yaml"), "name: broken\nprotocol: [1]\n")
        TestFile.write(tree.path(".config/alight/plugins/thumbs/plugin.yaml"), yaml)
        TestFile.write(tree.path(".config/alight/plugins/thumbs/main"), Array("#!/bin/sh\n".utf8), mode: 0o755)
    }

    @Test func `plugins are listed with their state, followed by their problems`() {
        withTempTree { tree in
            Self.writePlugins(tree)
            let program = Self.alight(tree, [])
            #expect(program.exitStatus() == 0, "\(program.error)")
            let root = tree.root
            let expected = """
                NAME    VERSION  MODES       STATE     FROM
                broken                       broken    \(root)/plugins/broken
                thumbs  1.2.0    run, serve  ok        \(root)/plugins/thumbs
                thumbs  1.2.0    run, serve  shadowed  \(root)/.config/alight/plugins/thumbs
                error: plugin 'broken': '\(root)/plugins/broken/broken' doesn't exist
                    help: put the plugin's program there, or name it with 'run' in plugin.yaml
                note: '\(root)/.config/alight/plugins/thumbs' is shadowed by '\(root)/plugins/thumbs'

                """
            #expect(program.output == expected)
            let json = Self.alight(tree, ["--json"])
            let objects = json.lines.compactMap { JSONValue(json: $0.utf8)?.object }
            #expect(objects.map { $0["state"] } == ["broken", "ok", "shadowed"])
            #expect(objects.last?["shadowed_by"]?.string == "\(root)/plugins/thumbs")
        }
    }

    @Test func `a plugin created by new is found by its name, although the default rules are elsewhere`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path(".config/alight/rules"))
            #expect(Self.alight(tree, ["new", "lines", "--language", "bash"]).exitStatus() == 0)
            for words in [["describe", "lines"], ["test", "lines"]] {
                let program = Self.alight(tree, words)
                #expect(program.exitStatus() == 0, "\(words): \(program.error)")
            }
            #expect(Self.alight(tree, []).output.contains("\(tree.root)/plugins/lines"))
            let named = Self.alight(tree, ["describe", "lines", "--rules", ".config/alight/rules"])
            #expect(named.exitStatus() == 2)
            let near = Self.alight(tree, ["test", "lnies"]).error
            let locations =
                "plugins are searched for in '\(tree.root)/plugins', '\(tree.root)/.config/alight/rules/plugins', "
            #expect(near.hasPrefix("error: no plugin 'lnies'\n    help: write 'lines'; \(locations)"), "\(near)")
        }
    }

    @Test func `a broken plugin that no rule uses is not an error of the rules`() {
        withTempTree { tree in
            Self.writePlugins(tree)
            TestFile.write(tree.path("rules/a.yaml"), "rules:\n  - path: in/*\n    action: log\n")
            let program = RunningProgram.alight(["check"], in: tree.root, output: "output")
            let status = program.wait()
            #expect(status == 0, "\(program.error)")
            TestFile.write(tree.path("rules/a.yaml"), "rules:\n  - path: in/*\n    action: { use: broken }\n")
            let used = RunningProgram.alight(["check"], in: tree.root, output: "output")
            let usedStatus = used.wait()
            #expect(usedStatus == 3)
            #expect(used.error.contains("a.yaml:3:20: error: plugin 'broken'"), "\(used.error)")
        }
    }

    @Test func `a plugin that floods its description is reported`() {
        withTempTree { tree in
            let script = "#!/bin/sh\nhead -c 50000000 /dev/zero | tr '\\0' x\n"
            TestFile.write(tree.path("plugins/flood"), Array(script.utf8), mode: 0o755)
            let program = Self.alight(tree, ["list", "--rules", "."])
            #expect(
                program.output.contains("it printed more than 1 MiB for 'describe', and was stopped"),
                "\(program.output)")
        }
    }

    @Test func `a plugin is described with its parameters as a table`() {
        withTempTree { tree in
            Self.writePlugins(tree)
            let program = Self.alight(tree, ["describe", "thumbs"])
            #expect(program.exitStatus() == 0, "\(program.error)")
            let root = tree.root
            let expected = """
                thumbs 1.2.0: Makes thumbnails.

                from    \(root)/plugins/thumbs
                run by  \(root)/plugins/thumbs/main
                modes   run, serve
                events  all
                types   all
                names   UTF-8 only

                PARAMETER      TYPE                 DEFAULT   REQUIRED  DESCRIPTION
                border         object                         no
                border.colour  black | white        "black"   no
                key            string, secret       (secret)  no
                size           integer, 16 to 4096  256       no
                to             string                         yes       Where it goes.

                """
            #expect(program.output == expected)
            let json = Self.alight(tree, ["describe", "thumbs", "--json"])
            let object = JSONValue(json: json.output.utf8)?.object
            #expect(object?["parameters"]?.object?["properties"]?.object?["size"]?.object?["default"] == 256)
            for words in [[], ["--json"]] {
                #expect(!Self.alight(tree, ["describe", "thumbs"] + words).output.contains("hunter2"))
            }
            #expect(Self.alight(tree, ["describe", "copy"]).output.contains("a built-in handler"))
            let none = Self.alight(tree, ["describe", "thmubs"])
            #expect(none.exitStatus() == 2)
            #expect(
                none.error.hasPrefix(
                    "error: no plugin 'thmubs'\n    help: write 'thumbs'; plugins are searched for in '")
            )
        }
    }

    @Test(arguments: ["bash", "python"])
    func `a new plugin works, and passes its test`(_ language: String) async throws {
        try await Self.turns.run {
            withTempTree { tree in
                TestFile.makeDirectory(tree.path("rules"))
                let made = Self.alight(tree, ["new", "line-count", "--language", language])
                #expect(made.exitStatus() == 0, "\(made.error)")
                let listed = Self.alight(tree, [])
                #expect(listed.output.contains("line-count  0.1.0"), "\(listed.output)")
                #expect(listed.output.contains(" ok "))
                let test = RunningProgram(
                    tree.path("plugins/line-count/test"), [], in: tree.root,
                    environment: ["ALIGHT": Places.alight.description], output: tree.path("test"))
                let status = test.wait()
                #expect(status == 0, "\(test.output)\(test.error)")
                #expect(test.output.hasSuffix("line-count follows the protocol\n"))
                let skipped = test.lines.filter { $0.hasPrefix("skipped") }
                #expect(skipped.count == (language == "bash" ? 1 : 0), "\(skipped)")
                // Nothing is overwritten.
                let again = Self.alight(tree, ["new", "line-count", "--language", language])
                #expect(again.exitStatus() == 1)
                #expect(again.error.contains("already exists\n    help: choose another name, or remove it"))
                let odd = Self.alight(tree, ["new", "Line Count", "--language", language])
                #expect(odd.exitStatus() == 2)
            }
        }
    }

    @Test func `a plugin cannot have the name of a built-in handler`() {
        withTempTree { tree in
            let program = Self.alight(tree, ["new", "log", "--language", "bash"])
            #expect(program.exitStatus() == 2)
            #expect(program.error.contains("'log' is the name of a built-in handler"), "\(program.error)")
            #expect(program.error.contains("help: choose another name"))
            #expect(TestFile.names(in: tree.root).allSatisfy { $0 != Array("plugins".utf8) })
        }
    }

    @Test func `a new plugin in Swift is created where the source of Alight is known`() {
        withTempTree { tree in
            let unknown = Self.alight(tree, ["new", "a-b", "--language", "swift"])
            #expect(unknown.exitStatus() == 2)
            #expect(unknown.error.contains("with --source"))
            let made = Self.alight(
                tree, ["new", "a-b", "--language", "swift", "--source", Places.checkout.description])
            #expect(made.exitStatus() == 0, "\(made.error)")
            let package = tree.path("plugins/a-b/Package.swift")
            #expect(
                TestFile.text(package)?.contains("\(Places.checkout)")
                    == true)
            let program = tree.path("plugins/a-b/Sources/a-b/LineCount.swift")
            #expect(TestFile.exists(program))
        }
    }

    // MARK: - plugins/digest

    private static func install(_ tree: borrowing TemporaryTree) {
        let directory = tree.path("plugins/digest")
        for name in ["plugin.yaml", "request.json", "response.json", "testdata"] {
            TestFile.copyTree(Places.checkout.appending("plugins/digest").appending(name), directory.appending(name))
        }
        _ = Places.products.appending("digest-plugin").withCString { from in
            directory.appending("digest").withCString { symlink(from, $0) }
        }
    }

    @Test func `the plugin in Swift follows the protocol`() async throws {
        try await Self.turns.run {
            withTempTree { tree in
                Self.install(tree)
                let program = Self.alight(tree, ["test", "./plugins/digest"])
                #expect(program.exitStatus() == 0, "\(program.output)\(program.error)")
                #expect(!program.lines.contains { $0.hasPrefix("skipped") }, "\(program.output)")
            }
        }
    }

    private static func runOnce(_ tree: borrowing TemporaryTree) -> (status: Int32?, output: String) {
        let program = RunningProgram.alight(
            ["run", "rules.yaml", "--once", "--log-format", "json"], in: tree.root, output: "output")
        return (program.wait(), program.output + program.error)
    }

    @Test func `checksums are those of sha256sum, and different content is detected`() async throws {
        try await Self.turns.run {
            withTempTree { tree in
                Self.install(tree)
                let rules = """
                    rules:
                      - name: sums
                        path: in/*
                        exclude: ["*.sha256"]
                        settle: 100ms
                        action: { use: digest, with: { verify: true } }

                    """
                TestFile.write(tree.path("rules.yaml"), rules)
                let names = ["plain", "a b\n'\"\\", "-rf"].map { Array($0.utf8) } + [[0xE9]]
                for name in names { TestFile.write(tree.path("in").appending(name), "content of \(name)") }
                let first = Self.runOnce(tree)
                #expect(first.status == 0, "\(first.output)")
                let check = RunningProgram(
                    "/bin/sh", ["-c", "cd in && cat ./*.sha256 | sha256sum --check --strict"], in: tree.root,
                    output: tree.path("sums"))
                let status = check.wait()
                #expect(status == 0, "\(check.output)\(check.error)")
                #expect(check.lines.filter { $0.hasSuffix(": OK") }.count == names.count)
                TestFile.write(tree.path("in/plain"), "another content")
                let second = Self.runOnce(tree)
                #expect(second.status == 5, "\(second.output)")
                #expect(second.output.contains("the content does not match the checksum"))
            }
        }
    }
}
