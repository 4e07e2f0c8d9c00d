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

/// Retried jobs whose file has changed since an action received it.
@Suite(.timeLimit(.minutes(2)))
struct EngineDifferenceTests {
    static let masks: [EventMask] = [[.created, .modified, .deleted], [.created, .deleted]]

    /// Runs a rule whose first attempt at `a` failed and whose next attempt finds that a process writes to the file.
    private static func withWriter(
        _ mask: EventMask, _ body: (EngineRun, _ file: PathBytes, _ writer: Int32) -> Void
    ) {
        withTempTree { tree in
            let file = tree.path("in/a")
            let gate = Gate()
            let hasFailed = Locked(false)
            let rule = Rule.sample(
                "r", [tree.root.appending("in/*")], events: mask,
                retry: RetryPolicy(attempts: 5, delay: .milliseconds(1)))
            let run = EngineRun([rule]) { _, invocation in
                guard invocation.job.event.path == file,
                    !hasFailed.change({ (was: inout Bool) in
                        defer { was = true }; return was
                    })
                else {
                    return Outcome(.succeeded)
                }
                gate.pass()
                return Outcome(.retry, "no luck")
            }
            TestFile.write(file, "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            let writer = file.withCString { open($0, O_WRONLY | O_APPEND | O_CLOEXEC) }
            #expect(write(writer, "yz", 2) == 2)
            gate.open()
            #expect(run.ended(1))
            // `b` is due later than the next attempt at `a`, so that attempt has been checked when `b` is done.
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            #expect(run.received == ["r created a", "r created b"])
            body(run, file, writer)
            run.stop()
        }
    }

    @Test(arguments: masks)
    func `the deletion of a file is reported although it never settled`(_ mask: EventMask) {
        Self.withWriter(mask) { run, file, writer in
            _ = file.withCString { unlink($0) }
            close(writer)
            #expect(run.ended(3), "\(run.attempts) \(run.notices)")
            #expect(run.received.last == "r deleted a")
            #expect(run.stop()?.failed == 0)
            #expect(run.calls.count == 3)
        }
    }

    @Test(arguments: masks)
    func `after the file has settled, the action runs once for its current state`(_ mask: EventMask) {
        Self.withWriter(mask) { run, _, writer in
            close(writer)
            #expect(run.ended(3))
            run.stop()
            #expect(run.calls.count == 3)
            #expect(run.calls.last?.size == 3)
            #expect(run.received.last == "r created a")
            #expect(run.attempts.last?.outcome.result == .succeeded)
        }
    }

    static let changes: [(mask: EventMask, reported: String, changed: String)] = [
        ([.created, .modified, .moved, .deleted], "x", "xy"),
        // Compared with the change that was never reported, the difference would not be an event of this mask.
        ([.created, .truncated, .moved, .deleted], "xxxxx", "xy"),
    ]

    @Test(arguments: changes)
    func `writing to a file that was changed and renamed is reported once, when it is finished`(
        _ change: (mask: EventMask, reported: String, changed: String)
    ) {
        withTempTree { tree in
            let (file, other, busy) = (tree.path("in/a"), tree.path("in/b"), tree.path("in/busy"))
            let gate = Gate()
            let rule = Rule.sample(
                "r", [tree.root.appending("in/*")], events: change.mask, concurrency: 1)
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.path == busy { gate.pass() }
                return Outcome(.succeeded)
            }
            TestFile.write(file, change.reported)
            #expect(run.ended(1))
            TestFile.write(busy, "x")
            #expect(Deadline.wait { run.calls.count == 2 })
            TestFile.write(file, change.changed)
            #expect(run.isDue(file))
            let writer = file.withCString { open($0, O_WRONLY | O_APPEND | O_CLOEXEC) }
            #expect(write(writer, "z", 1) == 1)
            let renamed = file.withCString { from in other.withCString { rename(from, $0) } }
            #expect(renamed == 0)
            #expect(run.isDue(other))
            gate.open()
            #expect(run.ended(3))
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(4))
            #expect(run.received == ["r created a", "r created busy", "r moved b from a", "r created last"])
            #expect(write(writer, "!", 1) == 1)
            close(writer)
            #expect(run.ended(5))
            run.stop()
            #expect(run.received.last == "r modified b")
            #expect(run.calls.count == 5)
            #expect(run.calls.last?.size == 4)
        }
    }
}
