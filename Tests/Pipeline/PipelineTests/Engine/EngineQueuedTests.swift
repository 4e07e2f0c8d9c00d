import ActionAPI
import Engine
import FileEvents
import Glibc
import Monitoring
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Changes to a file whose job waits for a slot.
@Suite(.timeLimit(.minutes(3)))
struct EngineQueuedTests {
    /// A run with one lane that the file `busy` occupies until it is released; `a` may have been reported before.
    private final class Held: Sendable {
        let run: EngineRun
        let directory: PathBytes
        private let gate: Gate
        private let second: Gate

        init(_ directory: PathBytes, _ mask: EventMask, reported: String?, settle: Duration = .milliseconds(30)) {
            let (gate, second) = (Gate(), Gate())
            self.directory = directory
            self.gate = gate
            self.second = second
            let rule = Rule.sample("r", [directory.appending("*")], events: mask, settle: settle, concurrency: 1)
            run = EngineRun([rule]) { _, invocation in
                let event = invocation.job.event
                if event.path.lastComponent == Array("busy".utf8)[...] { gate.pass() }
                if event.kind == .moved { second.pass() }
                return Outcome(.succeeded)
            }
            if let reported {
                TestFile.write(directory.appending("a"), reported)
                #expect(run.ended(1))
            }
            TestFile.write(directory.appending("busy"), "x")
            let count = reported == nil ? 1 : 2
            #expect(Deadline.wait { self.run.calls.count == count })
        }

        func path(_ name: String) -> PathBytes { directory.appending(name) }

        /// Whether the path is due after the change.
        func isDue(_ name: String, after change: () -> Void) -> Bool {
            let before = DiskProbe.now()
            change()
            return run.isDue(path(name), since: before)
        }

        func letGo() { gate.open() }
        func letMovesGo() { second.open() }

        /// Releases the lane and returns all reported events when the last file has been reported.
        func ended() -> [String] {
            letGo()
            letMovesGo()
            TestFile.write(path("last"), "x")
            #expect(Deadline.wait { self.run.received.contains("r created last") })
            run.stop()
            return zip(run.received, run.calls).map { "\($0.dropFirst(2)) \($1.size)" }
        }
    }

    private static let all: EventMask = [.created, .modified, .moved, .deleted]

    private static func rename(_ old: PathBytes, _ new: PathBytes) {
        let result = old.withCString { from in new.withCString { Glibc.rename(from, $0) } }
        #expect(result == 0)
    }

    private static func open(_ path: PathBytes, _ flags: Int32 = O_WRONLY) -> Int32 {
        let descriptor = path.withCString { Glibc.open($0, flags | O_CLOEXEC) }
        #expect(descriptor >= 0)
        return descriptor
    }

    private static func write(_ text: String, to descriptor: Int32) {
        #expect(text.withCString { Glibc.write(descriptor, $0, strlen($0)) } == text.utf8.count)
    }

    /// Overwrites a file in place, without a time at which it is shorter.
    private static func overwrite(_ path: PathBytes, _ text: String) {
        let descriptor = open(path)
        write(text, to: descriptor)
        close(descriptor)
    }

    /// Sets the times of a file as touch(1) does, to a time that no other change in the test sets.
    private static func touch(_ path: PathBytes) {
        let time = timespec(tv_sec: 1_000_000_000, tv_nsec: 0)
        #expect(path.withCString { utimensat(AT_FDCWD, $0, [time, time], 0) } == 0)
    }

    @Test(arguments: [nil, "x"])
    func `a file touched while its job waits is reported with its current state`(_ reported: String?) {
        withTempTree { tree in
            let held = Held(tree.path("in"), reported == nil ? [.created, .modified] : Self.all, reported: reported)
            #expect(held.isDue("a") { TestFile.write(held.path("a"), "xyz") })
            #expect(held.isDue("a") { Self.touch(held.path("a")) })
            held.letGo()
            let word = reported == nil ? "created" : "modified"
            #expect(Deadline.wait { held.run.received.contains("r \(word) a") })
            let before = reported == nil ? [] : ["created a 1"]
            #expect(held.ended() == before + ["created busy 1", "\(word) a 3", "created last 1"])
        }
    }

    @Test func `a file touched after it was not ready is reported again`() {
        withTempTree { tree in
            let file = tree.path("in/a")
            let rule = Rule.sample("r", [tree.root.appending("in/*")], events: [.created, .modified])
            let run = EngineRun([rule]) { _, invocation in
                guard invocation.job.event.snapshot.modified.seconds != 1_000_000_000 else {
                    return Outcome(.succeeded)
                }
                var outcome = Outcome(.notReady, "later")
                outcome.retryAfter = .milliseconds(500)
                return outcome
            }
            TestFile.write(file, "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            Self.touch(file)
            #expect(Deadline.wait { run.attempts.last?.outcome.result == .succeeded })
            run.stop()
            #expect(run.received.last == "r created a")
        }
    }

    @Test func `a file changed, renamed and touched while its job waits is reported as both`() {
        withTempTree { tree in
            let held = Held(tree.path("in"), Self.all, reported: "x")
            held.letMovesGo()
            #expect(held.isDue("a") { TestFile.write(held.path("a"), "xyz") })
            #expect(held.isDue("b") { Self.rename(held.path("a"), held.path("b")) })
            #expect(held.isDue("b") { Self.touch(held.path("b")) })
            held.letGo()
            #expect(Deadline.wait { held.run.received.contains("r modified b") })
            #expect(
                held.ended() == ["created a 1", "created busy 1", "moved b from a 1", "modified b 3", "created last 1"])
        }
    }

    /// The content at the time of the rename may be incomplete.
    @Test(arguments: [nil, "old"])
    func `a new file renamed while it is written again is reported once, when it is finished`(_ reported: String?) {
        withTempTree { tree in
            let held = Held(tree.path("in"), Self.all, reported: reported)
            TestFile.write(tree.path("new"), "x")
            #expect(held.isDue("a") { Self.rename(tree.path("new"), held.path("a")) })
            let writer = Self.open(held.path("a"), O_WRONLY | O_APPEND)
            Self.write("HALF", to: writer)
            // The new file is not due while it is being written.
            if reported == nil {
                Self.rename(held.path("a"), held.path("b"))
            } else {
                #expect(held.isDue("a") { Self.rename(held.path("a"), held.path("b")) })
            }
            held.letGo()
            TestFile.write(held.path("next"), "x")
            #expect(Deadline.wait { held.run.received.contains("r created next") })
            #expect(!held.run.received.contains("r created b"))
            Self.write("REST", to: writer)
            close(writer)
            #expect(Deadline.wait { held.run.received.contains("r created b") })
            let before = reported == nil ? ["created busy 1"] : ["created a 3", "created busy 1", "deleted a 3"]
            let ended = held.ended()
            #expect(ended == before + ["created next 1", "created b 9", "created last 1"])
        }
    }

    /// Only the times show that the file was written, and the hint of that write was for the old name.
    @Test(arguments: [true, false])
    func `new content of the same size is reported for a file that is renamed and gets another mode`(_ isOpen: Bool) {
        withTempTree { tree in
            let held = Held(tree.path("in"), Self.all, reported: "xxxxx", settle: .milliseconds(300))
            held.letMovesGo()
            #expect(held.isDue("a") { Self.overwrite(held.path("a"), "yyyyy") })
            let writer = Self.open(held.path("a"))
            Self.write("zzzzz", to: writer)
            if !isOpen { close(writer) }
            Self.rename(held.path("a"), held.path("b"))
            let before = DiskProbe.now()
            #expect(held.path("b").withCString { chmod($0, 0o600) } == 0)
            if isOpen { close(writer) }
            #expect(held.run.isDue(held.path("b"), since: before))
            held.letGo()
            #expect(Deadline.wait { held.run.received.contains("r modified b") })
            #expect(
                held.ended() == ["created a 5", "created busy 1", "moved b from a 5", "modified b 5", "created last 1"])
        }
    }

    @Test func `the same applies without a waiting job`() {
        withTempTree { tree in
            let held = Held(tree.path("in"), Self.all, reported: "xxxxx", settle: .milliseconds(300))
            held.letGo()
            held.letMovesGo()
            Self.overwrite(held.path("a"), "zzzzz")
            Self.rename(held.path("a"), held.path("b"))
            #expect(held.path("b").withCString { chmod($0, 0o600) } == 0)
            #expect(Deadline.wait { held.run.received.contains("r modified b") })
            #expect(
                held.ended() == ["created a 5", "created busy 1", "moved b from a 5", "modified b 5", "created last 1"])
        }
    }

    /// The file is shorter than in the last report, although it grew since.
    @Test func `a rule that asks for truncation receives what settles while the move waits`() {
        withTempTree { tree in
            let held = Held(tree.path("in"), [.created, .truncated, .moved, .deleted], reported: "xxxxx")
            held.letMovesGo()
            #expect(held.isDue("a") { TestFile.write(held.path("a"), "xy") })
            let writer = Self.open(held.path("a"), O_WRONLY | O_APPEND)
            Self.write("z", to: writer)
            #expect(held.isDue("b") { Self.rename(held.path("a"), held.path("b")) })
            let before = DiskProbe.now()
            Self.write("!", to: writer)
            close(writer)
            #expect(held.run.isDue(held.path("b"), since: before))
            held.letGo()
            #expect(Deadline.wait { held.run.received.contains("r modified b") })
            #expect(
                held.ended() == ["created a 5", "created busy 1", "moved b from a 5", "modified b 4", "created last 1"])
        }
    }

    @Test func `a change is reported for a file renamed again while the action for the first rename runs`() {
        withTempTree { tree in
            let held = Held(tree.path("in"), Self.all, reported: "x")
            #expect(held.isDue("a") { TestFile.write(held.path("a"), "xyz") })
            #expect(held.isDue("b") { Self.rename(held.path("a"), held.path("b")) })
            held.letGo()
            #expect(Deadline.wait { held.run.received.contains("r moved b from a") })
            #expect(held.isDue("c") { Self.rename(held.path("b"), held.path("c")) })
            held.letMovesGo()
            #expect(Deadline.wait { held.run.received.contains("r modified c") })
            #expect(
                held.ended() == [
                    "created a 1", "created busy 1", "moved b from a 1", "moved c from b 1", "modified c 3",
                    "created last 1",
                ])
        }
    }
}
