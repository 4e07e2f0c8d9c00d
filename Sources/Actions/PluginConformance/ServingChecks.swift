import JSON
import PluginProtocol
import Plugins
import Programs
import Rules
import System

/// Checks of a persistent process that answers many requests.
struct ServingChecks {
    let cases: ConformanceCases
    let report: ConformanceReport
    private typealias Verdict = ConformanceCheck.Verdict

    func run() throws(HandlerProblem) {
        guard cases.plugin.description.modes?.contains("serve") == true else {
            return report.record("serve", "serve", .skipped("its description doesn't list that mode"))
        }
        guard report.isSound else { return report.record("serve", "serve", ConformanceReport.unsound) }
        let stage = try cases.stage("serve")
        var requests: [[String: JSONValue]] = []
        for number in 1...4 { requests.append(try served("serve-\(number)", in: stage)) }
        let cancelled = try served("serve-cancelled", in: stage)
        let talk = try PluginConversation(cases.command("serve", in: stage), cases.launcher)
        var hasFailed = false
        func step(_ name: String, _ title: String, _ seen: () throws(Verdict) -> String?) {
            do throws(Verdict) {
                if hasFailed { throw .skipped("an earlier check failed") }
                report.record(name, title, .passed(try seen()))
            } catch {
                report.record(name, title, error)
                hasFailed = true
            }
        }

        var window = 1
        step("serve-hello", "serve: it answers hello with ready") { () throws(Verdict) in
            let concurrent = try greet(talk)
            window = min(4, concurrent)
            return "concurrent \(concurrent)"
        }
        step("serve-requests", "serve: four requests, each with one result") { () throws(Verdict) in
            try serve(requests, talk, atOnce: window)
            // A second result would arrive before the pong.
            try ping(talk, 1)
            return "\(window) at once"
        }
        step("serve-unknown", "serve: messages of unknown type are ignored") { () throws(Verdict) in
            talk.send(["type": "future", "id": "1"])
            try ping(talk, 2)
            return nil
        }
        step("serve-cancel", "serve: a cancelled request has one result, too") { () throws(Verdict) in
            try cancel(cancelled, talk)
            try ping(talk, 3)
            return nil
        }
        step("serve-end", "serve: it exits with status 0 at end of file") { () throws(Verdict) in
            try endInput(talk)
            return nil
        }
    }

    /// Exchanges `hello` and `ready`, and returns how many requests the plugin accepts at once.
    private func greet(_ talk: PluginConversation) throws(Verdict) -> Int {
        talk.send(["type": "hello", "protocol": 1, "capabilities": ["cancel", "progress"]])
        let ready = try talk.expect(
            "ready", within: .seconds(10), help: "answer {\"type\":\"ready\",\"protocol\":1,\"concurrent\":1}")
        guard ready["protocol"]?.double == 1 else {
            throw .failed("its 'ready' doesn't contain \"protocol\":1", help: "set the version that it uses")
        }
        let stated = ready["concurrent"].map { $0.double.flatMap { Int(exactly: $0) } }
        guard let concurrent = stated ?? cases.plugin.description.concurrent ?? 1, (1...256).contains(concurrent) else {
            throw .failed(
                "the \"concurrent\" of its 'ready' is not a whole number from 1 to 256",
                help: "set how many requests it handles at once")
        }
        return concurrent
    }

    /// Sends the requests, at most `window` at once, and waits for their results.
    private func serve(
        _ requests: [[String: JSONValue]], _ talk: PluginConversation, atOnce window: Int
    ) throws(Verdict) {
        var waiting = requests[...]
        var open: Set<String> = []
        var done: Set<String> = []
        let help = "write exactly one 'result' for each id, with its id, attempt and outcome"
        while !waiting.isEmpty || !open.isEmpty {
            while open.count < window, let request = waiting.popFirst() {
                open.insert(request["id"]?.string ?? "")
                talk.send(request)
            }
            let result = try talk.expect("result", within: cases.timeout, help: help)
            let id = result["id"]?.string ?? ""
            guard open.remove(id) != nil else {
                let what = done.contains(id) ? "a second result for the id" : "a result for the unknown id"
                throw .failed("it gives \(what) '\(id)'", help: help)
            }
            done.insert(id)
            guard result["attempt"]?.double == 1 else {
                throw .failed("its result doesn't contain \"attempt\":1", help: help)
            }
            guard let word = result["outcome"]?.string, PluginResponse.Outcome(rawValue: word)?.isDone == true else {
                let message = result["message"]?.string.map { ", \"\(ResponseReader.line($0))\"" } ?? ""
                throw .failed(
                    "it answers \(result["outcome"]?.shown ?? "without an outcome")\(message)",
                    help: "make serve do the same as run")
            }
        }
    }

    /// Sends a ping, and expects a pong with no further result before it.
    private func ping(_ talk: PluginConversation, _ number: Int64) throws(Verdict) {
        talk.send(["type": "ping", "n": .integer(number)])
        let pong = try talk.expect(
            "pong", within: .seconds(10), refusing: "result",
            help: "answer a ping with {\"type\":\"pong\",\"n\":…}, also while you work")
        guard pong["n"]?.double == Double(number) else {
            throw .failed(
                "its pong has the 'n' \(pong["n"]?.shown ?? "(none)"), and the ping had \(number)",
                help: "return 'n' unchanged")
        }
    }

    private func cancel(_ request: [String: JSONValue], _ talk: PluginConversation) throws(Verdict) {
        talk.send(["type": "cancel", "id": "nobody's"])
        talk.send(request)
        talk.send(["type": "cancel", "id": request["id"] ?? .null])
        let help = "answer the request soon after 'cancel', with any outcome, and ignore unknown ids"
        let result = try talk.expect("result", within: cases.options.grace, help: help)
        guard result["id"] == request["id"] else {
            throw .failed(
                "it gives a result for the id '\(result["id"]?.shown ?? "")', and another one was cancelled",
                help: help)
        }
    }

    private func endInput(_ talk: PluginConversation) throws(Verdict) {
        talk.process.input.close()
        let help = "exit with 0 at the end of input"
        switch talk.end(within: cases.options.grace) {
        case .exited(status: 0): break
        case .exited(let status): throw .failed("it exited with status \(status)\(talk.lastLine)", help: help)
        case .signalled(let number): throw .failed("it was killed by signal \(number)", help: help)
        default:
            throw .failed(
                "it is still running after \(ConformanceReply.shown(cases.options.grace))",
                help: "exit when standard input ends and all requests have their results")
        }
    }

    /// Returns a message with a request for a file and a scratch directory of its own.
    private func served(_ name: String, in stage: ConformanceStage) throws(HandlerProblem) -> [String: JSONValue] {
        let scratch = stage.scratch.appending(name)
        ConformanceStage.makeDirectory(scratch)
        let own: [String: JSONValue] = ["type": "run", "scratch": .string(scratch.description)]
        return try cases.request(for: name.utf8, in: stage).merging(own) { $1 }
    }
}

/// Messages to and from a serving plugin.
extension PluginConversation {
    fileprivate func send(_ message: [String: JSONValue]) { send(message.input, within: .seconds(10)) }

    /// Waits for the next message of the given type, and ignores others, such as progress.
    ///
    /// - Parameters:
    ///   - type: The type of the expected message.
    ///   - limit: The timeout.
    ///   - refused: The type of a message that must not precede it.
    ///   - help: The help of the failure.
    /// - Returns: The members of the message.
    /// - Throws: The failure when it does not arrive.
    fileprivate func expect(
        _ type: String, within limit: Duration, refusing refused: String? = nil, help: String
    ) throws(ConformanceCheck.Verdict) -> [String: JSONValue] {
        let deadline = ContinuousClock.now + limit
        // The plugin may print faster than this loop reads.
        while ContinuousClock.now < deadline {
            switch next(within: deadline - .now) {
            case .line(let line):
                guard let members = JSONValue(json: line)?.object else {
                    let start = ResponseReader.line(String(decoding: line.prefix(40), as: UTF8.self))
                    throw .failed("it writes a line that is not a message: \"\(start)\"", help: help)
                }
                if members["type"]?.string == type { return members }
                if let refused, members["type"]?.string == refused {
                    let id = members["id"]?.string ?? ""
                    throw .failed("it gives a second result for the id '\(id)'", help: help)
                }
            case .end: throw .failed("it closed its output\(lastLine)", help: help)
            case nil: break
            }
        }
        let what = type == "result" ? "result" : "'\(type)'"
        throw .failed("there is no \(what) within \(ConformanceReply.shown(limit))", help: help)
    }
}
