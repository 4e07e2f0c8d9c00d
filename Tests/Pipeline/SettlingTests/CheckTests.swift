import FileEvents
import Glibc
import System
import Testing
import TestKit

@testable import Settling

/// Checks of real files.
///
/// A process that another test starts briefly has copies of all descriptors, so the tests wait.
struct CheckTests {
    private func check(
        _ path: PathBytes, _ policy: SettlePolicy, isPolled: Bool = false, waited: Duration = .zero
    ) -> SettledCheck.Verdict {
        SettledCheck.check(
            DiskProbe.Location(path), in: .kernel, at: DiskProbe.now(), policy: policy, isPolled: isPolled,
            sample: nil, round: 0, waited: waited)
    }

    private func isFinished(_ verdict: SettledCheck.Verdict, isForced: Bool = false) -> Bool {
        guard case .finished(_, isForced) = verdict else { return false }
        return true
    }

    @Test func `S31 a file with an open writer is not finished, unless the rule ignores writers`() {
        withTempTree { tree in
            let path = tree.path("a")
            let writer = path.withCString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) }
            #expect(check(path, SettlePolicy()) == .wait(.microseconds(100), sample: nil, isHeld: true))
            #expect(isFinished(check(path, SettlePolicy(writers: .ignore))))
            #expect(
                isFinished(check(path, SettlePolicy(maximumWait: .seconds(1)), waited: .seconds(1)), isForced: true))
            close(writer)
            #expect(Deadline.wait { isFinished(check(path, SettlePolicy())) })
        }
    }

    @Test func `S09 a locked file is not finished if the rule waits for locks`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            let holder = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
            #expect(flock(holder, LOCK_EX) == 0)
            #expect(Deadline.wait { isFinished(check(path, SettlePolicy())) })
            #expect(check(path, SettlePolicy(locks: .wait)) == .wait(.microseconds(100), sample: nil, isHeld: true))
            close(holder)
            #expect(Deadline.wait { isFinished(check(path, SettlePolicy(locks: .wait))) })
        }
    }

    @Test func `S55 on a polled root a lease proves nothing, but a writer is detected`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            #expect(
                Deadline.wait {
                    if case .wait(.seconds(1), .some, _) = check(path, SettlePolicy(), isPolled: true) {
                        true
                    } else {
                        false
                    }
                })
            let writer = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            defer { close(writer) }
            #expect(check(path, SettlePolicy(), isPolled: true) == .wait(.microseconds(100), sample: nil, isHeld: true))
        }
    }

    @Test func `S34 a directory handled as one unit waits for a writer below it`() {
        withTempTree { tree in
            let path = tree.path("a/b/c")
            TestFile.write(path, "x")
            let policy = SettlePolicy(quiet: .zero, isTree: true)
            let writer = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            #expect(check(tree.path("a"), policy) == .wait(.seconds(1), sample: nil, isHeld: true))
            close(writer)
            let root = tree.root
            let directory = Deadline.poll {
                if case .finished(let directory, isForced: false) = check(root.appending("a"), policy) {
                    directory
                } else {
                    nil
                }
            }
            #expect(directory?.type == .directory)
            #expect(directory?.digest?.count == 32)
        }
    }
}
