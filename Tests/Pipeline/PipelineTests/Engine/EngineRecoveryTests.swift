import Engine
import FileEvents
import PluginProtocol
import Reconciling
import Rules
import Storage
import System
import Testing
import TestKit

/// An engine that continues where another one was killed.
@Suite(.timeLimit(.minutes(2)))
struct EngineRecoveryTests {
    /// The store of an engine that was killed while an action ran for a new file.
    private static func killed(
        _ rule: Rule, creating file: PathBytes, while body: (EngineRun) -> Void = { _ in }
    ) throws -> DiskStore {
        let gate = Gate()
        let store = DiskStore.inMemory()
        TestFile.makeDirectory(file.parent)
        let run = EngineRun([rule], on: store) { _, _ in
            gate.pass()
            return Outcome(.succeeded)
        }
        TestFile.write(file, "1")
        #expect(Deadline.wait { run.calls.count == 1 })
        body(run)
        run.askToStopAtOnce()
        #expect(run.end() != nil)
        gate.open()
        return try DiskStore(afterKillOf: store, now: DiskProbe.now(), clock: { .now })
    }

    @Test func `a change while an interrupted action ran starts another run, also with drop`() throws {
        try withTempTree { tree in
            let file = tree.path("in/a")
            let rule = Rule.sample("r", [tree.path("in/*")])
            let store = try Self.killed(rule, creating: file) { run in
                let before = DiskProbe.now()
                TestFile.write(file, "123")
                #expect(run.isDue(file, since: before))
            }
            let run = EngineRun([rule], on: store)
            #expect(run.ended(1))
            #expect(run.isIdle)
            run.stop()
            #expect(run.calls.map(\.size) == [3])
        }
    }

    @Test func `jobs of rules that are not loaded are reported`() throws {
        try withTempTree { tree in
            let old = Rule.sample("old", [tree.path("in/*")])
            let store = try Self.killed(old, creating: tree.path("in/a"))
            let run = EngineRun([Rule.sample("new", [tree.path("other/*")])], on: store)
            #expect(run.waiting == ["old": 1])
            run.stop()
            #expect(run.calls.isEmpty)
        }
    }

    @Test func `paths that a rule no longer matches are forgotten, and temporarily missing ones are not`() throws {
        try withTempTree { tree in
            let store = DiskStore.inMemory()
            let old = Rule.sample("r", [tree.path("in/*"), tree.path("away/*")])
            let known = [tree.path("in/a"), tree.path("in/b.txt"), tree.path("away/c")]
            for file in known { TestFile.makeDirectory(file.parent) }
            let first = EngineRun([old], on: store)
            for file in known { TestFile.write(file, "x") }
            #expect(first.ended(3))
            first.stop()
            TestFile.removeTree(tree.path("away"))
            let id = try #require(store.id(of: "r"))
            for (rule, rest) in [
                (old, known),
                (Rule.sample("r", [tree.path("in/*.txt"), tree.path("away/*")]), Array(known.dropFirst())),
            ] {
                let run = EngineRun([rule], on: store)
                #expect(Deadline.wait { (store.row(of: id, at: known[0]) != nil) == rest.contains(known[0]) })
                run.stop()
                #expect(known.filter { store.row(of: id, at: $0) != nil } == rest)
                #expect(run.calls.isEmpty)
            }
        }
    }
}
