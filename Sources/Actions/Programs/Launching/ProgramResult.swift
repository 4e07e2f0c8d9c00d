package import Rules

/// How a program terminated, and what it wrote.
package struct ProgramResult: Sendable {
    package enum Termination: Sendable, Hashable {
        case exited(status: Int32)
        case signalled(Int32)
        case timedOut
        /// Alight terminated the program because it stops itself.
        case stopped
        /// The program printed more than the command allows, and was terminated.
        case outputTooLarge
        /// The program never ran; the reason is a sentence without a full stop.
        case couldNotStart(String)
        /// Nothing could be started, for lack of descriptors, processes or `alight-launch`.
        case notLaunched(String)
    }

    /// An error that execve(2) has found in the file of a program, which may be about to be replaced.
    package enum Miss: Sendable, Hashable {
        case gone
        /// The file may not be executed, by this user or in this sandbox.
        case forbidden

        /// Returns whether the error may be temporary, given that a check has since found no problem in the file.
        package func mayPass(in confinement: ProgramConfinement) -> Bool {
            // Otherwise the confinement forbids it.
            self == .gone || confinement.user == nil && confinement.grants == nil && confinement.allowsNetwork
        }
    }

    package var termination: Termination
    /// The error of the program's file, if it could not be started because of that.
    package var miss: Miss?
    /// The standard output, if the command collects it.
    package var output: [UInt8] = []
    /// The output that is logged, in the order of its arrival.
    package var log = HeadAndTail()
    /// The number of bytes of it that were not reported, because there were too many.
    package var unread = 0
    /// The last line that was neither empty nor a progress report; from stderr, if it had any.
    package var lastLine: String?
    package var duration: Duration = .zero

    package init(termination: Termination) { self.termination = termination }
}

extension ProcessDetails {
    /// - Parameters:
    ///   - termination: How the process terminated; nil for one that has answered the request and still runs.
    ///   - request: The request, if it received one.
    package init(_ termination: ProgramResult.Termination?, request: String?) {
        self.init(request: request)
        // A program that Alight terminated has neither.
        if case .exited(let status) = termination { self.status = status }
        if case .signalled(let signal) = termination { self.signal = signal }
    }
}
