import Foundation
import JournalFixtures
import Rules
import System
import Testing
import TestKit

/// `alight retry` and `alight discard`, as the built program.
struct RetryCommandTests {
    private static let jobs = [
        SampleJob(0, .failed, "/in/a\u{1B}"), SampleJob(60, .failed, "/in/b", rule: "letters"),
        SampleJob(120, .pending, "/in/c"), SampleJob(180, .running, "/in/d"), SampleJob(240, .succeeded, "/in/e"),
        SampleJob(300, .skipped, "/in/f"), SampleJob(360, .failed, "/in/g"),
    ]

    private func with<Answer>(_ body: (borrowing TemporaryTree, JournalFile) throws -> Answer) throws -> Answer {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            try file.add(Self.jobs)
            return try body(tree, file)
        }
    }

    /// Returns the current states of the jobs, with nil for deleted ones.
    private static func states(_ tree: borrowing TemporaryTree) throws -> [String?] {
        let (_, output, error) = JournalCommand.run(tree, ["jobs", "--limit", "0"])
        #expect(error.isEmpty || error.hasPrefix("the journal has no jobs"), "\(error)")
        let states = Dictionary(
            uniqueKeysWithValues: output.split(separator: "\n").map { line in
                let fields = line.split(separator: "\t")
                return (String(fields[0]), String(fields[1]))
            })
        return jobs.map { states[$0.id] }
    }

    /// Locks the journal, as an instance without a control socket does.
    private static func holder(_ tree: borrowing TemporaryTree) -> RunningProgram {
        let script = """
            exec 9>>journal.db-lock; flock 9; echo $$ >journal.db-lock
            touch ready
            while [ ! -e end ]; do sleep 0.02; done
            """
        let program = RunningProgram("/bin/sh", ["-c", script], in: tree.root, output: tree.path("holder"))
        let ready = tree.path("ready")
        #expect(Deadline.wait { TestFile.exists(ready) }, "\(program.error)")
        return program
    }

    @Test func `failed jobs are pending again, even if no instance runs`() throws {
        try with { (tree, _) throws in
            let (status, output, error) = JournalCommand.run(tree, ["retry", Self.jobs[0].id, Self.jobs[1].id])
            #expect(status == 0)
            #expect(error.isEmpty)
            #expect(
                output == """
                    \(Self.jobs[0].id) will be retried: scans: /in/a\\u{1b}
                    \(Self.jobs[1].id) will be retried: letters: /in/b

                    """)
            // The job that was running is interrupted when its rule runs again.
            #expect(
                try Self.states(tree) == ["pending", "pending", "pending", "running", "succeeded", "skipped", "failed"])
        }
    }

    @Test func `a discarded failed job is deleted, and a discarded pending job is skipped`() throws {
        try with { (tree, _) throws in
            let (status, output, _) = JournalCommand.run(tree, ["discard", Self.jobs[0].id, Self.jobs[2].id])
            #expect(status == 0)
            #expect(
                output == """
                    \(Self.jobs[0].id) discarded: scans: /in/a\\u{1b}
                    \(Self.jobs[2].id) discarded: scans: /in/c

                    """)
            #expect(try Self.states(tree) == [nil, "failed", "skipped", "running", "succeeded", "skipped", "failed"])
        }
    }

    private static let choices: [([String], [Int])] = [
        (["retry", "--all"], [0, 1, 6]), (["retry", "--rule", "letters"], [1]), (["discard", "--all"], [0, 1, 6]),
        (["discard", "--rule", "scans"], [0, 6]), (["retry", "--all", "--rule", "letters"], [1]),
        (["discard", "--rule", "scans", "--all"], [0, 6]), (["retry", jobs[1].id, jobs[1].id], [1]),
        (["retry", jobs[2].id], [2]),
    ]

    @Test(arguments: choices)
    func `jobs are selected by ID, by rule, or all`(_ arguments: [String], _ expected: [Int]) throws {
        try with { (tree, _) throws in
            let (status, output, error) = JournalCommand.run(tree, arguments)
            #expect(status == 0, "\(error)")
            #expect(output.split(separator: "\n").map { String($0.prefix(26)) } == expected.map { Self.jobs[$0].id })
        }
    }

    @Test func `an error for one job is reported, and the other jobs are processed`() throws {
        try with { (tree, _) throws in
            let names = [Self.jobs[3].id, "01JD8Z3T1W", Self.jobs[4].id, Self.jobs[5].id, Self.jobs[6].id]
            let (status, output, error) = JournalCommand.run(tree, ["retry"] + names)
            #expect(status == 1)
            #expect(output == "\(Self.jobs[6].id) will be retried: scans: /in/g\n")
            let refusal = "only failed and pending jobs can be retried"
            #expect(
                error == """
                    error: job \(names[0]) is running: \(refusal)
                    error: there is no job '01JD8Z3T1W' in '\(tree.path("journal.db"))'
                        help: `alight jobs` lists them
                    error: job \(names[2]) has succeeded: \(refusal)
                    error: job \(names[3]) was skipped: \(refusal)

                    """)
            #expect(try Self.states(tree)[6] == "pending")
        }
    }

    @Test func `without failed jobs nothing is done`() throws {
        try with { (tree, _) throws in
            let (status, output, error) = JournalCommand.run(tree, ["retry", "--rule", "none"])
            #expect(status == 0)
            #expect(output.isEmpty)
            #expect(error == "there are no failed jobs of the rule 'none'\n")
        }
    }

    @Test func `an instance without a control socket cannot be asked, with a remedy`() throws {
        try with { (tree, _) throws in
            let holder = Self.holder(tree)
            let (status, output, error) = JournalCommand.run(tree, ["retry", Self.jobs[0].id])
            #expect(status == 1)
            #expect(output.isEmpty)
            #expect(
                error == """
                    error: the journal '\(tree.path("journal.db"))' is in use by another instance (process \(holder.pid))
                        help: it has no control socket: wait until it exits or stop it, and start 'alight run' without \
                    'control: false' and '--no-control'

                    """)
            TestFile.write(tree.path("end"), "")
            #expect(holder.wait() == 0)
            #expect(try Self.states(tree)[0] == "failed")
        }
    }

    private static let mistakes: [([String], String)] = [
        (["retry"], "name jobs by their ids, or write 'alight retry --all' or '--rule NAME'"),
        (["discard"], "name jobs by their ids, or write 'alight discard --all' or '--rule NAME'"),
        (["retry", "--all", jobs[0].id], "ids cannot be combined with '--all'"),
        (["discard", "--rule", "scans", jobs[0].id], "ids cannot be combined with '--rule'"),
        (["retry", "01K"], "'01K' is not a job id"),
    ]

    @Test(arguments: mistakes)
    func `a usage error is reported, and nothing is done`(_ arguments: [String], _ message: String) throws {
        try with { (tree, _) throws in
            let (status, output, error) = JournalCommand.run(tree, arguments)
            #expect(status == 2)
            #expect(output.isEmpty)
            #expect(error.contains(message), "\(error)")
            #expect(try Self.states(tree) == Self.jobs.map(\.state.rawValue))
        }
    }
}
