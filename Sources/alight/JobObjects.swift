import FileEvents
import Foundation
import Journaling
import PluginProtocol
import Rules

// Jobs for machines.
extension JobEntry {
    /// The members of a job's object.
    var object: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "id": .string(id.description), "rule": .string(rule), "event": .string(event),
            "state": .string(state.rawValue), "attempt": .integer(Int64(attempt)),
            "created": .string(created.description),
        ]
        object.add("path", path)
        if let due, state == .pending { object["due"] = .string(due.description) }
        if let ended { object["ended"] = .string(ended.description) }
        if let message, !message.isEmpty { object["message"] = .string(message) }
        if let code { object["code"] = .string(code) }
        if !outputs.isEmpty { object["outputs"] = .paths(outputs) }
        if let undone { object["undone"] = .string(undone.rawValue) }
        return object
    }
}

extension JobDetails {
    /// The members of a job's object, with its event and all attempts.
    var object: [String: JSONValue] {
        var object = job.object
        let story = EventStory(facts)
        if isInterrupted { object["interrupted"] = true }
        if let origin = story.origin { object["origin"] = .string(origin) }
        if let found = story.found { object["found"] = .string(found.description) }
        if let root = story.root { object.add("root", root) }
        if let from = story.from { object.add("from", from) }
        if let type = story.type { object["type"] = .string(type) }
        if let size = story.size { object["size"] = .integer(size) }
        if let size = story.sizeBefore { object["size_before"] = .integer(size) }
        if !story.changed.isEmpty { object["changed"] = .array(story.changed.map { .string($0) }) }
        if story.isReplaced { object["replaced"] = true }
        if story.isByMove { object["via"] = "move" }
        if story.author?.object != nil { object["by"] = story.author }
        if let steps = EventStory.json(steps)?.array {
            // What a step wrote and was asked is with its attempt, or nowhere.
            object["steps"] = .array(
                steps.compactMap(\.object).map { .object($0.filter { !["log", "process"].contains($0.key) }) })
        }
        object["attempts"] = .array(attempts.map { .object($0.object) })
        return object
    }
}

extension AttemptEntry {
    /// The members of an attempt's object.
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
            object["changes"] = .array(
                changes.enumerated().map { .object($1.object(undo: undo, at: $0)) })
        }
        if let undo { object["undone_at"] = .string(undo.time.description) }
        if let request { object["request"] = EventStory.json(request) ?? .string(request) }
        return object
    }
}

extension JSONValue {
    /// Paths as texts, and those that are not UTF-8 exactly.
    static func paths(_ paths: [PathBytes]) -> JSONValue {
        .array(
            paths.map { path in
                path.text.map { .string($0) } ?? ["base64": .string(Data(path.bytes).base64EncodedString())]
            })
    }
}

extension [String: JSONValue] {
    /// Adds a path as text, and exactly if it is not UTF-8.
    mutating func add(_ name: String, _ path: PathBytes) {
        self[name] = .string(path.description)
        if path.text == nil { self["\(name)_base64"] = .string(Data(path.bytes).base64EncodedString()) }
    }
}
