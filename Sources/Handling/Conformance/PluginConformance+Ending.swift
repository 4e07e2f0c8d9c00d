import FileEvents
import Foundation
import Glibc
import PluginProtocol
import Rules

extension PluginConformance {
    /// Ends the plugin while it waits for its request, and once it has got one.
    func checkEnding(isSound: Bool) throws(HandlerProblem) {
        let (name, title) = ("sigterm", "SIGTERM ends it within the grace")
        guard isSound else { return tell(name, title, .skipped("it doesn't do its work for a plain name")) }
        for waits in [true, false] {
            let stage = try stage("\(name)-\(waits ? "waiting" : "working")")
            let path = stage.files.appending("plain\(sample.suffix)")
            stage.write(sample.content, to: path, asFolder: takesFolders)
            let event = try event(of: path, in: stage)
            let request = request(for: event, in: stage)
            let command = command(
                "run", in: stage, environment: stage.environment(surroundings, request: request, event: event))
            let conversation = try PluginConversation(command, launcher)
            let input = (try? request.encodedBytes()) ?? []
            // All but the newline, and no end: so it has to wait for the rest.
            _ = conversation.send(waits ? Array(input.dropLast()) : input, within: .seconds(5))
            if waits {
                conversation.waitUntilRead(within: .seconds(2))
            } else {
                conversation.closeInput()
            }
            // Most are done at once, which is as good; with others it is long enough to be at work.
            guard conversation.end(within: waits ? .zero : .milliseconds(300)) == nil else { continue }
            let start = ContinuousClock.now
            conversation.terminate(grace: options.grace)
            let end = conversation.end(within: options.grace + .seconds(10))
            let took = ContinuousClock.now - start
            if end == nil || end == .signalled(SIGKILL) || took >= options.grace {
                let what = waits ? "while it waited for its request" : "at work"
                return tell(
                    name, title,
                    .failed(
                        "\(what) it went on for \(ConformanceReply.shown(options.grace)), and was killed",
                        help: "clean up and end; whatever a time-out or a stop finds running then is killed"))
            }
        }
        tell(name, title, .passed(nil))
    }
}
