/// How a program ended, and what it wrote.
package struct Ended: Sendable {
    package enum Way: Sendable, Hashable {
        case exited(status: Int32)
        case signalled(Int32)
        case timedOut
        /// Alight stops, and has ended the program.
        case stopped
        /// It printed more than the command allows, and was ended.
        case outputTooLarge
        /// It never ran; the reason is a sentence without a full stop.
        case couldNotStart(String)
        /// Nothing could be started, for want of descriptors, processes or `alight-launch`.
        case notLaunched(String)

        /// Why it never ran; nil when it did.
        var whyNotStarted: String? {
            switch self {
            case .couldNotStart(let reason), .notLaunched(let reason): reason
            default: nil
            }
        }
    }

    /// What execve(2) has found wrong with the file of a program, which may be about to be replaced.
    package enum Miss: Sendable, Hashable {
        case gone
        /// It may not be run, be it by this user or in this sandbox.
        case forbidden

        /// Whether the same may be well a moment later, once the file has been looked at and is sound.
        func mayPass(in confinement: ProgramConfinement) -> Bool {
            switch self {
            case .gone: true
            case .forbidden:
                // Else it is the confinement that forbids it.
                confinement.user == nil && confinement.grants == nil && confinement.allowsNetwork
            }
        }
    }

    package var way: Way
    /// Of a program that could not be started for its own file, what is wrong with that.
    package var miss: Miss?
    /// What it printed, when the command collects that.
    package var output: [UInt8] = []
    /// Everything that it wrote to its log, as it came.
    package var log = HeadAndTail()
    /// How many bytes of that were not reported, since there were too many.
    package var unread = 0
    /// The last line that was not empty and not a report of progress; of stderr, if it had any.
    package var lastLine: String?
    package var duration: Duration = .zero

    package init(way: Way) { self.way = way }
}
