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

    package var way: Way
    /// What it printed, when the command collects that.
    package var output: [UInt8] = []
    /// Everything that was reported line by line, as it came.
    package var log = HeadAndTail()
    /// The last line that was not empty and not a report of progress; of stderr, if it had any.
    package var lastLine: String?
    package var duration: Duration = .zero

    package init(way: Way) { self.way = way }
}
