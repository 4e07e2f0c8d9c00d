import JSON
import PluginProtocol
import Plugins
import Programs
import Rules
import System

/// A request for one file, and the expected answer.
private struct ConformanceRequest {
    enum File { case sample, empty, vanished }

    enum Answer {
        /// The work is done.
        case work
        /// The same outcome as for the plain name.
        case asForPlainName
        /// Any answer.
        case any
    }

    let name: String
    let title: String
    /// The name of the file without its suffix; nil for the name of the check.
    var fileName: [UInt8]?
    var file = File.sample
    var answer = Answer.any
    /// The help when it fails; nil for that of the failure.
    var help: String?
    /// The reason why it is not sent; nil when it is.
    var skipped: String?
    /// Whether it has members that a later version could add.
    var isExtended = false
}

/// Checks of requests of all kinds, and of all replies.
final class RequestChecks {
    private let cases: ConformanceCases
    private let report: ConformanceReport
    /// The replies to events of files, for the checks that inspect all replies.
    private var replies: [ConformanceReply] = []

    init(_ cases: ConformanceCases, _ report: ConformanceReport) {
        self.cases = cases
        self.report = report
    }

    private var requests: [ConformanceRequest] {
        let nameHelp =
            "take exact bytes from path_base64 or $ALIGHT_PATH, quote \"$variables\", and give programs absolute paths"
        return [
            ConformanceRequest(name: "plain-name", title: "a plain name", answer: .work),
            ConformanceRequest(
                name: "hostile-name", title: "a name with a dash, a newline and quotes",
                fileName: Array("-rf with\nnewline and 'quote\"".utf8), answer: .asForPlainName, help: nameHelp),
            ConformanceRequest(
                name: "raw-name", title: "a name that is not UTF-8", fileName: Array("caf".utf8) + [0xE9],
                answer: .asForPlainName, help: nameHelp,
                skipped: cases.plugin.description.rawPaths == true
                    ? nil : "it declines them: its description has no 'raw_paths: true'"),
            ConformanceRequest(
                name: "empty-file", title: cases.takesDirectories ? "an empty directory" : "an empty file",
                file: .empty, help: "answer with an outcome, such as failed"),
            ConformanceRequest(
                name: "vanished-file", title: "a file that has vanished", file: .vanished,
                help: "answer with the outcome skipped when the file is gone"),
        ]
    }

    /// Sends the requests, and records whether the plugin does its work for a plain name.
    func run() throws(HandlerProblem) {
        for request in requests { try check(request) }
        let title = "running the same job twice gives the same state"
        try report.recordIfSound("same-id-twice", title) { name throws(HandlerProblem) in try twice(name, title) }
        try checkRefusal("garbage", "garbage for a request is refused", Array("{\"protocol\":1,\"id\":\u{1}no".utf8))
        try checkRefusal("empty-request", "an empty request is refused", [])
        try check(
            ConformanceRequest(
                name: "unknown-members", title: "unknown members are ignored", answer: .asForPlainName,
                help: "ignore unknown members: version 1 of the protocol gains optional members", isExtended: true))
        checkReplies()
    }

    private func check(_ request: ConformanceRequest) throws(HandlerProblem) {
        let verdict =
            if let reason = request.skipped {
                ConformanceCheck.Verdict.skipped(reason)
            } else if request.answer == .work || report.isSound {
                try verdict(on: request)
            } else {
                ConformanceReport.unsound
            }
        if request.answer == .work { report.isSound = verdict.word == .ok }
        report.record(request.name, request.title, verdict)
    }

    private func verdict(on asked: ConformanceRequest) throws(HandlerProblem) -> ConformanceCheck.Verdict {
        let stage = try cases.stage(asked.name)
        var request = try cases.request(
            for: asked.fileName ?? Array(asked.name.utf8), in: stage, content: asked.file == .empty ? [] : nil)
        let path = Self.path(in: request)
        if asked.file == .vanished { stage.remove(path) }
        if asked.file == .empty, cases.takesDirectories { stage.remove(path.appending("file")) }
        if asked.isExtended { Self.extend(&request) }
        let reply = self.reply(to: request, in: stage, title: asked.title)
        if let objection = reply.objection(help: asked.help) { return objection }
        switch asked.answer {
        case .work where !reply.isDone:
            return .failed(
                reply.shown, help: "give a file that it can work with, --sample FILE, and parameters, --with NAME=VALUE"
            )
        case .asForPlainName where reply.outcome != replies[0].outcome:
            let why =
                asked.isExtended
                ? "with some it answers \(reply.shown)"
                : "\(reply.shown), and for a plain name \(replies[0].outcome.rawValue)"
            return .failed(why, help: asked.help ?? "")
        default: return .passed(asked.isExtended ? nil : reply.shown)
        }
    }

    private static func extend(_ request: inout [String: JSONValue]) {
        request["future"] = ["a": [1, .null]]
        let events = (request["events"]?.array ?? []).compactMap(\.object)
        request["events"] = .array(events.map { .object($0.merging(["future": [.null, ["b": true]]]) { $1 }) })
    }

    private func twice(_ name: String, _ title: String) throws(HandlerProblem) -> ConformanceCheck.Verdict {
        guard cases.plugin.description.idempotent != false else {
            return .skipped("its description says 'idempotent: false'")
        }
        let stage = try cases.stage(name)
        var request = try cases.request(for: name.utf8, in: stage)
        _ = reply(to: request, in: stage, title: "\(title), first")
        let first = TreeRecord([stage.files, stage.home], without: [])
        request["attempt"] = 2
        request["interrupted"] = true
        request["previous"] = ["attempt": 1, "outcome": "retry", "message": "it was interrupted"]
        let reply = self.reply(to: request, in: stage, title: "\(title), second")
        let help = "make the second run detect what the first has done, or set 'idempotent: false'"
        if let problem = reply.problem { return .failed("the second time \(problem.why)", help: help) }
        if let objection = reply.objection() { return objection }
        guard reply.isDone else { return .failed("the second time it answers \(reply.shown)", help: help) }
        if let difference = first.differences(to: TreeRecord([stage.files, stage.home], without: [])).first {
            return .failed(
                "the second time '\(stage.shown(difference.path))' was \(difference.verb.rawValue)", help: help)
        }
        return .passed(nil)
    }

    private func checkRefusal(_ name: String, _ title: String, _ input: [UInt8]) throws(HandlerProblem) {
        let reply = cases.reply(to: cases.command("run", in: try cases.stage(name), input: input), title: title)
        let help = "exit with status 65 when the request can't be read"
        switch reply.ended.termination {
        case .exited(status: 0) where reply.defect == nil && reply.outcome == .succeeded:
            report.record(name, title, .failed("it reports success", help: help))
        case .exited(let status): report.record(name, title, .passed(status == 0 ? reply.shown : "status \(status)"))
        default: report.record(name, title, .failed(reply.problem?.why ?? "it did not exit by itself", help: help))
        }
    }

    /// Checks the requirements for every reply.
    private func checkReplies() {
        let checks: [(name: String, title: String, complaint: (ConformanceReply) -> String?, help: String)] = [
            (
                "one-object", "standard output is empty or one response", { $0.defect.map { "it \($0)" } },
                "print one JSON object with an 'outcome' to standard output, and log to standard error"
            ),
            (
                "exit-status", "the exit status and the response agree", \.contradiction,
                "exit with 0 when there is a response: any other status decides, and the job fails"
            ),
            (
                "writes", "it writes only to scratch and to its outputs",
                { reply in
                    // The outputs of an invalid response are not known.
                    guard reply.defect == nil, let first = reply.strayWrites.first else { return nil }
                    return reply.strayWrites.count == 1 ? first : "\(first) and \(reply.strayWrites.count - 1) more"
                }, "list it in 'outputs', or write it below $ALIGHT_SCRATCH"
            ),
        ]
        for check in checks {
            let complaints = replies.lazy.compactMap { reply in
                check.complaint(reply).map { "for \(reply.title) \($0)" }
            }
            report.record(
                check.name, check.title, complaints.first.map { .failed($0, help: check.help) } ?? .passed(nil))
        }
    }

    // MARK: - A single call

    private static func path(in request: [String: JSONValue]) -> PathBytes {
        PathBytes(request["events"]?.array?.first?.object?.bytes("path") ?? [])
    }

    /// Calls the plugin for a request, and watches the files that it writes.
    private func reply(to request: [String: JSONValue], in stage: ConformanceStage, title: String) -> ConformanceReply {
        stage.renewScratch()
        let before = cases.record(of: stage)
        let watch = WriteWatch(before.directories)
        var reply = cases.reply(to: cases.command("run", in: stage, input: request.input, for: request), title: title)
        reply.strayWrites = strayWrites(
            before, cases.record(of: stage), watch.written(), reply.outputs, Self.path(in: request), stage)
        replies.append(reply)
        return reply
    }

    /// Returns descriptions of what was written outside of the scratch directory and is not an output.
    ///
    /// The event's own file may be removed, and files that are gone at the end may have been next to it or to an
    /// output: this is how a file is completed before it gets its name.
    private func strayWrites(
        _ before: TreeRecord, _ after: TreeRecord, _ written: Set<PathBytes>, _ outputs: [PathBytes],
        _ own: PathBytes, _ stage: ConformanceStage
    ) -> [String] {
        func isDeclared(_ path: PathBytes) -> Bool {
            TreeRecord.isCache(path) || outputs.contains { $0 == path || $0.isInside(path) || path.isInside($0) }
        }
        let differences = before.differences(to: after)
        var stray = differences.filter { path, verb in
            !isDeclared(path) && !(verb == .removed && (path == own || path.isInside(own)))
        }.map { "'\(stage.shown($0.path))' was \($0.verb.rawValue)" }
        let reported = Set(differences.map(\.path))
        let neighbours = Set(outputs.map(\.parent) + [own.parent])
        for path in written.sorted() where !reported.contains(path) && !isDeclared(path) {
            if after.entries[path] != nil {
                stray.append("'\(stage.shown(path))' was written to")
            } else if !neighbours.contains(path.parent) {
                stray.append("'\(stage.shown(path))' existed for a while")
            }
        }
        return stray
    }
}
