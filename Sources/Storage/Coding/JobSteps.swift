package import JSON
package import Rules
import System

/// The string in the column `steps` of a job.
struct JobSteps: JSONRecord {
    var finished: [FinishedStep] = []
    var failure: FinalFailure?

    static let blank = JobSteps()

    private init() {}

    init(of job: Job) { (finished, failure) = (job.steps, job.failure) }

    mutating func code(with json: inout JSONCoder) {
        json.member(list: "finished", &finished)
        json.member("failure", &failure)
    }
}

extension FinishedStep: JSONRecord {
    package static var blank: FinishedStep { FinishedStep(.blank, action: "") }

    package mutating func code(with json: inout JSONCoder) {
        json.member("action", &action)
        json.member(flag: "removed_input", &hasRemovedInput)
        outcome.code(with: &json)
    }
}

extension FinalFailure: JSONRecord {
    package static var blank: FinalFailure { FinalFailure(.blank) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("attempt", &attempt)
        json.member(list: "steps", &steps)
    }
}

extension AttemptRecord: JSONRecord {
    package static var blank: AttemptRecord {
        AttemptRecord(number: 0, started: Timestamp(seconds: 0, nanoseconds: 0), duration: .zero, outcome: .blank)
    }

    package mutating func code(with json: inout JSONCoder) {
        json.member("number", &number)
        json.member("started", &started)
        json.member("duration", &duration)
        json.member("outcome", &outcome)
    }
}
