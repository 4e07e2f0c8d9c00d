import ActionAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Files that are removed or renamed while a program runs for them.
@Suite(.timeLimit(.minutes(5)))
struct EngineRemovalTests {
    /// Waits until a last file, and everything before it, has been handled.
    private static func finish(_ run: EngineRun, _ tree: borrowing TemporaryTree) {
        TestFile.write(tree.path("in/last"), "x")
        #expect(Deadline.wait { run.received.contains("r created last") })
        #expect(run.isIdle)
        run.stop()
    }

    /// The paths that exist according to the events.
    private static func paths(receivedBy run: EngineRun) -> Set<PathBytes> {
        var paths: Set<PathBytes> = []
        for attempt in run.attempts where attempt.state == .succeeded {
            if let from = attempt.from { paths.remove(from) }
            if attempt.event == .deleted { paths.remove(attempt.path) } else { paths.insert(attempt.path) }
        }
        return paths
    }

    private static func files(below directory: PathBytes) -> Set<PathBytes> {
        var files: Set<PathBytes> = []
        for path in TestFile.names(in: directory).map({ directory.appending($0) }) {
            if TestFile.read(path) != nil { files.insert(path) } else { files.formUnion(Self.files(below: path)) }
        }
        return files
    }

    @Test(arguments: [true, false])
    func `a file removed while a program runs for it is reported as deleted`(isSeenBefore: Bool) {
        withTempTree { tree in
            let path = tree.path("in/a")
            let gate = Gate()
            let run = EngineRun([
                .sample("r", [tree.path("in/*")], events: EngineEventTests.all, isProgram: true)
            ]) { _, invocation in
                if invocation.job.event.kind == .created { gate.pass() }
                return Outcome(.succeeded)
            }
            TestFile.write(path, "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            TestFile.removeTree(path)
            if isSeenBefore { #expect(run.isDue(path)) }
            gate.open()
            #expect(run.ended(2))
            Self.finish(run, tree)
            #expect(run.received == ["r created a", "r deleted a", "r created last"])
        }
    }

    @Test func `an input that a plugin lists as an output and removed is not reported as deleted`() {
        withTempTree { tree in
            let path = tree.path("in/a")
            let run = EngineRun([
                .sample("r", [tree.path("in/*")], events: EngineEventTests.all, isProgram: true)
            ]) { _, invocation in
                guard invocation.job.event.path == path else { return Outcome(.succeeded) }
                TestFile.removeTree(path)
                return Outcome(.succeeded, outputs: [path])
            }
            TestFile.write(path, "x")
            #expect(run.ended(1))
            Self.finish(run, tree)
            #expect(run.received == ["r created a", "r created last"])
        }
    }

    @Test func `a new file in place of one that a program removed is created for a rule without deletions`() {
        withTempTree { tree in
            let path = tree.path("in/a")
            let run = EngineRun([
                .sample("r", [tree.path("in/*")], events: .created, settle: .seconds(1), isProgram: true)
            ]) { _, invocation in
                TestFile.removeTree(invocation.job.event.path)
                return Outcome(.succeeded)
            }
            for count in 1...3 {
                TestFile.write(path, "x")
                #expect(run.ended(count))
            }
            run.stop()
            #expect(run.received == ["r created a", "r created a", "r created a"])
        }
    }

    @Test(arguments: [(["f", "g", "f", "h"], ""), (["d", "e"], "/f")])
    func `a file renamed while a program runs for it leaves no other name`(names: [String], below: String) {
        withTempTree { tree in
            let root = tree.path("in")
            var renames: [PathBytes: [(PathBytes, PathBytes)]] = [:]
            for number in 0..<20 {
                let paths = names.map { root.appending("\($0)\(number)") }
                renames[root.appending("\(names[0])\(number)\(below)")] = Array(zip(paths, paths.dropFirst()))
            }
            let steps = renames
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([
                .sample("r", [tree.path("in/**")], events: EngineEventTests.all, isProgram: true, concurrency: 4)
            ]) { _, invocation in
                let event = invocation.job.event
                if event.kind == .created {
                    for (from, to) in steps[event.path] ?? [] { EngineEventTests.move(from, to) }
                }
                return Outcome(.succeeded)
            }
            for file in steps.keys.sorted() { TestFile.write(file, "x") }
            #expect(run.ended(2 * steps.count))
            Self.finish(run, tree)
            let received = Self.paths(receivedBy: run)
            let there = Self.files(below: tree.path("in"))
            #expect(received == there, "\(received.symmetricDifference(there))")
        }
    }
}
