import Foundation
import Glibc
import Testing
import TestKit

/// Output about conditions for users and scripts, as the built program prints it.
struct ConditionTextTests {
    private static let rules = """
        rules:
          - name: pictures
            path: in/**
            existing: process
            settle: 0
            where: { size: "> 4 B", mime: image/*, not: { name: "x*" } }
            action: { use: log, with: { message: "taken" } }
        """

    private static func make(_ tree: borrowing TemporaryTree) {
        TestFile.write(tree.path("rules.yaml"), rules)
        TestFile.makeDirectory(tree.path("in"))
        TestFile.write(tree.path("in/a.png"), Array("GIF89a".utf8) + [1, 0, 1, 0, 0])
        TestFile.write(tree.path("in/b.png"), "only words")
        TestFile.write(tree.path("in/c.png"), "1")
        TestFile.write(tree.path("in/x.png"), Array("GIF89a".utf8) + [1, 0, 1, 0, 0])
    }

    @Test func `a run has no line for files that conditions exclude`() {
        withTempTree { tree in
            Self.make(tree)
            let (status, output, error) = JournalCommand.run(tree, ["run", "rules.yaml", "--once"])
            #expect(status == 0, "\(error)")
            #expect(output.split(separator: "\n").count == 1, "\(output)")
            #expect(output.contains("a.png: succeeded"), "\(output)")
            #expect(!error.contains("b.png") && !error.contains("c.png"), "\(error)")
            let (_, jobs, _) = JournalCommand.run(tree, ["jobs", "--limit", "0", "--json"])
            #expect(jobs.contains("mime is 'text/plain', expected 'image/*'"), "\(jobs)")
            #expect(!jobs.contains("c.png") && !jobs.contains("x.png"), "\(jobs)")
        }
    }

    @Test func `apply reports which files conditions exclude, and why`() {
        withTempTree { tree in
            Self.make(tree)
            var result = JournalCommand.run(tree, ["apply", "--rules", "rules.yaml", "pictures", "in"])
            #expect(result.status == 0)
            #expect(
                result.error.hasPrefix(
                    """
                    'where' does not match '\(tree.path("in/b.png"))': mime is 'text/plain', expected 'image/*'
                    'where' does not match '\(tree.path("in/c.png"))': size is 1 B, expected > 4 B
                    'where' does not match '\(tree.path("in/x.png"))': excluded by 'not': name is 'x.png' ('x*')

                    """), "\(result.error)")
            #expect(result.error.hasSuffix("1 file: 1 done, 0 failed\n"), "\(result.error)")
            result = JournalCommand.run(tree, ["apply", "--rules", "rules.yaml", "pictures", "in/c.png"])
            #expect(result.status == 4, "\(result.error)")
            result = JournalCommand.run(tree, ["apply", "--rules", "rules.yaml", "--force", "pictures", "in/c.png"])
            #expect(result.status == 0, "\(result.error)")
            #expect(result.error.hasSuffix("1 file: 1 done, 0 failed\n"), "\(result.error)")
        }
    }

    @Test func `an explanation names the condition that does not match`() throws {
        try withTempTree { tree in
            Self.make(tree)
            let paths = ["in/a.png", "in/b.png", "in/c.png", "in/none.png"]
            let program = RunningProgram.alight(["explain", "--rules", "rules.yaml", "--json"] + paths, in: tree.root)
            #expect(program.wait() == 0, "\(program.error)")
            let objects = try program.lines.map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
            #expect(objects.map { $0["matches"] as? Bool } == [true, false, false, true])
            #expect(objects.map { $0["reason"] as? String } == [nil, "where", "where", nil])
            #expect(
                objects.dropFirst().first?["message"] as? String
                    == "'where' does not match: mime is 'text/plain', expected 'image/*'")
            #expect(objects.last?["where_unknown"] as? String != nil)
        }
    }
}
