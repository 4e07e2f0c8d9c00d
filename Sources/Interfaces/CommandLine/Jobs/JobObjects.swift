import FileEvents
import JSON
import Rules
import Storage
import System

// Jobs as JSON.
extension JobEntry {
    /// The members of a job's JSON object.
    var object: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "rule": .string(rule), "event": .string(event),
            "state": .string(state.rawValue), "attempt": .integer(Int64(attempt)),
            "created": .string(created.description),
        ]
        if hasJob { object["id"] = .string(id.description) }
        object.add("path", path)
        if let due, state == .pending { object["due"] = .string(due.description) }
        if let ended { object["ended"] = .string(ended.description) }
        if let message, !message.isEmpty { object["message"] = .string(message) }
        if let code { object["code"] = .string(code) }
        if !outputs.isEmpty { object["outputs"] = outputs.json }
        if let undone { object["undone"] = .string(undone.rawValue) }
        return object
    }
}

extension JobDetails {
    /// The members of a job's JSON object, including its event and all attempts.
    var object: [String: JSONValue] {
        var object = job.object
        if isInterrupted { object["interrupted"] = true }
        if let event {
            object["origin"] = .string(event.origin.rawValue)
            object["found"] = .string(event.time.description)
            object.add("root", event.root)
            if let from = event.from { object.add("from", from) }
            object["type"] = .string(event.snapshot.type.rawValue)
            object["size"] = .integer(Int64(clamping: event.snapshot.size))
            object["size_before"] = event.before.map { .integer(Int64(clamping: $0.size)) }
            if !event.changed.isEmpty { object["changed"] = event.changed.json }
            if event.isReplaced { object["replaced"] = true }
            if event.isByMove { object["via"] = "move" }
            object["by"] = event.author.process?.json
        }
        if !steps.isEmpty {
            // The request and output of a step are part of its attempt.
            object["steps"] = .array(
                steps.compactMap(\.object).map { .object($0.filter { !["log", "process"].contains($0.key) }) })
        }
        object["attempts"] = .array(attempts.map { .object($0.object) })
        return object
    }
}

extension AttemptEntry {
    /// The members of an attempt's JSON object.
    fileprivate var object: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "number": .integer(Int64(number)), "started": .string(started.description),
            "duration_ms": .number((duration / .microseconds(1)).rounded() / 1000), "outcome": .string(outcome),
            "message": .string(message),
        ]
        if let code { object["code"] = .string(code) }
        if let status { object["status"] = .integer(Int64(status)) }
        if let signal { object["signal"] = .integer(Int64(signal)) }
        if let log, !log.isEmpty { object["log"] = .string(log) }
        if !changes.isEmpty {
            object["changes"] = .array(changes.enumerated().map { .object($1.object(undo: undo, at: $0)) })
        }
        if let undo { object["undone_at"] = .string(undo.time.description) }
        if let request { object["request"] = JSONValue(record: request.utf8) ?? .string(request) }
        return object
    }
}

extension [String: JSONValue] {
    /// Adds a path as a string, and its exact bytes if it is not UTF-8.
    mutating func add(_ name: String, _ path: PathBytes) { add(name, bytes: path.bytes) }
}

// The changes of files as text and as JSON.
extension FileChange {
    /// The change as text: `moved '/in/a' to '/out/a'`.
    var words: String {
        func quoted(_ path: PathBytes) -> String { "'\(Display.path(path))'" }
        return switch kind {
        case .moved(let from, let to): "moved \(quoted(from)) to \(quoted(to))"
        case .made(let path, let source): "created \(quoted(path)) from \(quoted(source))"
        case .unpacked(let path, let source, _): "unpacked \(quoted(source)) into \(quoted(path))"
        case .madeFolder(let path): "created the directory \(quoted(path))"
        case .trashed(let from, let to, _): "moved \(quoted(from)) to the trash as \(quoted(to))"
        case .overwritten(let path): "replaced what was at \(quoted(path))"
        case .removed(let path, let twin): "removed \(quoted(path)), which had the content of \(quoted(twin))"
        }
    }

    /// The undo of the change as text: `move '/out/a' back to '/in/a'`.
    var wordsOfUndo: String {
        func quoted(_ path: PathBytes) -> String { "'\(Display.path(path))'" }
        return switch kind {
        case .moved(let from, let to), .trashed(let from, let to, _): "move \(quoted(to)) back to \(quoted(from))"
        case .made(let path, _): "remove \(quoted(path))"
        case .unpacked(let path, _, _): "remove what was unpacked into \(quoted(path))"
        case .madeFolder(let path): "remove the directory \(quoted(path)) if it is empty"
        case .overwritten(let path): "restore what was at \(quoted(path))"
        case .removed(let path, _): "restore \(quoted(path))"
        }
    }

    /// Returns the JSON object; `reason` explains why the change could not be undone.
    func object(undo: UndoRecord?, at index: Int) -> [String: JSONValue] {
        var object: [String: JSONValue] = ["did": .string(kind.word.rawValue)]
        for (name, path) in zip(kind.word.pathNames.prefix(2), kind.paths) { object.add(name, path) }
        if let undo {
            object["undone"] = .bool(undo.reasons[index] == nil)
            if let reason = undo.reasons[index] { object["reason"] = .string(reason) }
        }
        return object
    }
}
