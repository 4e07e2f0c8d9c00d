import FileEvents
import Foundation
import PluginProtocol
import Rules

// What the plugin does with what is no request, and what its replies have in common.
extension PluginConformance {
    func checkBadInput(isSound: Bool) throws(HandlerProblem) {
        try checkRefusal("garbage", "garbage for a request is refused", Array("{\"protocol\":1,\"id\":\u{1}no".utf8))
        try checkRefusal("empty-request", "an empty request is refused", [])
        let (name, title) = ("unknown-members", "members that it can't know are ignored")
        guard isSound else { return tell(name, title, .skipped("it doesn't do its work for a plain name")) }
        let stage = try stage(name)
        let path = stage.files.appending("plain\(sample.suffix)")
        stage.write(sample.content, to: path, asFolder: takesFolders)
        let event = try event(of: path, in: stage)
        let request = request(for: event, in: stage)
        let reply = self.reply(to: request, event, in: stage, title: title, input: Self.extended(request))
        let help = "ignore what you don't know: version 1 of the protocol grows by optional members"
        if let fault = reply.fault {
            tell(name, title, .failed(fault.why, help: help))
        } else if reply.outcome != replies.first?.outcome {
            tell(name, title, .failed("with some it answers \(reply.shown)", help: help))
        } else {
            tell(name, title, .passed(nil))
        }
    }

    /// The request as a later version could send it.
    private static func extended(_ request: PluginRequest) -> [UInt8]? {
        guard let data = try? request.encoded(),
            var members = JSONValue(record: data)?.object
        else { return nil }
        members["future"] = ["a": [1, nil]]
        members["events"] = .array(
            (members["events"]?.array ?? []).map { event in
                .object((event.object ?? [:]).merging(["future": [nil, ["b": true]]]) { $1 })
            })
        return (try? JSONEncoder().encode(JSONValue.object(members))).map { Array($0) + [UInt8(ascii: "\n")] }
    }

    private func checkRefusal(_ name: String, _ title: String, _ input: [UInt8]) throws(HandlerProblem) {
        let stage = try stage(name)
        let command = command(
            "run", in: stage, input: input, environment: stage.environment(surroundings, request: nil, event: nil))
        var reply = ConformanceReply(
            title: title, ended: launcher.run(command, stop: StopSignal()), folder: stage.scratch)
        reply.limit = timeout
        switch reply.ended.way {
        case .exited(status: 0) where reply.misprint == nil && reply.outcome == .succeeded:
            tell(
                name, title,
                .failed("it says that it succeeded", help: "end with status 65 when the request can't be read"))
        case .exited(let status): tell(name, title, .passed(status == 0 ? reply.shown : "status \(status)"))
        default:
            let fault = reply.fault ?? ("it did not end by itself", "end with status 65")
            tell(name, title, .failed(fault.0, help: "end with status 65 when the request can't be read"))
        }
    }

    /// What must hold of every reply.
    func checkReplies() {
        let title = "standard output is empty or one response"
        if let reply = replies.first(where: { $0.misprint != nil }) {
            tell(
                "one-object", title,
                .failed(
                    "for \(reply.title) it \(reply.misprint ?? "")",
                    help: "print one JSON object with an 'outcome' to standard output, and log to standard error"))
        } else {
            tell("one-object", title, .passed(nil))
        }
        let status = "the exit status and the response agree"
        if let reply = replies.first(where: \.isContradictory), case .exited(let number) = reply.ended.way {
            tell(
                "exit-status", status,
                .failed(
                    "for \(reply.title) it answers \(reply.response?.outcome.rawValue ?? "") and ends with \(number)",
                    help: "end with 0 when there is a response: another status decides, and the job fails"))
        } else {
            tell("exit-status", status, .passed(nil))
        }
        let writes = "it writes to scratch and to its outputs alone"
        // Of what is no response, the outputs aren't known.
        if let reply = replies.first(where: { $0.misprint == nil && !$0.strayWrites.isEmpty }) {
            let more = reply.strayWrites.count > 1 ? " and \(reply.strayWrites.count - 1) more" : ""
            tell(
                "writes", writes,
                .failed(
                    "for \(reply.title) \(reply.strayWrites[0])\(more)",
                    help: "list it in 'outputs', or write it below $ALIGHT_SCRATCH"))
        } else {
            tell("writes", writes, .passed(nil))
        }
    }
}
