package import FileEvents
package import JSON
import PluginProtocol
package import Records
package import Rules
import System

/// The string in the column `steps` of a job.
struct JobSteps: JSONRecord {
    var finished: [FinishedStep] = []
    var failure: FinalFailure?

    static let empty = JobSteps()

    mutating func code(with json: inout JSONCoder) {
        json.member(list: "finished", &finished)
        json.member("failure", &failure)
    }
}

extension FinishedStep: JSONRecord {
    package static var empty: FinishedStep { FinishedStep(.empty, action: "") }

    package mutating func code(with json: inout JSONCoder) {
        json.member("action", &action)
        json.member(flag: "removed_input", &hasRemovedInput)
        outcome.code(with: &json)
    }
}

extension FinalFailure: JSONRecord {
    package static var empty: FinalFailure { FinalFailure(.empty) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("attempt", &attempt)
        json.member(list: "steps", &steps)
    }
}

extension AttemptRecord: JSONRecord {
    package static var empty: AttemptRecord {
        AttemptRecord(number: 0, started: Timestamp(seconds: 0, nanoseconds: 0), duration: .zero, outcome: .empty)
    }

    package mutating func code(with json: inout JSONCoder) {
        json.member("number", &number)
        json.member("started", &started)
        json.member("duration", &duration)
        json.member("outcome", &outcome)
    }
}

// A part of the string in the column `steps` of a job, without the log.
extension Outcome: JSONRecord {
    package static var empty: Outcome { Outcome(.failed) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("outcome", &result)
        json.member("message", &message)
        json.member("code", &code)
        json.member("retry_after", &retryAfter)
        json.member(list: "outputs", &outputs)
        json.member(list: "changes", &changes)
        json.member("values", &values, omitting: [:])
        json.member("process", &process)
        json.member(flag: "interrupted", &isInterrupted)
    }
}

extension ProcessDetails: JSONRecord {
    package static var empty: ProcessDetails { ProcessDetails() }

    package mutating func code(with json: inout JSONCoder) {
        json.member("status", &status)
        json.member("signal", &signal)
        json.member("request", &request)
    }
}

// The JSON of an undoable change: an object with the word `did` and its paths.
extension FileChange: JSONRecord {
    package static var empty: FileChange { FileChange(.madeDirectory(""), left: .empty) }

    package mutating func code(with json: inout JSONCoder) {
        var did = kind.word
        json.member("did", &did)
        // The word that was read differs.
        var paths = did == kind.word ? kind.paths : Array(repeating: "", count: did.pathNames.count)
        for (index, name) in did.pathNames.enumerated() { json.member(name, &paths[index]) }
        var sealed = kind.sealed
        if did == .unpacked { json.member("sealed", &sealed) }
        kind = Kind(did, paths, sealed: sealed)
        json.member("left", &left)
    }
}

extension FileChange.Word: JSONForm {}

extension FileMark: JSONRecord {
    package static var empty: FileMark { FileMark(.unseen) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("type", &type)
        json.member("size", &size)
        json.member("mtime", &modified)
        identity.code(with: &json)
    }
}

// The string in the column `undone` of an attempt.
extension UndoRecord: JSONRecord {
    package static var empty: UndoRecord { UndoRecord(time: FileMark.empty.modified, reasons: []) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("time", &time)
        var left = reasons.map { $0.map(JSONValue.string) ?? .null }
        json.member("left", &left)
        reasons = left.map(\.string)
    }
}

// The string in the column `progress`: everything that is not in other columns.
extension Offer: JSONRecord {
    package static var empty: Offer { Offer(number: 0, event: .empty) }

    package mutating func code(with json: inout JSONCoder) {
        json.member(flag: "removed_input", &hasRemovedInput)
        json.member(flag: "interrupted", &isInterrupted)
        json.member(flag: "uncertain", &isUncertain)
        json.member(flag: "may_remove_input", &mayRemoveInput)
        json.member("left", &left)
        json.member(flag: "repeat", &isRepeat)
        json.member(flag: "named", &wasNamed)
        json.member(flag: "missed_hints", &missedHints)
        json.member("changed", &changed)
    }
}
