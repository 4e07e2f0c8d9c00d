import Foundation
import Glibc
import System
import Testing
import TestKit

/// A running instance with two rules, and the commands and requests that it receives.
enum Instance {
    /// One hour of the day, in UTC, that starts in two hours.
    static var closedHours: String {
        let hour = Int(time(nil)) / 3600 % 24
        func text(_ hour: Int) -> String { "\(hour % 24 < 10 ? "0" : "")\(hour % 24):00" }
        return "\(text(hour + 2))-\(text(hour + 3))"
    }

    static func rules(_ root: PathBytes) -> String {
        """
        rules:
          - name: letters
            path: in/*.txt
            settle: 50ms
            retry: false
            action:
              shell: |
                if [ -e '\(root)/refuse' ]; then echo 'no paper' >&2; exit 1; fi
                cat "$ALIGHT_PATH" >>'\(root)/out'
          - name: pictures
            path: in/*.png
            settle: 50ms
            action: { use: log }

        """
    }

    static func begin(_ root: PathBytes, _ arguments: [String] = [], name: String = "run") -> RunningProgram {
        let program = RunningProgram(
            Places.alight, ["run", "rules.yaml", "--log-format", "json"] + arguments, in: root,
            output: root.appending(name))
        JournalFileTests.awaitReady(program)
        return program
    }

    static func withProgram(
        _ arguments: [String] = [], _ body: (PathBytes, RunningProgram) throws -> Void
    ) throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), rules(root))
            let program = begin(root, arguments)
            try body(root, program)
            if program.exitStatus() == nil {
                #expect(program.stop() == 0, "\(program.error)")
            }
        }
    }

    /// Runs a command while the instance runs.
    @discardableResult
    static func command(
        _ root: PathBytes, _ arguments: [String]
    ) -> (status: Int32?, output: String, error: String) {
        withTempTree { tree in
            let environment = JournalCommand.environment.merging(["ALIGHT_CONTROL": socket(root).description]) { $1 }
            return RunningProgram(
                Places.alight, arguments, in: root, environment: environment, output: tree.path("command")
            ).result()
        }
    }

    static func socket(_ root: PathBytes) -> PathBytes { root.appending(".run/control.sock") }

    static func get(_ root: PathBytes, _ target: String) throws -> [String: Any] {
        let answer = try #require(RawHTTP.ask(socket(root), "GET", target))
        #expect(answer.status == 200, "\(answer.body)")
        return try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
    }

    /// Waits for a job in the given state and returns its ID, or nil if there is none in time.
    static func job(_ root: PathBytes, _ state: String) throws -> String? {
        try Deadline.poll {
            let jobs = try #require(try get(root, "/v1/jobs?state=\(state)")["jobs"] as? [[String: Any]])
            return jobs.first?["id"] as? String
        }
    }
}
