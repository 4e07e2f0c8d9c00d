import Glibc
import System
import Testing
import TestKit

/// Each directory in `examples/` is an example that works as its README says.
struct ExampleTests {
    static let stories = TestFile.names(in: Places.checkout.appending("examples"))
        .map { String(decoding: $0, as: UTF8.self) }
        .filter { TestFile.exists(Places.checkout.appending("examples/\($0)/rules.yaml")) }

    @Test(arguments: stories)
    func story(_ name: String) {
        withTempTree { tree in
            for part in ["examples/\(name)", "plugins", "packaging"] {
                TestFile.copyTree(Places.checkout.appending(part), tree.path(part))
            }
            let directory = tree.path("examples/\(name)")
            let prepare = directory.appending("prepare")
            if TestFile.exists(prepare) {
                let preparing = RunningProgram(prepare, [], in: directory, output: tree.path("prepare"))
                #expect(preparing.wait() == 0, "\(preparing.output)\(preparing.error)")
            }
            TestFile.makeDirectory(directory.appending("in"))

            let program = RunningProgram(
                Places.alight, ["run", "rules.yaml"], in: directory, output: tree.path("run"))
            #expect(program.waitUntilReady())
            TestFile.copyTree(directory.appending("before"), directory.appending("in"))

            let isDone = Deadline.wait(within: .seconds(120)) {
                Self.holds(directory.appending("after"), directory) && Self.verifies(directory, tree.path("verify"))
            }
            #expect(isDone, "\(program.output)\(program.error)\(Self.printed(tree.path("verify")))")
            #expect(program.stop() == 0)
        }
    }

    /// Whether every file of the expected tree exists with its content.
    private static func holds(_ expected: PathBytes, _ actual: PathBytes) -> Bool {
        TestFile.names(in: expected).allSatisfy { name in
            let wanted = expected.appending(name)
            let found = actual.appending(name)
            guard let content = TestFile.read(wanted) else { return holds(wanted, found) }
            return TestFile.read(found) == content
        }
    }

    private static func verifies(_ directory: PathBytes, _ output: PathBytes) -> Bool {
        let verify = directory.appending("verify")
        guard TestFile.exists(verify) else { return true }
        return RunningProgram(verify, [], in: directory, output: output).wait() == 0
    }

    private static func printed(_ output: PathBytes) -> String {
        [".out", ".err"].map { TestFile.text(PathBytes(output.bytes + Array($0.utf8))) ?? "" }.joined()
    }
}
