import Foundation
import Glibc
import System
import Testing
import TestKit

/// Rules whose files fail and rules whose action cannot work, as users see them.
struct CircuitBreakerTests {
    @Test(arguments: ["a status of sysexits.h", "a plugin that says failed"])
    func `refused files degrade nothing, and the next good file is handled at once`(_ what: String) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let script = what == "a plugin that says failed" ? #"echo '{"outcome":"failed"}'; exit 0"# : "exit 65"
            let action =
                what == "a plugin that says failed"
                ? "{ use: ./refuse }" : "{ shell: 'case $ALIGHT_PATH in */bad*) \(script);; esac' }"
            TestFile.makeDirectory(tree.path("refuse"))
            TestFile.write(tree.path("refuse/plugin.yaml"), "name: refuse\nversion: 1\nprotocol: [1]\nrun: ./run\n")
            TestFile.write(
                tree.path("refuse/run"), "#!/bin/sh\ncase $ALIGHT_PATH in */bad*) \(script);; esac\n")
            #expect(tree.path("refuse/run").withCString { chmod($0, 0o755) } == 0)
            TestFile.write(
                tree.path("rules.yaml"),
                "rules:\n  - { name: refuse, path: in/*, settle: 50ms, action: \(action) }\n")
            let program = RunningProgram.alight(["run", "rules.yaml", "--log-format", "json"], in: tree.root)
            JournalFileTests.awaitReady(program)
            for number in 1...12 { TestFile.write(tree.path("in/bad\(number)"), "x") }
            let areRefused = Deadline.wait { program.lines.count { $0.contains("\"state\":\"failed\"") } == 12 }
            #expect(areRefused, "\(program.output)\(program.error)")
            TestFile.write(tree.path("in/good"), "x")
            #expect(Deadline.wait { program.output.contains("/in/good") }, "\(program.error)")
            #expect(!program.error.contains("in a row"), "\(program.error)")
            let status = RunningProgram.alight(["status"], in: tree.root, output: "status")
            #expect(status.wait() == 0)
            #expect(!status.output.contains("degraded"), "\(status.output)")
            JournalFileTests.stop(program)
        }
    }
}
