import ActionAPI
import FileEvents
import Glibc
import PluginProtocol
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// The text of followed files, also when they are truncated and renamed.
@Suite(.timeLimit(.minutes(15)))
struct EngineTailTests {
    @Test func `S38 text for which an action failed is reported again, in order and complete`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let policy = RetryPolicy(attempts: 9, delay: .milliseconds(5), maximumDelay: .milliseconds(5))
            let rule = Rule.sample("r", [tree.path("in/*")], settle: .zero, retry: policy)
                .with {
                    $0.tail = Rule.Tail()
                    $0.tail?.maximumBytes = 100
                    $0.settle.writers = .ignore
                }
            let text = Locked<[UInt8]>([])
            let offsets = Locked<[UInt64]>([])
            let run = EngineRun([rule]) { _, invocation in
                guard let tail = invocation.job.event.tail else { return Outcome(.succeeded) }
                if invocation.job.attempt % 3 != 0 { return Outcome(.retry) }
                text.change { $0 += tail.bytes }
                offsets.change { $0.append(tail.offset) }
                return Outcome(.succeeded)
            }
            var expected: [UInt8] = []
            for number in 0..<200 {
                let line = Array("line \(number)\n".utf8)
                expected += line
                TestFile.write(tree.path("in/log"), line, appending: true)
            }
            let whole = expected
            #expect(Deadline.wait { text.value.count >= whole.count })
            run.stop()
            #expect(text.value == whole)
            #expect(offsets.value == offsets.value.sorted())
        }
    }

    @Test func `S38 an unfinished line is reported when its file is truncated soon after it was read`() {
        withTempTree { tree in
            let follower = Follower(tree, settle: .zero)
            let run = follower.start()
            for number in 1...200 {
                let path = tree.path("in/log\(number)")
                TestFile.write(path, "line\nrest")
                #expect(follower.wait(for: "line\n", times: number))
                // The truncation meets each step between the read and the next one.
                usleep(.random(in: 0..<3_000))
                TestFile.write(path, "")
                guard follower.wait(for: "rest", times: number) else {
                    Issue.record("The unfinished line of \(path) was lost.")
                    break
                }
            }
            run.stop()
        }
    }

    // MARK: Rotation

    /// A rule that follows the logs of a directory, and the pieces that it has received.
    private struct Follower {
        let rule: Rule
        let pieces = Locked<[String]>([])

        init(
            _ tree: borrowing TemporaryTree, events: EventMask = [.created, .modified],
            settle: Duration = .milliseconds(50), concurrency: Int = 1, retry: RetryPolicy = RetryPolicy()
        ) {
            TestFile.makeDirectory(tree.path("in"))
            rule = Rule.sample("r", [tree.path("in/*")], events: events, settle: settle, retry: retry)
                .with {
                    $0.tail = Rule.Tail()
                    $0.settle.writers = .ignore
                    $0.settle.maximumWait = .seconds(60)
                    $0.concurrency = concurrency
                }
        }

        func start(on store: DiskStore = .inMemory()) -> EngineRun {
            EngineRun([rule], on: store) { _, invocation in
                receive(invocation)
                return Outcome(.succeeded)
            }
        }

        func receive(_ invocation: Invocation) {
            guard let tail = invocation.job.event.tail else { return }
            pieces.change { $0.append(String(decoding: tail.bytes, as: UTF8.self)) }
        }

        /// Waits for a piece; writes to another log meanwhile, so that this does not settle.
        func wait(for piece: String, times count: Int = 1, keepingBusy log: PathBytes? = nil) -> Bool {
            Deadline.wait {
                if let log { TestFile.write(log, Array("busy\n".utf8), appending: true) }
                return pieces.value.count { $0 == piece } >= count
            }
        }

        /// The pieces without those of the log that was kept busy.
        var received: [String] { pieces.value.filter { !$0.contains("busy") } }
    }

    private func append(_ text: String, _ path: PathBytes) { TestFile.write(path, Array(text.utf8), appending: true) }

    @Test func `S38 a log that is renamed twice while a new one is written is received once`() {
        withTempTree { tree in
            let follower = Follower(tree)
            let run = follower.start()
            let (log, first, second) = (tree.path("in/log"), tree.path("in/log.1"), tree.path("in/log.2"))
            append("one\n", log)
            #expect(follower.wait(for: "one\n"))
            EngineEventTests.move(log, first)
            append("two\n", first)
            #expect(follower.wait(for: "two\n", keepingBusy: log))
            EngineEventTests.move(first, second)
            EngineEventTests.move(log, first)
            append("three\n", second)
            #expect(follower.wait(for: "three\n", keepingBusy: first))
            run.stop()
            #expect(follower.received == ["one\n", "two\n", "three\n"])
        }
    }

    @Test func `S38 a renamed log that was truncated is received from its new start`() {
        withTempTree { tree in
            let follower = Follower(tree)
            let run = follower.start()
            let (log, first) = (tree.path("in/log"), tree.path("in/log.1"))
            append("a long first line\n", log)
            #expect(follower.wait(for: "a long first line\n"))
            EngineEventTests.move(log, first)
            append("two\n", first)
            #expect(follower.wait(for: "two\n", keepingBusy: log))
            TestFile.write(first, "three\n")
            #expect(follower.wait(for: "three\n", keepingBusy: log))
            append("four is longer than all text before\n", first)
            #expect(follower.wait(for: "four is longer than all text before\n", keepingBusy: log))
            run.stop()
        }
    }

    @Test(arguments: [false, true])
    func `S38 a renamed log is continued after a restart`(isReplaced: Bool) {
        withTempTree { tree in
            let follower = Follower(tree)
            let (log, first) = (tree.path("in/log"), tree.path("in/log.1"))
            let run = follower.start()
            append("one\n", log)
            #expect(follower.wait(for: "one\n"))
            EngineEventTests.move(log, first)
            if isReplaced { append("new\n", log) }
            // The renamed log never settles in this run, and the row of its old name is deleted or replaced.
            let isGone = Deadline.wait {
                append("busy\n", first)
                let known = run.store.knownFiles(of: run.store.id(of: "r").map { [$0] } ?? [])
                return isReplaced ? follower.pieces.value.contains("new\n") : known == 0
            }
            #expect(isGone)
            run.stop()
            let next = follower.start(on: run.store)
            #expect(Deadline.wait { follower.pieces.value.contains { $0.hasPrefix("busy\n") } })
            next.stop()
            #expect(follower.received == (isReplaced ? ["one\n", "new\n"] : ["one\n"]))
            #expect(follower.pieces.value.allSatisfy { !$0.hasPrefix("one\nbusy") })
        }
    }

    @Test func `S38 a piece of a renamed log waits for the one before it`() {
        withTempTree { tree in
            let policy = RetryPolicy(attempts: 9, delay: .milliseconds(300), maximumDelay: .milliseconds(300))
            let follower = Follower(tree, concurrency: 4, retry: policy)
            let (log, first) = (tree.path("in/log"), tree.path("in/log.1"))
            let gate = Gate()
            let run = EngineRun([follower.rule]) { _, invocation in
                if invocation.job.attempt == 1, invocation.job.event.path == log { return Outcome(.retry) }
                if invocation.job.event.path == log { gate.pass() }
                follower.receive(invocation)
                return Outcome(.succeeded)
            }
            append("one\n", log)
            #expect(Deadline.wait { run.calls.count == 1 })
            EngineEventTests.move(log, first)
            append("two\n", first)
            #expect(Deadline.wait { run.calls.count == 2 })
            #expect(run.isDue(first))
            gate.open()
            #expect(follower.wait(for: "two\n"))
            run.stop()
            #expect(follower.received == ["one\n", "two\n"])
        }
    }

    @Test func `S38 an unfinished line of a renamed log is received under the new name alone`() {
        withTempTree { tree in
            let follower = Follower(tree)
            let run = follower.start()
            let (log, first) = (tree.path("in/log"), tree.path("in/log.1"))
            append("part", log)
            #expect(run.isDue(log))
            EngineEventTests.move(log, first)
            append("ial\n", first)
            #expect(follower.wait(for: "partial\n", keepingBusy: log))
            append("end\n", log)
            #expect(Deadline.wait { follower.pieces.value.contains { $0.hasSuffix("end\n") } })
            run.stop()
            #expect(follower.received == ["partial\n"])
        }
    }

    @Test func `S38 a log that returns does not wait for the unfinished line of another one`() {
        withTempTree { tree in
            let follower = Follower(tree, events: [.created, .modified, .moved])
            let run = follower.start()
            let (log, other) = (tree.path("in/log"), tree.path("in/other"))
            append("one\n", log)
            #expect(follower.wait(for: "one\n"))
            EngineEventTests.move(log, tree.path("outside"))
            append("part", log)
            #expect(run.isDue(log))
            EngineEventTests.move(tree.path("outside"), other)
            append("two\n", other)
            #expect(follower.wait(for: "two\n"))
            append("ial\n", log)
            #expect(follower.wait(for: "partial\n"))
            run.stop()
            #expect(follower.received == ["one\n", "two\n", "partial\n"])
        }
    }
}
