import ActionAPI
import Foundation
import PluginProtocol
import Rules
import Testing

/// The outcome of a job whose program exceeded a limit.
struct LimitOutcomeTests {
    let stage: Stage

    init() throws { stage = try Stage() }

    func run(_ script: String, _ change: (inout ResourceLimits) -> Void) -> Outcome {
        var limits = ResourceLimits()
        change(&limits)
        return stage.run(.shell(script)) { $0.confinement.limits = limits }
    }

    @Test(arguments: ["exec python3 -Sc 'while True: pass'", "python3 -Sc 'while True: pass'; exit $?"])
    func `a job reports that its CPU time was used up`(script: String) {
        let outcome = run(script) { $0.cpu = .seconds(1) }
        #expect(outcome.result == .retry && outcome.code == "limit-cpu")
        #expect(
            outcome.message
                == "the shell command was stopped by 'limits': it used up its 'cpu' of 1s")
    }

    @Test(arguments: ["exec head -c 5000 /dev/zero >f", "head -c 5000 /dev/zero >f; exit $?"])
    func `a job reports that its file was too large`(script: String) {
        let outcome = run(script) { $0.fileSize = 1024 }
        #expect(outcome.result == .retry && outcome.code == "limit-file-size")
        #expect(
            outcome.message
                == "the shell command was stopped by 'limits': it wrote a file larger than the 'file_size' of 1 KiB")
    }

    @Test func `the same exit without a limit is reported as a signal or a status`() {
        #expect(run("kill -XCPU $$") { $0.files = 100 }.code == "signal-\(SIGXCPU)")
        #expect(run("exit 152") { _ in }.code == "status-152")
        #expect(run("exit 137") { $0.cpu = .seconds(5) }.code == "status-137")
    }
}
