import Foundation
import JSON
import Testing
import TestKit

/// `alight plugins test`: it finds the errors of a plugin, and reports no others.
struct PluginTestCommandTests {
    private static let turns = Blocking(atMost: 3)

    /// Returns the checks of a test by their verdict, and the messages of those that failed.
    private static func test(
        _ tree: borrowing TemporaryTree, _ plugin: String, _ options: [String] = []
    ) throws -> (status: Int32?, verdicts: [String: String], failures: [String: String]) {
        let program = RunningProgram.alight(
            ["plugins", "test", plugin, "--json"] + options, in: tree.root, output: "output")
        let status = program.wait()
        var verdicts: [String: String] = [:]
        var failures: [String: String] = [:]
        for line in program.lines {
            let members = JSONValue(json: line.utf8)?.object ?? [:]
            let check = members["check"]?.string ?? line
            verdicts[check] = members["verdict"]?.string
            if members["verdict"] == "failed" {
                failures[check] = members["message"]?.string
                #expect(members["help"]?.string?.isEmpty == false)
            }
        }
        if verdicts.isEmpty { Issue.record("nothing was checked: \(program.error)") }
        return (status, verdicts, failures)
    }

    private static func writeModel(_ tree: borrowing TemporaryTree, _ text: String = ConformancePlugin.text) {
        TestFile.write(tree.path("model"), Array(text.utf8), mode: 0o755)
    }

    @Test func `a plugin that follows the protocol passes every check`() async throws {
        try await Self.turns.run {
            try withTempTree { tree in
                Self.writeModel(tree)
                let (status, verdicts, failures) = try Self.test(tree, "./model")
                #expect(status == 0)
                #expect(failures == [:])
                #expect(verdicts.filter { $0.value == "skipped" }.keys.sorted() == ["own-case"])
                let checks = Set(ConformancePlugin.violations.map(\.check)).subtracting(["own-case"])
                #expect(
                    checks.isSubset(of: verdicts.keys), "each check is tested: \(checks.subtracting(verdicts.keys))")
                let untested = Set(verdicts.keys).subtracting(checks).subtracting(["own-case"])
                #expect(untested.isEmpty, "a check without a plugin that fails it")
                // Nothing is left behind but the runtime directory, which is empty.
                let left = TestFile.names(in: tree.root).map { String(decoding: $0, as: UTF8.self) }
                #expect(left == [".run", "model", "output.err", "output.out"])
                #expect(TestFile.names(in: tree.path(".run")).isEmpty)
            }
        }
    }

    @Test(arguments: ConformancePlugin.violations.indices)
    func `a plugin with one violation fails exactly one check`(_ index: Int) async throws {
        let violation = ConformancePlugin.violations[index]
        try await Self.turns.run {
            try withTempTree { tree in
                Self.writeModel(tree, violation.text)
                let (status, _, failures) = try Self.test(tree, "./model", ["--grace", "3s"] + violation.options)
                #expect(status == 1)
                #expect(failures.keys.sorted() == [violation.check], "\(failures)")
                #expect(failures[violation.check]?.contains(violation.words) == true, "\(failures)")
            }
        }
    }

    @Test func `the test case of a plugin is compared member by member`() async throws {
        try await Self.turns.run {
            try withTempTree { tree in
                Self.writeModel(tree)
                TestFile.write(
                    tree.path("own/plugin.yaml"),
                    "name: own\nprotocol: [1]\nrun: ../model\nraw_paths: true\nparameters: { properties: { n: {} }, required: [n] }\n"
                )
                TestFile.write(tree.path("own/testdata/a.txt"), "a")
                let event = #"{"event": "created", "path": "@SCRATCH@/a.txt"}"#
                TestFile.write(
                    tree.path("own/request.json"),
                    "{\"id\": \"1\", \"attempt\": 1, \"with\": {\"n\": 5}, \"scratch\": \"@SCRATCH@/.scratch\", \"events\": [\(event)]}"
                )
                TestFile.write(tree.path("own/response.json"), #"{"outcome": "succeeded"}"#)
                let right = try Self.test(tree, "./own")
                #expect(right.status == 0)
                #expect(right.verdicts["own-case"] == "ok")
                TestFile.write(tree.path("own/response.json"), #"{"outcome": "succeeded", "outputs": ["@SCRATCH@/b"]}"#)
                let wrong = try Self.test(tree, "./own")
                #expect(wrong.status == 1)
                #expect(wrong.failures.keys.sorted() == ["own-case"])
                #expect(wrong.failures["own-case"]?.contains("'outputs' is [") == true, "\(wrong.failures)")
            }
        }
    }

    @Test func `parameters and a sample can be specified`() async throws {
        try await Self.turns.run {
            try withTempTree { tree in
                let parameters =
                    #""properties": {"to": {"type": "string"}, "n": {"type": "integer"}}, "required": ["to", "n"]"#
                var text = ConformancePlugin.text.replacing(#""properties": {}"#, with: parameters)
                // The plugin requires the content and name of the sample, and the values of the parameters.
                text = text.replacing(
                    "    with open(path + b\".tmp\"",
                    with: """
                            if content not in (b'', b'PIC') or not path.endswith(b'.pic'): return {"outcome": "failed"}
                            if request["with"]["to"] != os.path.dirname(event["path"]) + "/o" and b'\\xe9' not in path: raise ValueError
                            if request["with"]["n"] != 3: raise ValueError
                            with open(path + b".tmp"
                        """)
                Self.writeModel(tree, text)
                TestFile.write(tree.path("some.pic"), "PIC")
                let (status, _, failures) = try Self.test(
                    tree, "./model", ["--with", "to=@SCRATCH@/o", "--with", "n=3", "--sample", "some.pic"])
                #expect(status == 0, "\(failures)")
            }
        }
    }

    @Test func `parameters that do not fit and a timeout of zero are refused`() async throws {
        try await Self.turns.run {
            withTempTree { tree in
                let parameters = #""additionalProperties": False, "properties": {"size": {"type": "integer"}}"#
                Self.writeModel(tree, ConformancePlugin.text.replacing(#""properties": {}"#, with: parameters))
                let (root, output) = (tree.root, tree.path("output"))
                func test(_ option: String, _ value: String) -> (status: Int32?, output: String) {
                    let program = RunningProgram(
                        Places.alight, ["plugins", "test", "./model", option, value], in: root, output: output)
                    let status = program.wait()
                    return (status, program.output + program.error)
                }
                let (status, text) = test("--with", "sise=3")
                #expect(status == 1)
                #expect(text.contains("write 'size'; the parameters are size"), "\(text)")
                let required = parameters + #", "required": ["size"]"#
                Self.writeModel(tree, ConformancePlugin.text.replacing(#""properties": {}"#, with: required))
                let missing = test("--grace", "1s")
                #expect(missing.status == 1)
                #expect(missing.output.contains("parameter 'size' is missing"), "\(missing.output)")
                #expect(missing.output.contains("--with size=VALUE"), "\(missing.output)")
                let (refused, message) = test("--timeout", "0")
                #expect(refused == 2)
                #expect(message.contains("'--timeout 0' leaves no time for an answer"), "\(message)")
            }
        }
    }
}
