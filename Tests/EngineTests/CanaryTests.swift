import Engine
import FileEvents
import Glibc
import Handling
import PluginProtocol
import Rules
import TestKit
import Testing

/// The file that is touched to see that watching works.
@Suite(.timeLimit(.minutes(2)))
struct CanaryTests {
    /// Runs a rule that takes everything below the folder, the canary's folder among it.
    private static func withRun(_ body: (borrowing TemporaryTree, EngineRun, WatchedCanary) -> Void) {
        withTempTree { tree in
            for name in ["in", "in/canary-1"] { TestFile.makeFolder(tree.path(name)) }
            let canary = WatchedCanary(folder: tree.path("in/canary-1"), interval: .milliseconds(200))
            let run = EngineRun([Rule.sample("all", [tree.root.appending("in/**")])], canary: canary) {
                _, invocations in
                invocations.map { _ in Outcome(.succeeded) }
            }
            body(tree, run, canary)
            run.stop()
        }
    }

    @Test func `each touch comes out as a sign of life, and no rule is told`() {
        Self.withRun { tree, run, canary in
            for number in 1...5 {
                let before = run.alive
                TestFile.write(canary.file, "\(number)")
                #expect(Deadline.wait { run.alive > before })
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            #expect(run.told == ["all created a"])
        }
    }

    @Test func `looking at everything again is no touch`() {
        Self.withRun { tree, run, canary in
            TestFile.write(canary.file, "1")
            #expect(Deadline.wait { run.alive > 0 })
            // What the kernel tells of one write may come in several parts; the file that follows comes after them.
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            let before = run.alive
            run.rescan()
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            #expect(run.alive == before)
        }
    }

    @Test func `it is watched still when there are other rules`() {
        Self.withRun { tree, run, canary in
            TestFile.makeFolder(tree.path("other"))
            #expect(run.reloadAndWait([Rule.sample("other", [tree.root.appending("other/*")])]))
            let before = run.alive
            TestFile.write(canary.file, "1")
            #expect(Deadline.wait { run.alive > before })
        }
    }

    @Test func `no sign comes from where nobody watches`() {
        Self.withRun { tree, run, canary in
            let gone = tree.path("gone")
            #expect(canary.folder.withCString { old in gone.withCString { rename(old, $0) } } == 0)
            // What comes after it is told after it.
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            let before = run.alive
            TestFile.write(gone.appending("canary"), "1")
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            #expect(run.alive == before)
        }
    }

    @Test func `it is not counted among the folders, and left out of what was still settling`() {
        withTempTree { tree in
            for name in ["in", "canary"] { TestFile.makeFolder(tree.path(name)) }
            let rule = Rule.sample("r", [tree.root.appending("in/*")], settle: .seconds(3_600))
            let canary = WatchedCanary(folder: tree.path("canary"), interval: .seconds(1))
            let run = EngineRun([rule], canary: canary) { _, invocations in
                invocations.map { _ in Outcome(.succeeded) }
            }
            #expect(run.folders == 1)
            TestFile.write(tree.path("in/a"), "x")
            TestFile.write(canary.file, "1")
            #expect(Deadline.wait { run.alive > 0 })
            let summary = run.stop()
            #expect(summary?.unsettled == [tree.path("in/a")])
        }
    }
}
