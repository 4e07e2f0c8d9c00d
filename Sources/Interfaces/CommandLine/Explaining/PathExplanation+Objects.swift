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
            var object = [String: JSONValue](
                [
                    "rule": .string(rule.name), "place": .string(rule.place.description),
                    "taken": .bool(explanation.isTaken), "type": .null, "known": .bool(entry.record.isKnown),
                    "open": .array(entry.record.open.map { .object($0.object) }),
                    "ran": .array(entry.record.ended.map { .object($0.object) }),
                ], paths: ["path": path, "alias": entry.alias])
            if case .present(let snapshot) = sight { object["type"] = .string(snapshot.type.rawValue) }
            switch explanation.verdict {
            case .left(let reason):
                let (code, message, help) = explanation.words(for: reason)
                object["reason"] = .string(code)
                object["message"] = .string(message)
                object["help"] = help.map { .string($0) }
                if case .name(let refusal) = reason { object.merge(refusal.members) { $1 } }
                if case .stopped(let stopper) = reason { object["stopped_by"] = .string(stopper) }
            case .taken(let place):
                let paths = [String: JSONValue](
                    [:], paths: ["root": place.root, "relative": place.relative, "unit": place.unit])
                for members in [paths, explanation.members, entry.members] { object.merge(members) { $1 } }
            }
            object.merge(coverage.members) { $1 }
            return object
        }
    }
}

extension PathExplanation.OfRule {
    /// The members about the next event, waits and actions of a match.
    fileprivate var members: [String: JSONValue] {
        .init([
            "event": next.map { .string($0.event.kind.rawValue) },
            "changed": next.flatMap { $0.event.changed.isEmpty ? nil : .strings($0.event.changed) },
            "holdups": .array(
                holdups.map { holdup in
                    .members([
                        "cause": .string(holdup.cause), "message": .string(holdup.message),
                        "until": holdup.until.map { .string($0.description) },
                    ])
                }), "question": question.map { .object($0.members) },
            "would": .array(
                steps.enumerated().flatMap { number, step in
                    step.plans.map { plan in
                        let values = plan.values.map { ($0.word, JSONValue(bytes: $1)) }
                        let members: [String: JSONValue] = [
                            "step": .count(number), "action": .string(step.action.name),
                            "values": .object(Dictionary(values) { first, _ in first }),
                            "paths": .array(plan.events.map { JSONValue(bytes: $0.path.bytes) }),
                        ]
                        return .object(plan.members.merging(members) { $1 })
                    }
                }),
        ])
    }
}

extension Coverage {
    fileprivate var members: [String: JSONValue] {
        [
            "watched": .bool(isWatched),
            "roots": .array(
                roots.map { root in
                    .members(
                        ["exists": .bool(root.isThere), "backend": root.polling == nil ? "inotify" : "poll"],
                        paths: ["path": root.path, "unreached": root.unreached])
                }),
        ]
    }
}

extension Explanation {
    fileprivate var members: [String: JSONValue] {
        let isPolled = polling != nil
        var object = [String: JSONValue]([
            "events": .strings(EventSpelling.words(of: rule.events)), "backend": isPolled ? "poll" : "inotify",
            "settle_ms": .milliseconds(rule.settle.quiet(isPolled: isPolled)),
            "writers": .string(rule.settle.writers.rawValue), "locks": .string(rule.settle.locks.rawValue),
            "existing": .string(rule.existing.rawValue), "held_by": .strings(holds.map(\.rawValue)),
            "where": findings.isEmpty ? nil : .strings(findings), "where_untold": untoldCondition.map { .string($0) },
            "poll_ms": isPolled ? .milliseconds(rule.pollInterval) : nil,
            "stable": rule.settle.stable(isPolled: isPolled).map { stable in
                ["every_ms": .milliseconds(stable.every), "rounds": .count(stable.rounds)]
            }, "max_wait_ms": rule.settle.maximumWait.map { .milliseconds($0) },
        ])
        if case .fileSystem(let name) = polling { object["file_system"] = .string(name) }
        return object.merging(rule.runningMembers) { $1 }
    }
}

extension PathFilter.Refusal {
    /// The glob, and the part of the path that it refers to.
    fileprivate var members: [String: JSONValue] {
        let glob = JSONValue.string(glob.description)
        return switch reason {
        case .outside, .above, .depth: ["glob": glob]
        case .glob(let part), .hidden(let part): .init(["glob": glob], paths: ["part": PathBytes(part)])
        case .leftOut(_, let pattern, let part):
            .init(["glob": glob, "pattern": .string(pattern.description)], paths: ["part": PathBytes(part)])
        }
    }
}
