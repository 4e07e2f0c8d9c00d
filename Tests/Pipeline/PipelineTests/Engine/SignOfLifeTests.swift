import PluginProtocol
import Rules
import Testing
import TestKit

/// The report that shows that the engine completes its turns.
@Suite(.timeLimit(.minutes(2)))
struct SignOfLifeTests {
    @Test func `signs of life arrive while nothing happens and after a reload`() {
        withTempTree { tree in
            for name in ["in", "other"] { TestFile.makeDirectory(tree.path(name)) }
            let run = EngineRun([Rule.sample("all", [tree.path("in/*")])], signOfLife: .milliseconds(20)) {
                _, invocations in
                invocations.map { _ in Outcome(.succeeded) }
            }
            #expect(Deadline.wait { run.alive > 5 })
            #expect(run.reloadAndWait([Rule.sample("other", [tree.path("other/*")])]))
            let before = run.alive
            #expect(Deadline.wait { run.alive > before + 5 })
            run.stop()
        }
    }
}
