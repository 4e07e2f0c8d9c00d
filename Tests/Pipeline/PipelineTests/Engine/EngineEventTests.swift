import ActionAPI
import Engine
import FileEvents
import Glibc
import Monitoring
import PluginProtocol
import Rules
import Storage
import System
import Testing
import TestKit

/// The events that a rule receives for changes on the disk.
@Suite(.timeLimit(.minutes(15)))
struct EngineEventTests {
    static let all: EventMask = [.created, .modified, .moved, .deleted]

    static func move(_ from: PathBytes, _ to: PathBytes) {
        let result = from.withCString { from in to.withCString { rename(from, $0) } }
        precondition(result == 0, "cannot rename \(from): errno \(errno)")
    }

    @Test func `five thousand files in fifty new directories create one job each`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([.sample("r", [tree.path("in/**")], concurrency: 4)])
            for directory in 0..<50 {
                for file in 0..<100 { TestFile.write(tree.path("in/d\(directory)/e/f\(file)"), "\(directory) \(file)") }
            }
            #expect(Deadline.wait(within: .seconds(120)) { run.attempts.count >= 5_000 })
            TestFile.write(tree.path("in/last"), "x")
            #expect(Deadline.wait { run.calls.contains { $0.path == tree.path("in/last") } })
            let summary = run.stop()
            #expect(summary?.succeeded == 5_001)
            let calls = run.calls
            #expect(calls.count == 5_001)
            #expect(Set(calls.map(\.path)).count == 5_001)
            #expect(calls.allSatisfy { $0.kind == .created && $0.size > 0 })
        }
    }

    @Test func `a file written in pieces is reported once, complete`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([.sample("r", [tree.path("in/*")])])
            let path = tree.path("in/a")
            let descriptor = path.withCString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) }
            for _ in 0..<5 {
                TestFile.put(descriptor, [1, 2, 3, 4])
                Deadline.pause(.milliseconds(40))
            }
            #expect(run.calls.isEmpty)
            close(descriptor)
            #expect(run.ended(1))
            run.stop()
            #expect(run.received == ["r created a"])
            #expect(run.calls.first?.size == 20)
        }
    }

    // MARK: Moves

    @Test func `a chain of moves is reported as one move`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: Self.all)]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            // Each hop is accepted before the next one, but no action has received it yet.
            for (from, to) in [("a", "b"), ("b", "c"), ("c", "d")] {
                Self.move(tree.path("in/\(from)"), tree.path("in/\(to)"))
                #expect(run.isDue(tree.path("in/\(to)")))
            }
            gate.open()
            #expect(run.ended(2))
            TestFile.write(tree.path("in/last"), "x")
            #expect(Deadline.wait { run.received.contains("r created last") })
            run.stop()
            #expect(run.received == ["r created first", "r moved d from a", "r created last"])
            #expect(run.attempts.allSatisfy { $0.state == .succeeded })
        }
    }

    @Test func `moves without a pause are reported with the last name`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: [.moved, .deleted])])
            Self.move(tree.path("in/a"), tree.path("in/b"))
            Self.move(tree.path("in/b"), tree.path("in/c"))
            #expect(Deadline.wait { run.received.contains { $0.hasPrefix("r moved c") } })
            run.stop()
            // The name in between may have been reported, or skipped as missing.
            #expect(run.calls.allSatisfy { $0.kind == .moved })
            #expect(run.calls.count { $0.path == tree.path("in/c") } == 1)
        }
    }

    @Test func `without moves in the mask, both halves are reported`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            let run = EngineRun([
                .sample("both", [tree.path("in/*")], events: [.created, .deleted], concurrency: 1),
                .sample("new", [tree.path("in/*")], events: [.created]),
                .sample("old", [tree.path("in/*")], events: [.deleted]),
                .sample("mod", [tree.path("in/*")], events: [.modified]),
            ])
            Self.move(tree.path("in/a"), tree.path("in/b"))
            #expect(run.ended(4))
            run.stop()
            #expect(run.received.sorted() == ["both created b", "both deleted a", "new created b", "old deleted a"])
        }
    }

    @Test func `a renamed directory moves every file in it once`() {
        withTempTree { tree in
            for number in 0..<50 { TestFile.write(tree.path("in/d/e/\(number)"), "x") }
            let run = EngineRun([.sample("r", [tree.path("in/**")], events: Self.all)])
            Self.move(tree.path("in/d"), tree.path("in/n"))
            #expect(run.ended(50))
            // The new directory is watched as the old one was.
            TestFile.write(tree.path("in/n/e/new"), "x")
            #expect(Deadline.wait { run.received.contains("r created new") })
            run.stop()
            let calls = run.calls.filter { $0.kind != .created }
            #expect(calls.count == 50)
            for call in calls {
                #expect(call.kind == .moved)
                #expect(call.path.parent == tree.path("in/n/e"))
                #expect(call.from == tree.path("in/d/e").appending(call.path.lastComponent))
            }
        }
    }

    @Test func `a directory that leaves the tree deletes its files, and they are new when it returns`() {
        withTempTree { tree in
            for number in 0..<10 { TestFile.write(tree.path("in/d/\(number)"), "x") }
            let run = EngineRun([.sample("r", [tree.path("in/**")], events: Self.all)])
            Self.move(tree.path("in/d"), tree.path("away"))
            #expect(run.ended(10))
            #expect(run.calls.allSatisfy { $0.kind == .deleted })
            TestFile.write(tree.path("away/0"), "written while it was away")
            Self.move(tree.path("away"), tree.path("in/d"))
            #expect(run.ended(20))
            run.stop()
            #expect(run.calls.dropFirst(10).allSatisfy { $0.kind == .created })
            #expect(Set(run.calls.dropFirst(10).map(\.path)).count == 10)
        }
    }

    @Test func `a file that replaces another one is reported as modified`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "old")
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: Self.all)])
            TestFile.write(tree.path("temporary"), "newer")
            Self.move(tree.path("temporary"), tree.path("in/a"))
            #expect(run.ended(1))
            run.stop()
            #expect(run.received == ["r modified a"])
        }
    }

    @Test func `a hard link is a new file, and its removal does not affect the other name`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: Self.all)])
            let result = tree.path("in/a").withCString { from in tree.path("in/b").withCString { link(from, $0) } }
            #expect(result == 0)
            #expect(run.ended(1))
            TestFile.removeTree(tree.path("in/b"))
            #expect(run.ended(2) && run.isIdle)
            // The remaining name is still the known file.
            Self.move(tree.path("in/a"), tree.path("in/c"))
            #expect(run.ended(3))
            run.stop()
            #expect(run.received == ["r created b", "r deleted b", "r moved c from a"])
        }
    }

    // MARK: Own writes

    @Test func `a file that an action writes is not reported to its rule`() {
        withTempTree { tree in
            let run = EngineRun([
                .sample("r", [tree.path("in/**")], events: Self.all, settle: .zero, isProgram: true),
                .sample("other", [tree.path("in/out/*")], events: Self.all),
            ]) { _, invocation in
                guard invocation.job.rule == "r" else { return Outcome(.succeeded) }
                let path = invocation.job.event.path
                let output = path.parent.appending("out").appending(path.lastComponent)
                TestFile.write(output, "made")
                TestFile.write(path, Array(" and more".utf8), appending: true)
                // The action works in place and lists its input as an output.
                return Outcome(.succeeded, outputs: [output, path])
            }
            for number in 0..<20 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(run.ended(40))
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(42))
            run.stop()
            #expect(run.calls.count { $0.rule == "r" } == 21, "\(run.received)")
            #expect(run.calls.count { $0.rule == "other" } == 21, "\(run.received)")
        }
    }

    @Test func `later writes by other processes are reported`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], isProgram: true)]) { _, invocation in
                TestFile.write(invocation.job.event.path, "in place")
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            // The action's own write is reported once, because another process might have made it.
            #expect(run.ended(2))
            TestFile.write(tree.path("in/a"), "by somebody else")
            #expect(run.ended(4))
            run.stop()
            #expect(run.received == ["r created a", "r modified a", "r modified a", "r modified a"])
        }
    }

    @Test(arguments: [PluginResponse.Outcome.notReady, .retry])
    func `a program that wrote in place and asks to be retried is retried`(result: PluginResponse.Outcome) {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], isProgram: true)]) { _, invocation in
                guard invocation.job.previous == nil else { return Outcome(.succeeded) }
                TestFile.write(invocation.job.event.path, Array(" and a stamp".utf8), appending: true)
                return Outcome(result, retryAfter: .milliseconds(10))
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(2))
            #expect(run.stop()?.succeeded == 1)
            #expect(run.received == ["r created a", "r created a"])
        }
    }

    /// The next step takes longer than the removal needs to settle.
    @Test(arguments: [true, false])
    func `the file that a built-in action removed is not reported as deleted`(isRetried: Bool) {
        withTempTree { tree in
            let run = EngineRun([
                .sample("r", [tree.path("in/*")], events: Self.all, settle: .zero, actions: ["move", "tell"])
            ]) { action, invocation in
                let path = invocation.job.event.path
                if action.name == "move" {
                    TestFile.removeTree(path)
                    // The engine notices the removal before this action is over.
                    TestFile.write(path.parent.parent.appending("seen"), "x")
                    return Outcome(.succeeded)
                }
                Deadline.pause(.milliseconds(50))
                return isRetried && invocation.job.attempt < 3
                    ? Outcome(.retry, retryAfter: .milliseconds(20)) : Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.counts.succeeded == 1 })
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { run.counts.succeeded == 2 })
            run.stop()
            #expect(run.calls.allSatisfy { $0.kind == .created }, "\(run.received)")
        }
    }

    @Test func `a file behind a symbolic link is only for the rule whose root is the link`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.makeDirectory(tree.path("elsewhere"))
            _ = tree.path("elsewhere").withCString { target in tree.path("in/link").withCString { symlink(target, $0) }
            }
            let run = EngineRun([.sample("all", [tree.path("in/**")]), .sample("linked", [tree.path("in/link/*")])])
            TestFile.write(tree.path("elsewhere/file"), "x")
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(2))
            #expect(Set(run.calls.map(\.rule)) == ["all", "linked"])
            #expect(run.calls.first { $0.rule == "all" }?.path == tree.path("in/last"))
            #expect(run.stop()?.succeeded == 2)
        }
    }

    @Test func `an output behind a symbolic link is not reported either`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            _ = tree.path("in").withCString { from in tree.path("link").withCString { symlink(from, $0) } }
            let behind = tree.path("link")
            let run = EngineRun([.sample("r", [tree.path("in/*")], settle: .zero)]) { _, invocation in
                guard invocation.job.event.path.lastComponent.count < 30 else { return Outcome(.succeeded) }
                let output = behind.appending(Array("copy-".utf8) + invocation.job.event.path.lastComponent)
                TestFile.write(output, "made")
                return Outcome(.succeeded, outputs: [output])
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { run.received.contains("r created b") })
            TestFile.write(tree.path("in/c"), "x")
            #expect(Deadline.wait { run.received.contains("r created c") })
            run.stop()
            #expect(run.received == ["r created a", "r created b", "r created c"])
        }
    }

    // MARK: Random changes

    /// An index that is built only from events must finally equal the disk.
    @Test(arguments: [(1, true), (2, true), (3, false), (4, false)] as [(UInt64, Bool)])
    func `an index built from random changes agrees with the disk`(seed: UInt64, hasMoves: Bool) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in/d0"))
            let root = tree.path("in")
            let index = Locked<[PathBytes: [UInt8]]>([:])
            let tries = Locked(0)
            let events: EventMask = hasMoves ? Self.all : [.created, .modified, .deleted]
            let policy = RetryPolicy(attempts: 1_000, delay: .milliseconds(2), maximumDelay: .milliseconds(2))
            let run = EngineRun(
                [
                    .sample(
                        "r", [tree.path("in/**")], events: events, settle: .milliseconds(5),
                        // The action never removes its input, so a missing file was removed by another process.
                        actions: ["log"], concurrency: 3, retry: policy)
                ]
            ) { _, invocation in
                let event = invocation.job.event
                // Every fifth call fails before it has done anything.
                if tries.change({ count in
                    count += 1
                    return count % 5 == 0
                }) {
                    return Outcome(.retry)
                }
                if event.kind == .deleted {
                    index.change { $0[event.path] = nil }
                    return Outcome(.succeeded)
                }
                if let from = event.from { index.change { $0[from] = nil } }
                // Removed since: its deletion is another event.
                guard let content = TestFile.read(event.path) else { return Outcome(.skipped) }
                index.change { $0[event.path] = content }
                return Outcome(.succeeded)
            }

            var generator = SeededGenerator(seed: seed)
            func directory() -> PathBytes { root.appending("d\(Int.random(in: 0..<3, using: &generator))") }
            func file() -> PathBytes { directory().appending("f\(Int.random(in: 0..<4, using: &generator))") }
            for round in 0..<400 {
                switch Int.random(in: 0..<12, using: &generator) {
                case 0..<5: TestFile.write(file(), "round \(round)")
                case 5: TestFile.write(file(), Array("+\(round)".utf8), appending: true)
                case 6..<8: TestFile.removeTree(file())
                case 8..<10: _ = file().withCString { from in file().withCString { rename(from, $0) } }
                case 10: _ = directory().withCString { from in directory().withCString { rename(from, $0) } }
                default: Deadline.pause(.milliseconds(Int.random(in: 1...12, using: &generator)))
                }
            }

            func disk() -> [PathBytes: [UInt8]] {
                var found: [PathBytes: [UInt8]] = [:]
                for directory in TestFile.names(in: root).map({ root.appending($0) }) {
                    for name in TestFile.names(in: directory) {
                        found[directory.appending(name)] = TestFile.read(directory.appending(name))
                    }
                }
                return found
            }
            let agrees = Deadline.wait { index.value == disk() }
            run.stop()
            let known = index.value
            let there = disk()
            for path in Set(known.keys).union(there.keys).sorted() where known[path] != there[path] {
                let texts = [known[path], there[path]].map {
                    $0.map { String(decoding: $0, as: UTF8.self) } ?? "nothing"
                }
                Issue.record("\(path): the index has \(texts[0]), the disk \(texts[1])")
            }
            #expect(agrees)
        }
    }
}
