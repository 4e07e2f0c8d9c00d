import FileEvents
import Foundation
import PluginProtocol
import Rules

// A long-lived process that answers many requests.
extension PluginConformance {
    private enum Serving {
        static let hello = ("serve-hello", "serve: hello is answered by ready")
        static let requests = ("serve-requests", "serve: four requests, each with one result")
        static let unknown = ("serve-unknown", "serve: messages of unknown type are ignored")
        static let cancel = ("serve-cancel", "serve: a request that is cancelled has one result, too")
        static let end = ("serve-end", "serve: end of file ends it with status 0")
        static let all = [hello, requests, unknown, cancel, end]
    }

    func checkServing(isSound: Bool) throws(HandlerProblem) {
        guard plugin.description.modes?.contains("serve") == true else {
            return tell("serve", "serve", .skipped("it isn't described with that mode"))
        }
        guard isSound else {
            return tell("serve", "serve", .skipped("it doesn't do its work for a plain name"))
        }
        let stage = try stage("serve")
        let command = command(
            "serve", in: stage, environment: stage.environment(surroundings, request: nil, event: nil))
        let talk = ServeTalk(try PluginConversation(command, launcher))
        var rest = Serving.all[...]
        func judge(_ fault: (why: String, help: String)?, _ seen: String? = nil) -> Bool {
            guard let check = rest.popFirst() else { return false }
            self.tell(check.0, check.1, fault.map { .failed($0.why, help: $0.help) } ?? .passed(seen))
            guard fault != nil else { return true }
            for (name, title) in rest { self.tell(name, title, .skipped("what comes before it fails")) }
            return false
        }

        talk.send(["type": "hello", "protocol": 1, "capabilities": ["cancel", "progress"]])
        guard let ready = talk.message("ready", within: .seconds(10)) else {
            _ = judge(talk.fault("'ready' within 10 s", "answer {\"type\":\"ready\",\"protocol\":1,\"concurrent\":1}"))
            return
        }
        guard ready["protocol"]?.double == 1 else {
            _ = judge(("its 'ready' doesn't say \"protocol\":1", "say which version it speaks"))
            return
        }
        let stated = ready["concurrent"].map { $0.double.flatMap { Int(exactly: $0) } }
        guard let concurrent = stated ?? plugin.description.concurrent ?? 1, (1...256).contains(concurrent) else {
            _ = judge(
                (
                    "its 'ready' says \"concurrent\" without a whole number from 1 to 256",
                    "say how many at once it takes"
                ))
            return
        }
        guard judge(nil, "concurrent \(concurrent)") else { return }
        guard judge(try serve(talk, stage, atOnce: min(4, concurrent)), "\(min(4, concurrent)) at once") else { return }

        talk.send(["type": "future", "id": "1"])
        guard judge(pong(talk, 2)) else { return }
        guard judge(try cancel(talk, stage)) else { return }

        talk.conversation.closeInput()
        switch talk.conversation.end(within: options.grace) {
        case .exited(status: 0): _ = judge(nil)
        case .exited(let status):
            _ = judge(("it ended with status \(status)\(talk.conversation.said)", "end with 0 at the end of input"))
        case .signalled(let number): _ = judge(("it died of signal \(number)", "end with 0 at the end of input"))
        default:
            _ = judge(
                (
                    "it still runs after \(ConformanceReply.shown(options.grace))",
                    "end when standard input does and all requests have their results"
                ))
        }
    }

    /// Sends four requests, so many at once, and waits for their results.
    private func serve(
        _ talk: ServeTalk, _ stage: ConformanceStage, atOnce window: Int
    ) throws(HandlerProblem) -> (why: String, help: String)? {
        var waiting: [PluginRequest] = []
        for number in 1...4 { waiting.append(try served("serve-\(number)", in: stage)) }
        var open: [String: Int] = [:]
        var done: Set<String> = []
        let help = "write exactly one 'result' for each id, with its id, attempt and outcome"
        while !waiting.isEmpty || !open.isEmpty {
            while open.count < window, let request = waiting.first {
                waiting.removeFirst()
                open[request.id] = request.attempt
                talk.send(request)
            }
            guard let result = talk.message("result", within: timeout) else {
                return talk.fault("a result within \(ConformanceReply.shown(timeout))", help)
            }
            let id = result["id"]?.string ?? ""
            guard let attempt = open.removeValue(forKey: id) else {
                let why =
                    done.contains(id) ? "a second result for the id '\(id)'" : "a result for the unknown id '\(id)'"
                return ("it gives \(why)", help)
            }
            done.insert(id)
            guard result["attempt"]?.double == Double(attempt) else {
                return ("its result doesn't say \"attempt\":\(attempt)", help)
            }
            guard let word = result["outcome"]?.string, let outcome = PluginResponse.Outcome(rawValue: word),
                outcome == .succeeded || outcome == .skipped
            else {
                let message = result["message"]?.string.map { ", \"\(ResponseReader.line($0))\"" } ?? ""
                return (
                    "it answers \(result["outcome"]?.shown ?? "without an outcome")\(message)",
                    "do in serve what run does"
                )
            }
        }
        // A second result would come before the pong.
        return pong(talk, 1)
    }

    /// Asks for a sign of life; a fault when there is none, or a result that nobody waits for comes before it.
    private func pong(_ talk: ServeTalk, _ number: Int64) -> (why: String, help: String)? {
        talk.send(["type": "ping", "n": .integer(number)])
        guard let pong = talk.message("pong", within: .seconds(10), refusing: "result") else {
            return talk.fault(
                "'pong' within 10 s", "answer a ping with {\"type\":\"pong\",\"n\":…}, also while you work")
        }
        guard pong["n"]?.double == Double(number) else {
            return (
                "its pong has the 'n' \(pong["n"]?.shown ?? "of nobody"), and the ping had \(number)", "give 'n' back"
            )
        }
        return nil
    }

    private func cancel(_ talk: ServeTalk, _ stage: ConformanceStage) throws(HandlerProblem) -> (
        why: String, help: String
    )? {
        let request = try served("serve-cancelled", in: stage)
        talk.send(["type": "cancel", "id": "nobody's"])
        talk.send(request)
        talk.send(["type": "cancel", "id": .string(request.id)])
        let help = "answer the request soon after 'cancel', with any outcome, and ignore ids that you don't know"
        guard let result = talk.message("result", within: options.grace) else {
            return talk.fault("a result within \(ConformanceReply.shown(options.grace))", help)
        }
        guard result["id"]?.string == request.id else {
            return ("it gives a result for the id '\(result["id"]?.shown ?? "")', and another one was cancelled", help)
        }
        return pong(talk, 3)
    }

    /// A request for a file of its own.
    private func served(_ name: String, in stage: ConformanceStage) throws(HandlerProblem) -> PluginRequest {
        let path = stage.files.appending("\(name)\(sample.suffix)")
        stage.write(sample.content, to: path, asFolder: takesFolders)
        var request = request(for: try event(of: path, in: stage), in: stage)
        let scratch = stage.scratch.appending(name)
        try? FileManager.default.createDirectory(
            atPath: scratch.description, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        request.scratch = scratch.description
        return request
    }
}

/// Messages to and from a serving plugin.
private final class ServeTalk {
    let conversation: PluginConversation
    /// Why the last message that was waited for did not come.
    private var reason = ""

    init(_ conversation: PluginConversation) { self.conversation = conversation }

    func send(_ message: [String: JSONValue]) { send(JSONValue.object(message)) }

    func send(_ request: PluginRequest) {
        guard let data = try? request.encoded(),
            var members = JSONValue(record: data)?.object
        else { return }
        members["type"] = "run"
        send(JSONValue.object(members))
    }

    private func send(_ value: JSONValue) {
        guard let data = try? JSONEncoder().encode(value) else { return }
        _ = conversation.send(Array(data) + [UInt8(ascii: "\n")], within: .seconds(10))
    }

    /// The next message of that type; others are passed over, as progress is, but for one that must not come before.
    func message(_ type: String, within limit: Duration, refusing refused: String? = nil) -> [String: JSONValue]? {
        let deadline = ContinuousClock.now + limit
        while true {
            // It may print faster than anybody reads.
            guard ContinuousClock.now < deadline else {
                reason = ""
                return nil
            }
            switch conversation.next(within: deadline - .now) {
            case .line(let line):
                guard let members = JSONValue(json: line)?.object else {
                    reason =
                        "it writes what is no message: \"\(ResponseReader.line(String(decoding: line.prefix(40), as: UTF8.self)))\""
                    return nil
                }
                if members["type"]?.string == type { return members }
                if let refused, members["type"]?.string == refused {
                    reason = "it gives a second result for the id '\(members["id"]?.string ?? "")'"
                    return nil
                }
            case .end:
                reason = "it closed its output\(conversation.said)"
                return nil
            case .nothing:
                reason = ""
                return nil
            }
        }
    }

    func fault(_ wanted: String, _ help: String) -> (why: String, help: String) {
        (reason.isEmpty ? "there is no \(wanted)" : reason, help)
    }
}
