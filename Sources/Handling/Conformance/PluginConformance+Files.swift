import FileEvents
import Foundation
import PluginProtocol
import Rules

// What the plugin does for files of all kinds.
extension PluginConformance {
    private static let hostileName = "-rf with\nnewline and 'quote\""

    /// Goes through the cases of files.
    ///
    /// - Returns: Whether the plugin does its work for a plain name, without which little else can be judged.
    func checkFiles() throws(HandlerProblem) -> Bool {
        let plain = try tryName("plain-name", "a plain name", Array("plain\(sample.suffix)".utf8))
        let verdict: ConformanceCheck.Verdict
        if let fault = plain.fault {
            verdict = .failed(fault.why, help: fault.help)
        } else if let oddity = oddity(of: plain) {
            verdict = .skipped(oddity)
        } else if plain.outcome == .succeeded || plain.outcome == .skipped {
            verdict = .passed(plain.shown)
        } else {
            verdict = .failed(
                plain.shown, help: "give a file that it can work with, --sample FILE, and parameters, --with NAME=VALUE"
            )
        }
        tell("plain-name", "a plain name", verdict)
        var isSound = false
        if case .passed = verdict { isSound = true }

        try checkSame(plain, isSound, "hostile-name", "a name with a dash, a newline and quotes") {
            Array((Self.hostileName + self.sample.suffix).utf8)
        }
        let title = "a name that is not UTF-8"
        if plugin.description.rawPaths == true {
            try checkSame(plain, isSound, "raw-name", title) {
                Array("caf".utf8) + [0xE9] + Array(self.sample.suffix.utf8)
            }
        } else {
            tell("raw-name", title, .skipped("it declines them: its description has no 'raw_paths: true'"))
        }
        try checkOdd(isSound, "empty-file", takesFolders ? "an empty folder" : "an empty file")
        try checkOdd(isSound, "vanished-file", "a file that has vanished")
        try checkTwice(isSound)
        return isSound
    }

    /// Why the reply is left to a check of its own.
    private func oddity(of reply: ConformanceReply) -> String? {
        if reply.misprint != nil { return "what it prints is no response, see below" }
        return reply.isContradictory ? "its exit status is another answer than its response, see below" : nil
    }

    private func notSound(_ name: String, _ title: String) {
        tell(name, title, .skipped("it doesn't do its work for a plain name"))
    }

    private func checkSame(
        _ plain: ConformanceReply, _ isSound: Bool, _ name: String, _ title: String, _ fileName: () -> [UInt8]
    ) throws(HandlerProblem) {
        guard isSound else { return notSound(name, title) }
        let reply = try tryName(name, title, fileName())
        if let fault = reply.fault {
            tell(name, title, .failed(fault.why, help: Self.nameHelp))
        } else if let oddity = oddity(of: reply) {
            tell(name, title, .skipped(oddity))
        } else if reply.outcome != plain.outcome {
            tell(
                name, title,
                .failed("\(reply.shown), and for a plain name \(plain.outcome.rawValue)", help: Self.nameHelp))
        } else {
            tell(name, title, .passed(reply.shown))
        }
    }

    private static let nameHelp =
        "take exact bytes from path_base64 or $ALIGHT_PATH, quote \"$variables\", and give programs absolute paths"

    /// Files for which any answer is right that is an answer.
    private func checkOdd(_ isSound: Bool, _ name: String, _ title: String) throws(HandlerProblem) {
        guard isSound else { return notSound(name, title) }
        let stage = try stage(name)
        let path = stage.files.appending("\(name)\(sample.suffix)")
        if name == "empty-file", takesFolders {
            stage.write([], to: path, asFolder: true)
            stage.remove(path.appending("file"))
        } else {
            stage.write(name == "empty-file" ? [] : sample.content, to: path, asFolder: takesFolders)
        }
        let event = try event(of: path, in: stage)
        if name == "vanished-file" { stage.remove(path) }
        let reply = self.reply(to: request(for: event, in: stage), event, in: stage, title: title)
        if let fault = reply.fault {
            let help =
                name == "vanished-file"
                ? "answer with the outcome skipped when the file is gone" : "answer with an outcome, failed say"
            tell(name, title, .failed(fault.why, help: help))
        } else {
            tell(name, title, oddity(of: reply).map { .skipped($0) } ?? .passed(reply.shown))
        }
    }

    private func checkTwice(_ isSound: Bool) throws(HandlerProblem) {
        let (name, title) = ("same-id-twice", "the same job twice ends in the same state")
        guard isSound else { return notSound(name, title) }
        guard plugin.description.idempotent != false else {
            return tell(name, title, .skipped("its description says 'idempotent: false'"))
        }
        let stage = try stage(name)
        let path = stage.files.appending("twice\(sample.suffix)")
        stage.write(sample.content, to: path, asFolder: takesFolders)
        let event = try event(of: path, in: stage)
        let id = Self.newID()
        _ = reply(to: request(for: event, in: stage, id: id), event, in: stage, title: "\(title), first")
        let first = TreeRecord([stage.files, stage.home], without: [])
        let again = request(for: event, in: stage, id: id, attempt: 2)
        let reply = self.reply(to: again, event, in: stage, title: "\(title), second")
        let help = "let the second run find what the first has done; 'idempotent: false' says that it can't"
        if let fault = reply.fault { return tell(name, title, .failed("the second time \(fault.why)", help: help)) }
        if let oddity = oddity(of: reply) { return tell(name, title, .skipped(oddity)) }
        guard reply.outcome == .succeeded || reply.outcome == .skipped else {
            return tell(name, title, .failed("the second time it answers \(reply.shown)", help: help))
        }
        if let difference = first.differences(to: TreeRecord([stage.files, stage.home], without: [])).first {
            let where_ = PathBytes(difference.path.relative(to: stage.folder) ?? difference.path.bytes[...])
            return tell(
                name, title, .failed("the second time '\(where_)' was \(difference.verb.rawValue)", help: help))
        }
        tell(name, title, .passed(nil))
    }

    // MARK: - One call

    private func tryName(_ name: String, _ title: String, _ fileName: [UInt8]) throws(HandlerProblem)
        -> ConformanceReply
    {
        let stage = try stage(name)
        let path = stage.files.appending(fileName)
        stage.write(sample.content, to: path, asFolder: takesFolders)
        let event = try event(of: path, in: stage)
        return reply(to: request(for: event, in: stage), event, in: stage, title: title)
    }

    /// Calls the plugin for an event, and watches what it writes to; `input` is what it gets in place of the request.
    func reply(
        to request: PluginRequest, _ event: FileEvent, in stage: ConformanceStage, title: String,
        input: [UInt8]? = nil
    ) -> ConformanceReply {
        stage.renewScratch()
        let folders = [stage.files, stage.home] + (ownFolder.map { [$0] } ?? [])
        let before = TreeRecord(folders, without: [stage.scratch])
        let watch = WriteWatch(before.folders)
        let encoded = (try? request.encodedBytes()) ?? []
        let command = command(
            "run", in: stage, input: input ?? encoded,
            environment: stage.environment(surroundings, request: request, event: event))
        let ended = launcher.run(command, stop: StopSignal())
        var reply = ConformanceReply(title: title, ended: ended, folder: stage.scratch)
        reply.limit = timeout
        let after = TreeRecord(folders, without: [stage.scratch])
        reply.strayWrites = strayWrites(before, after, watch.written(), reply.outputs, event.path, stage)
        replies.append(reply)
        return reply
    }

    /// What was written outside of scratch and is no output.
    ///
    /// The event's own file may go, and files that are gone at the end may have been beside it or beside an output:
    /// that is how a file is made complete before it gets its name.
    private func strayWrites(
        _ before: TreeRecord, _ after: TreeRecord, _ written: Set<PathBytes>, _ outputs: [PathBytes],
        _ own: PathBytes, _ stage: ConformanceStage
    ) -> [String] {
        func isDeclared(_ path: PathBytes) -> Bool {
            Self.isCache(path) || outputs.contains { $0 == path || $0.isInside(path) || path.isInside($0) }
        }
        func shown(_ path: PathBytes) -> String {
            path.relative(to: stage.folder).map { PathBytes($0).description } ?? path.description
        }
        let differences = before.differences(to: after)
        var stray = differences.filter { path, verb in
            !isDeclared(path) && !(verb == .removed && (path == own || path.isInside(own)))
        }.map { "'\(shown($0.path))' was \($0.verb.rawValue)" }
        let told = Set(differences.map(\.path))
        let neighbours = Set(outputs.map(\.parent) + [own.parent])
        for path in written.sorted() where !told.contains(path) && !isDeclared(path) {
            if after.entries[path] != nil {
                stray.append("'\(shown(path))' was written to")
            } else if !neighbours.contains(path.parent) {
                stray.append("'\(shown(path))' was there for a while")
            }
        }
        return stray
    }
}
