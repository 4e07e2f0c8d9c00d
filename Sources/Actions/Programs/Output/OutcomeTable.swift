import Glibc
import PluginProtocol
package import Rules
package import System

/// Converts the termination of a program into the outcome of an attempt, according to the table of the protocol.
package struct OutcomeTable {
    /// `plugin 'resize'` or `'/usr/bin/rsync'`, for messages.
    package var program: String
    /// Whether another attempt after an unknown failure is harmless.
    package var isIdempotent: Bool
    /// Whether standard output is a response; that of other programs is log output.
    package var answers: Bool
    /// The directory that relative outputs are relative to.
    package var directory: PathBytes
    package var timeout: Duration
    /// The resource limits of the program.
    package var limits: ResourceLimits

    package init(
        program: String, isIdempotent: Bool, answers: Bool, directory: PathBytes, timeout: Duration,
        limits: ResourceLimits = ResourceLimits()
    ) {
        self.program = program
        self.isIdempotent = isIdempotent
        self.answers = answers
        self.directory = directory
        self.timeout = timeout
        self.limits = limits
    }

    /// Returns the outcomes of the events of one request, in order, and warnings for the log.
    ///
    /// An event for which the response has no result gets the outcome of the whole. If all events have results, the
    /// outputs of the whole belong to no particular event, and are recorded with the first.
    package func outcomes(of ended: ProgramResult, count: Int) -> (outcomes: [Outcome], notices: [String]) {
        var reader = ResponseReader(directory: directory)
        let reading = answers ? reader.read(ended.output) : .nothing
        var whole = outcome(of: ended, reading)
        whole.log = ended.log.text
        var outcomes = Array(repeating: whole, count: count)
        guard case .exited(status: 0) = ended.termination, case .response(let response) = reading else {
            return (outcomes, reader.notices)
        }
        var notices = reader.notices
        let results = reader.results
        if results.count > count {
            notices.append("'results' has \(results.count) elements, and the request has \(count) events")
        }
        for (index, result) in zip(outcomes.indices, results) {
            guard let result else { continue }
            outcomes[index] = Outcome(result)
            outcomes[index].log = whole.log
        }
        if results.count >= count, !results.contains(nil), !outcomes.isEmpty, let outputs = response.outputs {
            outcomes[0].outputs += outputs.map { PathBytes($0.bytes) }
        }
        return (outcomes, notices)
    }

    private func outcome(of ended: ProgramResult, _ reading: ResponseReader.Reading) -> Outcome {
        if let (event, code) = limit(that: ended.termination) {
            return failure(nil, event, code, ended, reading, saysWhy: true)
        }
        switch ended.termination {
        case .exited(status: 0):
            switch reading {
            case .nothing: return Outcome(.succeeded)
            case .response(let response): return Outcome(response)
            case .unreadable(let reason):
                let advice = "a plugin writes one JSON object to stdout and logs to stderr"
                return .uncertain(.failed, "\(program): the reply \(reason); \(advice)", code: "bad-response")
            }
        case .exited(let status):
            return failure(Self.result(of: status), "exited with status \(status)", "status-\(status)", ended, reading)
        case .signalled(let number):
            return failure(nil, "was killed by signal \(number)", "signal-\(number)", ended, reading)
        case .timedOut:
            var outcome = Outcome.timedOut("\(program) took longer than \(Self.shown(timeout)) and was stopped")
            outcome.result = ifIdempotent
            return outcome
        case .stopped:
            return .interrupted("\(program) was stopped because Alight stops")
        case .outputTooLarge:
            return .uncertain(.failed, "\(program) printed more than 1 MiB and was stopped", code: "too-large")
        case .notLaunched(let reason):
            // The machine has no capacity now. The job did not cause that, so it does not count as an attempt.
            return Outcome(
                .notReady, "\(program) was not started: \(reason)", code: "not-launched", retryAfter: .seconds(10))
        case .couldNotStart(let reason):
            return Outcome(.failed, "\(program): \(reason)", code: Outcome.cannotStartCode)
        }
    }

    /// Returns the outcome of a failed program; `stated` is the meaning of its exit status, nil if that has none.
    private func failure(
        _ stated: Outcome.Result?, _ event: String, _ code: String, _ ended: ProgramResult,
        _ reading: ResponseReader.Reading, saysWhy: Bool = false
    ) -> Outcome {
        let result = stated ?? ifIdempotent
        var response = PluginResponse(result)
        if case .response(let written) = reading { response = written }
        // The exit status decides; a response in addition only explains.
        response.outcome = result
        var outcome = Outcome(response)
        if saysWhy {
            outcome.message = "\(program) \(event)"
            outcome.code = code
        } else if outcome.message.isEmpty {
            outcome.message = ended.lastLine.map(ResponseReader.line) ?? "\(program) \(event)"
        }
        // The shell's statuses for a program that cannot be run, and for one that is missing.
        if [.exited(status: 126), .exited(status: 127)].contains(ended.termination) {
            outcome.code = Outcome.cannotStartCode
        }
        if outcome.code == nil { outcome.code = code }
        outcome.isUncertain = stated == nil
        return outcome
    }

    /// Returns the limit that terminated the program, with its code; nil when none did.
    ///
    /// A shell whose last command is killed by a signal exits with 128 plus the signal's number.
    private func limit(that termination: ProgramResult.Termination) -> (event: String, code: String)? {
        switch termination {
        case .signalled(SIGXCPU), .exited(status: 128 + SIGXCPU):
            guard let most = limits.cpu else { return nil }
            return ("was stopped by 'limits': it used up its 'cpu' of \(Self.shown(most))", "limit-cpu")
        case .signalled(SIGXFSZ), .exited(status: 128 + SIGXFSZ):
            guard let most = limits.shown.first(where: { $0.name == "file_size" }) else { return nil }
            let event = "was stopped by 'limits': it wrote a file larger than the 'file_size' of \(most.value)"
            return (event, "limit-file-size")
        default: return nil
        }
    }

    /// Returns the meaning of an exit status; nil when it has none.
    ///
    /// EX_TEMPFAIL, EX_UNAVAILABLE, EX_OSERR and EX_IOERR of sysexits.h may be temporary; 70 and 72 are not temporary
    /// errors.
    private static func result(of status: Int32) -> Outcome.Result? {
        switch status {
        case 75, 69, 71, 74: .retry
        case 64...78, 126, 127: .failed
        default: nil
        }
    }

    private var ifIdempotent: Outcome.Result { isIdempotent ? .retry : .failed }

    /// Returns the message for the time when the timeout is reached and the grace period starts.
    package static func overdue(_ program: String, after timeout: Duration, grace: Duration) -> String {
        "\(program) has taken longer than \(shown(timeout)); it is asked to stop, and killed after \(shown(grace))"
    }

    private static func shown(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        if seconds < 1 { return "\(Int(seconds * 1000))ms" }
        let whole = Int(seconds.rounded())
        return whole >= 60 && whole % 60 == 0 ? "\(whole / 60)m" : "\(whole)s"
    }
}

extension Outcome {
    /// Creates the outcome that a plugin has returned.
    fileprivate init(_ response: PluginResponse) {
        self.init(
            response.outcome, response.message ?? "", code: response.code,
            retryAfter: response.retryAfter.map { .milliseconds(Int64($0 * 1000)) },
            outputs: (response.outputs ?? []).map { PathBytes($0.bytes) }, values: response.values ?? [:])
        if result != .retry && result != .notReady { retryAfter = nil }
    }
}
