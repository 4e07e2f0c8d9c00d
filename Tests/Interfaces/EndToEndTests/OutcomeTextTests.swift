import Foundation
import Glibc
import System
import Testing
import TestKit

/// Output about finished jobs: their outputs, and whether they were undone.
struct OutcomeTextTests {
    /// A plugin that writes a file for each event, and refuses events by their file names.
    private static let plugin = """
        #!/usr/bin/python3
        import json, os, sys
        if sys.argv[1] == "describe":
            print(json.dumps({"protocol": [1], "name": "thumb", "version": "1.0", "batch": 10}))
            sys.exit()
        request, results = json.load(sys.stdin), []
        for event in request["events"]:
            name = os.path.basename(event["path"])
            if "bad" in name:
                results.append({"outcome": "failed", "message": "no picture: " + name})
                continue
            output = os.path.join(os.path.dirname(event["root"]), "thumbs", name + ".webp")
            os.makedirs(os.path.dirname(output), exist_ok=True)
            open(output, "w").close()
            results.append({"outcome": "succeeded", "message": "256x171", "outputs": [output]})
        print(json.dumps({"outcome": "succeeded", "results": results}
                         if len(results) > 1 else results[0]))

        """

    private static func make(_ tree: borrowing TemporaryTree, _ settings: String, _ names: [String]) {
        TestFile.write(tree.path("thumb"), plugin)
        _ = tree.path("thumb").withCString { chmod($0, 0o755) }
        TestFile.write(
            tree.path("rules/rules.yaml"),
            """
            rules:
              - name: thumbs
                path: ../in/*
                settle: 100ms
                existing: process
                \(settings)
                action: { use: "\(tree.path("thumb"))" }

            """)
        for name in names { TestFile.write(tree.path("in/\(name)"), name) }
    }

    @Test func `the line of a job names its output, and so do show, jobs and the API`() throws {
        try withTempTree { tree in
            Self.make(tree, "retry: false", ["cat.jpg"])
            let (status, output, error) = JournalCommand.run(tree, ["run", "--once"])
            let thumb = tree.path("thumbs/cat.jpg.webp").description
            #expect(status == 0 && output.hasSuffix(": 256x171 -> \(thumb)\n"), "\(output)\(error)")
            let listed = JournalCommand.run(tree, ["jobs", "--json"]).output
            let job = try #require(try JSONSerialization.jsonObject(with: Data(listed.utf8)) as? [String: Any])
            #expect(job["outputs"] as? [String] == [thumb])
            let shown = JournalCommand.run(tree, ["show", try #require(job["id"] as? String)]).output
            #expect(shown.contains("\n  output: \(thumb)\n"), "\(shown)")
        }
    }

    @Test func `the line of a batch has the outcome of each file`() {
        withTempTree { tree in
            Self.make(tree, "retry: false\n    batch: { files: 10, wait: 1s }", ["a", "bad", "c", "worse-bad"])
            let (_, output, error) = JournalCommand.run(tree, ["run", "--once"])
            let lines = output.split(separator: "\n")
            #expect(lines.count == 1, "\(output)\(error)")
            let line = String(lines.first ?? "")
            for words in [": 4 files: ", "2 succeeded", "2 failed"] { #expect(line.contains(words), "\(line)") }
            let parts = (line.firstRange(of: " ms: ") ?? line.firstRange(of: " s: ")).map { line[$0.upperBound...] }
            let outcomes = (parts ?? "").split(separator: "; ").map { String($0).replacing("\(tree.root)/", with: "") }
            let failed = Set(outcomes.prefix(2))
            #expect(failed == ["in/bad: no picture: bad", "in/worse-bad: no picture: worse-bad"], "\(line)")
            let thumbs = ["a", "c"].map { "in/\($0): 256x171 -> thumbs/\($0).webp" }
            #expect(outcomes.count == 5 && thumbs.contains(outcomes[2]), "\(line)")
            #expect(outcomes.last?.hasPrefix("retry with ") == true && outcomes[3] == "1 more (gave up", "\(line)")
        }
    }

    @Test func `a file that a later step has moved is not listed as an output`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("rules/rules.yaml"),
                """
                rules:
                  - name: both
                    path: ../in/*
                    settle: 100ms
                    existing: process
                    action:
                      - { use: copy, with: { to: "../copies/${name}" } }
                      - { shell: 'mv "$ALIGHT_ROOT"/../copies/* "$ALIGHT_ROOT"/../elsewhere/' }
                      - { use: copy, with: { to: "../others/${name}" } }

                """)
            for directory in ["copies", "elsewhere"] { TestFile.makeDirectory(tree.path(directory)) }
            TestFile.write(tree.path("in/a"), "a")
            #expect(JournalCommand.run(tree, ["run", "--once"]).status == 0)
            let listed = JournalCommand.run(tree, ["jobs", "--json"]).output
            #expect(listed.contains("\"outputs\":[\"\(tree.path("others/a"))\"]"), "\(listed)")
        }
    }
}
