import Engine
import Glibc
import Globbing
import Monitoring
import PluginProtocol
import Rules
import Storage
import System
import Testing
import TestKit

struct EngineGroupTests {
    static func films(_ root: PathBytes, retry: RetryPolicy = RetryPolicy()) throws -> Rule {
        let key = try #require(Template("${stem}"))
        let required = try ["mkv", "nfo"].map { Grouping.Kind(text: $0, glob: try Glob(Array("*.\($0)".utf8))) }
        return Rule.sample("films", [root.appending("*")], retry: retry).with {
            $0.group = Grouping(key: key, required: required)
        }
    }

    /// The file names of each run of the action.
    static func runs(_ run: EngineRun) -> [[String]] {
        run.batches.map { $0.map { String(decoding: $0.path.lastComponent, as: UTF8.self) } }
    }

    @Test func `the action runs once when all required files have settled`() throws {
        try withTempTree { tree in
            let root = tree.root
            let run = EngineRun([try Self.films(root)], batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            for name in ["a.srt", "a.mkv", "b.mkv"] { TestFile.write(root.appending(name), [1]) }
            #expect(Deadline.wait { run.held.count == 3 })
            #expect(run.calls.isEmpty)
            TestFile.write(root.appending("a.nfo"), [1])
            #expect(Deadline.wait { run.batches.count == 1 })
            #expect(Self.runs(run) == [["a.mkv", "a.nfo", "a.srt"]])
            #expect(run.attempts.allSatisfy { $0.attempt == 1 })
            #expect(run.held.count == 1)
            // A change of one file makes all of them run again.
            TestFile.write(root.appending("a.nfo"), [1, 2])
            #expect(Deadline.wait { run.batches.count == 2 })
            #expect(Self.runs(run).last == ["a.mkv", "a.nfo", "a.srt"])
            run.stop()
            #expect(run.batches.count == 2)
            #expect(run.queue.count == 1)
        }
    }

    @Test func `a group waits for a file that is still being written`() throws {
        try withTempTree { tree in
            let root = tree.root
            let run = EngineRun([try Self.films(root)], batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            let film = root.appending("a.mkv")
            let descriptor = film.withCString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) }
            TestFile.put(descriptor, [1])
            TestFile.write(root.appending("a.nfo"), [1])
            #expect(Deadline.wait { run.held.count == 1 })
            TestFile.put(descriptor, [2])
            close(descriptor)
            #expect(Deadline.wait { run.batches.count == 1 })
            run.stop()
            #expect(Self.runs(run) == [["a.mkv", "a.nfo"]])
            #expect(run.calls.first?.size == 2)
        }
    }

    @Test func `existing files count, and a group that fails is retried together`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.write(root.appending("a.mkv"), [1])
            let rule = try Self.films(root, retry: RetryPolicy(attempts: 3, delay: .milliseconds(1)))
            let isFirst = Locked(true)
            let run = EngineRun(
                [rule],
                batched: { _, all in
                    let fails = isFirst.change { isFirst in
                        defer { isFirst = false }
                        return isFirst
                    }
                    return all.map { _ in Outcome(fails ? .retry : .succeeded) }
                })
            TestFile.write(root.appending("a.nfo"), [1])
            #expect(Deadline.wait { run.batches.count == 2 })
            run.stop()
            #expect(Self.runs(run) == [["a.mkv", "a.nfo"], ["a.mkv", "a.nfo"]])
            #expect(run.attempts.map(\.attempt) == [1, 1, 2, 2])
            #expect(run.queue.count == 0)
        }
    }

    @Test func `many groups that arrive in any order are each handled once`() throws {
        try withTempTree { tree in
            let root = tree.root
            let run = EngineRun(
                [try Self.films(root).with { $0.concurrency = 3 }],
                batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            var names = (0..<40).flatMap { ["\($0).mkv", "\($0).nfo"] }
            var generator = SeededGenerator(seed: 7)
            names.shuffle(using: &generator)
            for name in names { TestFile.write(root.appending(name), [1]) }
            #expect(Deadline.wait { run.attempts.count >= 80 })
            run.stop()
            #expect(run.batches.count == 40)
            #expect(run.batches.allSatisfy { $0.count == 2 })
            #expect(run.queue.count == 0)
        }
    }
}
