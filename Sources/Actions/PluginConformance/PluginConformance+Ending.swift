import Glibc
import Programs
import Rules

extension PluginConformance {
    /// Terminates the plugin while it waits for its request, and once it has received one.
    func endings(_ name: String) throws(HandlerProblem) -> ConformanceCheck.Verdict {
        for waits in [true, false] {
            let stage = try stage("\(name)-\(waits ? "waiting" : "working")")
            let request = try request(for: name.utf8, in: stage)
            let conversation = try PluginConversation(command("run", in: stage, for: request), launcher)
            // All but the newline, and no end-of-file, so that it has to wait for the rest.
            _ = conversation.send(waits ? request.input.dropLast() : request.input, within: .seconds(5))
            if waits {
                conversation.waitUntilRead(within: .seconds(2))
            } else {
                conversation.closeInput()
            }
            // Most are done at once, which also passes; for others this is long enough to be at work.
            guard conversation.end(within: waits ? .zero : .milliseconds(300)) == nil else { continue }
            let start = ContinuousClock.now
            conversation.terminate(grace: options.grace)
            let end = conversation.end(within: options.grace + .seconds(10))
            let took = ContinuousClock.now - start
            if end == nil || end == .signalled(SIGKILL) || took >= options.grace {
                let what = waits ? "while it waited for its request" : "at work"
                return .failed(
                    "\(what), it kept running for \(ConformanceReply.shown(options.grace)) after SIGTERM, and "
                        + "was killed",
                    help: "clean up and exit; a process that still runs after the grace period is killed")
            }
        }
        return .passed(nil)
    }
}
