import JSON
import Rules

// How the actions of a rule run, for `alight explain`.
extension Rule {
    /// The settings that differ from the default, as text.
    var runningWords: [String] {
        var words: [String] = []
        if retry != RetryPolicy() { words.append("tried: \(retry.words)") }
        switch whileBusy {
        case .coalesce: break
        case .queue: words.append("changed while its action runs: every event is run for, in order")
        case .drop: words.append("changed while its action runs: taken as known")
        case .restart: words.append("changed while its action runs: the action is ended, and run again")
        }
        if cooldown > .zero { words.append("between two runs: \(Explanation.shown(cooldown)) at least") }
        if priority != 0 { words.append("priority: \(priority)") }
        if isLast { words.append("later rules see nothing of what it takes ('stop: true')") }
        if tellsAuthor { words.append("told who wrote ('by: true')") }
        if ready != nil { words.append("has to be ready besides ('ready')") }
        if let group {
            words.append("handled with its group, which needs \(group.required.map(\.text).joined(separator: ", "))")
        }
        if let batch {
            words.append(
                "told together: up to \(batch.files) files, \(Explanation.shown(batch.wait)) after the last of them, "
                    + "\(Explanation.shown(batch.maximumWait)) after the first at the latest")
        }
        if !tags.isEmpty { words.append("tags: \(tags.map { Display.text($0) }.joined(separator: ", "))") }
        if window != nil { words.append("begins only within the hours of its 'window'") }
        if !onFailure.isEmpty { words.append("when it fails for good: \(failureActionNames)") }
        if !catchUp { words.append("not told what happened while Alight did not run ('catch_up: false')") }
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
        if attempts == 1 { return "once" }
        let pauses =
            delay == maximumDelay
            ? Explanation.shown(delay) : "\(Explanation.shown(delay)) to \(Explanation.shown(maximumDelay))"
        let failures = on == .temporary ? ", after failures that the action calls temporary" : ""
        return "\(attempts) times at most, \(pauses) apart\(failures)"
    }
}
