import JSON
import Rules

// How the actions of a rule run, for `alight explain`.
extension Rule {
    /// The settings that differ from the default, as text.
    var runningWords: [String] {
        var words: [String] = []
        if retry != RetryPolicy() { words.append("attempts: \(retry.words)") }
        switch whileBusy {
        case .coalesce: break
        case .queue: words.append("changed while its action runs: the action runs for every event, in order")
        case .drop: words.append("changed while its action runs: recorded as known, without another run")
        case .restart: words.append("changed while its action runs: the action is stopped and started again")
        }
        if cooldown > .zero { words.append("between two runs: at least \(Explanation.shown(cooldown))") }
        if priority != 0 { words.append("priority: \(priority)") }
        if isLast { words.append("later rules receive no events of paths that it matches ('stop: true')") }
        if tellsAuthor { words.append("receives the process that wrote ('by: true')") }
        if ready != nil { words.append("also has to be ready ('ready')") }
        if let group {
            words.append("handled with its group, which requires \(group.required.map(\.text).joined(separator: ", "))")
        }
        if let batch {
            words.append(
                "batch: up to \(batch.files) files, \(Explanation.shown(batch.wait)) after the last one, "
                    + "at the latest \(Explanation.shown(batch.maximumWait)) after the first")
        }
        if !tags.isEmpty { words.append("tags: \(tags.map { Display.text($0) }.joined(separator: ", "))") }
        if window != nil { words.append("starts only within its 'window'") }
        if !onFailure.isEmpty { words.append("when a job fails permanently: \(failureActionNames)") }
        if !catchUp { words.append("ignores changes made while Alight was not running ('catch_up: false')") }
        if !formerly.isEmpty { words.append("formerly: \(formerly.map { Display.text($0) }.joined(separator: ", "))") }
        return words
    }

    /// The same settings as JSON, including those with default values.
    var runningMembers: [String: JSONValue] {
        [
            "retry": [
                "attempts": .integer(Int64(retry.attempts)), "delay_ms": .number(retry.delay / .milliseconds(1)),
                "max_delay_ms": .number(retry.maximumDelay / .milliseconds(1)), "on": .string(retry.on.rawValue),
            ],
            "while_busy": .string(whileBusy.rawValue), "cooldown_ms": .number(cooldown / .milliseconds(1)),
            "on_failure": .array(onFailure.map { .string($0.name) }), "catch_up": .bool(catchUp),
            "formerly": .array(formerly.map { .string($0) }),
            "by": .bool(tellsAuthor), "priority": .integer(Int64(priority)), "stop": .bool(isLast),
            "tags": .array(tags.map { .string($0) }),
        ]
    }

    /// The names of the actions that run when a job fails.
    var failureActionNames: String { onFailure.map(\.name).joined(separator: " + ") }
}

extension RetryPolicy {
    fileprivate var words: String {
        if attempts == 1 { return "1" }
        let pauses =
            delay == maximumDelay
            ? Explanation.shown(delay) : "\(Explanation.shown(delay)) to \(Explanation.shown(maximumDelay))"
        let failures = on == .temporary ? ", after temporary failures only" : ""
        return "at most \(attempts), \(pauses) apart\(failures)"
    }
}
