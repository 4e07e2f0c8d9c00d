import Foundation
import Glibc
import System
import Testing
import TestKit

/// Waiting jobs, as users see them.
struct WaitingJobsTests {
    /// Runs a command while an instance runs.
    private static func ask(
        _ arguments: [String], in root: PathBytes, journal: [String] = ["--journal", "journal.db"]
    ) -> (status: Int32?, output: String) {
        let directory = TestFile.makeTemporaryDirectory()
        defer { TestFile.removeTree(directory) }
        let program = RunningProgram(
            Places.alight, arguments + journal, in: root, environment: ["TZ": "UTC"], output: directory.appending("out")
        )
        return (program.wait(), program.output)
    }

    private static func makeDirectory(_ rules: String) -> PathBytes {
        let root = TestFile.makeTemporaryDirectory()
        TestFile.write(root.appending("rules.yaml"), rules)
        TestFile.makeDirectory(root.appending("in"))
        return root
    }

    @Test func `alight jobs shows why a job waits, and alight apply does not wait`() {
        let root = Self.makeDirectory(
            """
            rules:
              - { name: late, path: in/*, settle: 0, window: "\(Instance.closedHours)", action: log }
              - { name: done, path: in/*, settle: 0, ready: { done_file: "${name}.ok" }, action: log }
            """)
        defer { TestFile.removeTree(root) }
        let program = RunningProgram.alight(
            ["run", "rules.yaml", "--journal", "journal.db"], in: root, environment: ["TZ": "UTC"], output: "alight")
        #expect(program.waitUntilReady())
        TestFile.write(root.appending("in/a"), "x")
        let isThere = Deadline.wait {
            let text = Self.ask(["jobs"], in: root).output
            return text.contains("its window opens at 20") && text.contains("it waits for '\(root)/in/a.ok'")
        }
        #expect(isThere)
        for rule in ["late", "done"] {
            let applied = Self.ask(["apply", "--rules", "rules.yaml", rule, "in/a"], in: root)
            #expect(applied.status == 0)
        }
        let areDone = Deadline.wait {
            let lines = Self.ask(["jobs"], in: root).output.split(separator: "\n")
            return lines.count >= 2 && lines.allSatisfy { $0.contains("\tsucceeded\t") }
        }
        #expect(areDone)
        program.signal(SIGTERM)
        let status = program.wait()
        #expect(status == 0)
    }

    @Test func `a group that waits for a refused file is reported, and alight retry continues it`() {
        let root = Self.makeDirectory(
            """
            rules:
              - name: films
                path: in/*
                settle: 0
                where: { size: "> 1" }
                group: ${stem}
                require: [mkv, nfo]
                retry: false
                ready: { command: [sh, -c, 'echo "no $0" >&2; test "$0" = a.mkv -o -e good', "${name}"] }
                directory: .
                action: log
            """)
        defer { TestFile.removeTree(root) }
        let program = RunningProgram.alight(
            ["run", "rules.yaml", "--journal", "journal.db"], in: root, environment: ["TZ": "UTC"], output: "alight")
        #expect(program.waitUntilReady())
        TestFile.write(root.appending("in/a.nfo"), "x")
        TestFile.write(root.appending("in/a.mkv"), "xx")
        func shows(_ text: String) -> Bool { Deadline.wait { Self.ask(["jobs"], in: root).output.contains(text) } }
        #expect(shows("its set is missing 'nfo'"))
        let explained = Self.ask(["explain", "--rules", "rules.yaml", "in/a.mkv"], in: root).output
        #expect(explained.contains("its set is missing 'nfo'"))
        TestFile.write(root.appending("in/a.nfo"), "xx")
        #expect(shows("it waits for '\(root)/in/a.nfo', which was skipped: 'ready': no a.nfo"))
        TestFile.write(root.appending("good"), "")
        let retried = Self.ask(["retry", "--all"], in: root)
        #expect(retried.status == 0)
        let areDone = Deadline.wait {
            let lines = Self.ask(["jobs"], in: root).output.split(separator: "\n")
            return lines.count == 2 && lines.allSatisfy { $0.contains("\tsucceeded\t") }
        }
        #expect(areDone)
        program.signal(SIGTERM)
        let status = program.wait()
        #expect(status == 0)
    }

    @Test func `alight explain names the rule that keeps a path from another`() {
        let root = Self.makeDirectory(
            """
            rules:
              - { name: all, path: in/*, action: log }
              - { name: pdf, path: "in/*.pdf", priority: 1, stop: true, action: log }
            """)
        defer { TestFile.removeTree(root) }
        let pdf = Self.ask(["explain", "--rules", "rules.yaml", "in/a.pdf"], in: root, journal: []).output
        #expect(pdf.contains("no match: rule 'pdf' matches first and stops ('stop: true')"))
        let text = Self.ask(["explain", "--rules", "rules.yaml", "in/a.txt"], in: root, journal: []).output
        #expect(!text.contains("not seen"))
    }
}
