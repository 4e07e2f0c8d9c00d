import FileEvents
import JSON
import Records
import Rules
import Storage
import System

// Jobs as JSON.
extension JobEntry {
    /// The members of a job's JSON object.
    var object: [String: JSONValue] {
        .init([
            "rule": rule, "event": event, "state": state.rawValue, "attempt": attempt,
            "created": created.description, "id": hasJob ? id.description : nil,
            "due": state == .pending ? due?.description : nil, "ended": ended?.description,
            "message": message.flatMap { $0.isEmpty ? nil : $0 }, "code": code,
            "outputs": outputs.isEmpty ? nil : outputs.json, "undone": undone?.rawValue,
            "superseded_by": supersededBy?.description, "path": path,
        ])
    }
}

extension JobDetails {
    /// The members of a job's JSON object, including its event and all attempts.
    var object: [String: JSONValue] {
        let members = [String: JSONValue]([
            "origin": event?.origin.rawValue, "found": event?.time.description,
            "type": event?.snapshot.type.rawValue, "size": event.map { Int64(clamping: $0.snapshot.size) },
            "size_before": event?.before.map { Int64(clamping: $0.size) },
            "changed": event.flatMap { $0.changed.isEmpty ? nil : $0.changed },
            "replaced": event.flatMap { $0.isReplaced ? true : nil },
            "via": event.flatMap { $0.isByMove ? "move" : nil },
            "by": event?.writer.process?.json, "root": event?.root, "from": event?.from,
            "interrupted": isInterrupted ? true : nil,
            "attempts": attempts.map(\.object),
        ])
        return job.object.merging(members) { $1 }
    }
}

extension AttemptEntry {
    fileprivate var object: JSONValue {
        .members([
            "number": number, "started": started.description,
            "duration_ms": duration.milliseconds, "outcome": outcome, "message": message,
            "code": code, "status": status, "signal": signal, "log": log.flatMap { $0.isEmpty ? nil : $0 },
            "changes": changes.isEmpty ? nil : changes.enumerated().map { $1.object(undo: undo, at: $0) },
            "undone_at": undo?.time.description,
            "request": request.map { JSONValue(record: $0.utf8) ?? .string($0) },
        ])
    }
}

// The changes of files as text and as JSON.
extension FileChange {
    /// The change as text: `moved '/in/a' to '/out/a'`.
    var words: String {
        switch kind {
        case .moved(let from, let to): "moved \(quoted(from)) to \(quoted(to))"
        case .made(let path, let source): "created \(quoted(path)) from \(quoted(source))"
        case .unpacked(let path, let source, _): "unpacked \(quoted(source)) into \(quoted(path))"
        case .madeDirectory(let path): "created the directory \(quoted(path))"
        case .trashed(let from, let to, _): "moved \(quoted(from)) to the trash as \(quoted(to))"
        case .overwritten(let path): "replaced what was at \(quoted(path))"
        case .removed(let path, let twin): "removed \(quoted(path)), which had the content of \(quoted(twin))"
        }
    }

    /// The undo of the change as text: `move '/out/a' back to '/in/a'`.
    var wordsOfUndo: String {
        switch kind {
        case .moved(let from, let to), .trashed(let from, let to, _): "move \(quoted(to)) back to \(quoted(from))"
        case .made(let path, _): "remove \(quoted(path))"
        case .unpacked(let path, _, _): "remove what was unpacked into \(quoted(path))"
        case .madeDirectory(let path): "remove the directory \(quoted(path)) if it is empty"
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

private func quoted(_ path: PathBytes) -> String { Display.quoted(path) }
