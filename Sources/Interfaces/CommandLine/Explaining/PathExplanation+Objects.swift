import FileEvents
import Globbing
import JSON
import Plugins
import Rules
import Storage
import System

// The explanation as JSON.
extension PathExplanation {
    /// One JSON object for each rule.
    var objects: [[String: JSONValue]] {
        rules.map { entry in
            let explanation = entry.explanation
            let rule = explanation.rule
            var object: [String: JSONValue] = [
                "rule": .string(rule.name), "place": .string(rule.place.description),
                "taken": .bool(explanation.isTaken), "type": .null,
            ]
            object.add("path", path)
            if case .present(let snapshot) = sight { object["type"] = .string(snapshot.type.rawValue) }
            if let alias = entry.alias { object.add("alias", alias) }
            switch explanation.verdict {
            case .left(let reason):
                let (code, message, help) = explanation.words(for: reason)
                object["reason"] = .string(code)
                object["message"] = .string(message)
                if let help { object["help"] = .string(help) }
                if case .name(let refusal) = reason { object.merge(refusal.members) { _, new in new } }
            case .taken(let place):
                object.add("root", place.root)
                object.add("relative", place.relative)
                if let unit = place.unit { object.add("unit", unit) }
                object.merge(explanation.members) { _, new in new }
                object.merge(entry.members) { _, new in new }
            }
            if case .left(.stopped(let stopper)) = explanation.verdict { object["stopped_by"] = .string(stopper) }
            object.merge(coverage.members) { _, new in new }
            object["known"] = .bool(entry.record.isKnown)
            object["open"] = .array(entry.record.open.map { .object($0.object) })
            object["ran"] = .array(entry.record.ended.map { .object($0.object) })
            return object
        }
    }
}

extension PathExplanation.OfRule {
    /// The members about the next event, waits and actions of a match.
    fileprivate var members: [String: JSONValue] {
        var object: [String: JSONValue] = [:]
        if let next {
            object["event"] = .string(next.event.kind.rawValue)
            if !next.event.changed.isEmpty { object["changed"] = .array(next.event.changed.map { .string($0) }) }
        }
        object["holdups"] = .array(
            holdups.map { holdup in
                var object: [String: JSONValue] = ["cause": .string(holdup.cause), "message": .string(holdup.message)]
                if let until = holdup.until { object["until"] = .string(until.description) }
                return .object(object)
            })
        if let question { object["question"] = .object(question.members) }
        object["would"] = .array(
            steps.enumerated().flatMap { number, step in
                step.plans.map { plan in
                    var object = plan.members
                    object["step"] = .integer(Int64(number))
                    object["action"] = .string(step.action.name)
                    let values = plan.values.map { ($0.word, JSONValue(bytes: $1)) }
                    object["values"] = .object(Dictionary(values) { first, _ in first })
                    object["paths"] = .array(plan.events.map { JSONValue(bytes: $0.path.bytes) })
                    return .object(object)
                }
            })
        return object
    }
}

extension Coverage {
    fileprivate var members: [String: JSONValue] {
        [
            "watched": .bool(isWatched),
            "roots": .array(
                roots.map { root in
                    var object: [String: JSONValue] = [
                        "exists": .bool(root.isThere), "backend": root.polling == nil ? "inotify" : "poll",
                    ]
                    object.add("path", root.path)
                    if let unreached = root.unreached { object.add("unreached", unreached) }
                    return .object(object)
                }),
        ]
    }
}

extension Explanation {
    fileprivate var members: [String: JSONValue] {
        let isPolled = polling != nil
        var object: [String: JSONValue] = [
            "events": .array(EventSpelling.words(of: rule.events).map { .string($0) }),
            "backend": isPolled ? "poll" : "inotify",
            "settle_ms": .number(rule.settle.quiet(isPolled: isPolled) / .milliseconds(1)),
            "writers": .string(rule.settle.writers.rawValue), "locks": .string(rule.settle.locks.rawValue),
            "existing": .string(rule.existing.rawValue), "held_by": .array(holds.map { .string($0.rawValue) }),
        ]
        if !findings.isEmpty { object["where"] = .array(findings.map { .string($0) }) }
        if let reason = untoldCondition { object["where_untold"] = .string(reason) }
        if isPolled { object["poll_ms"] = .number(rule.pollInterval / .milliseconds(1)) }
        if case .fileSystem(let name) = polling { object["file_system"] = .string(name) }
        if let stable = rule.settle.stable(isPolled: isPolled) {
            object["stable"] = [
                "every_ms": .number(stable.every / .milliseconds(1)), "rounds": .integer(Int64(stable.rounds)),
            ]
        }
        if let longest = rule.settle.maximumWait { object["max_wait_ms"] = .number(longest / .milliseconds(1)) }
        object.merge(rule.runningMembers) { _, new in new }
        return object
    }
}

extension PathFilter.Refusal {
    /// The glob, and the part of the path that it refers to.
    fileprivate var members: [String: JSONValue] {
        var object: [String: JSONValue] = ["glob": .string(glob.description)]
        switch reason {
        case .outside, .above, .depth: break
        case .glob(let part), .hidden(let part): object.add("part", PathBytes(part))
        case .leftOut(_, let pattern, let part):
            object["pattern"] = .string(pattern.description)
            object.add("part", PathBytes(part))
        }
        return object
    }
}
