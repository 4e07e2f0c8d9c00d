@preconcurrency import Dispatch
import Logging
import Synchronization

/// A program that serves, with all by which its processes could differ.
struct ServedProgram: Sendable {
    /// `plugin 'resize'`, for messages.
    var title: String
    /// What is started; its working directory is empty where each process gets one of its own.
    var command: Command
    /// The ``LaunchPlan`` of `command`: requests share a process only if theirs are equal.
    var environment: [UInt8]
    /// How many requests a process takes at once, if it does not say so itself.
    var concurrent: Int
}

/// A request on its way to a serving process, and back to the attempt's thread.
final class ServeRequest: Sendable {
    /// The fate of a request.
    enum Reply: Sendable, Hashable {
        /// The line that answers it; `after` says why it had been cancelled.
        case answered([UInt8], after: ServeSession.Cause?)
        /// It had been cancelled, and was not answered.
        case ended(ServeSession.Cause)
        /// Its answer is longer than any may be.
        case tooLarge
        /// Its process died; the reason is a clause that goes on from the plugin's name.
        case lost(String, Ended.Way)
        case refused(Refusal)
    }

    /// Why no process takes it.
    enum Refusal: Sendable, Hashable {
        /// The machine has no capacity for a process now.
        case notLaunched(String)
        /// It is not a program that can run.
        case couldNotStart(String)
        /// It speaks another version of the protocol.
        case unusable(String)
        /// It ends before it has answered anything.
        case failing(String)
    }

    private struct State: Sendable {
        var reply: Reply?
        var log: ProgramLog
        var kept = HeadAndTail()
    }

    let program: ServedProgram
    /// The job's.
    let id: String
    /// The job's.
    let attempt: Int
    /// How long it may take from when it is sent.
    let timeout: Duration
    let logger: Logger
    let progress: @Sendable (Double, String?) -> Void
    /// The line, but for the time that it has to be answered by.
    private let head: ArraySlice<UInt8>
    private let tail: ArraySlice<UInt8>
    private let state: Mutex<State>
    private let isAnswered = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - program: What answers it.
    ///   - id: The job's.
    ///   - attempt: The job's.
    ///   - timeout: How long it may take.
    ///   - input: The request as it is written for `run`, a JSON object and a newline.
    ///   - deadline: The text of its member `deadline`, which becomes that of the time when it is sent.
    ///   - logger: Takes what the process logs while it works on nothing else.
    ///   - progress: Takes how far it is.
    init(
        to program: ServedProgram, id: String, attempt: Int, timeout: Duration, input: [UInt8], deadline: String,
        logger: Logger, progress: @escaping @Sendable (Double, String?) -> Void
    ) {
        self.program = program
        self.id = id
        self.attempt = attempt
        self.timeout = timeout
        self.logger = logger
        self.progress = progress
        state = Mutex(State(log: ProgramLog(logger: logger)))
        // Members are in alphabetical order, so only a number stands before it.
        let mark = Array(#""deadline":"\#(deadline)""#.utf8)
        let start = input.prefix(256).indices.first { input[$0...].starts(with: mark) }
        head = start.map { input[1..<($0 + mark.count - deadline.utf8.count - 1)] } ?? []
        tail = start.map { input[($0 + mark.count - 1)...] } ?? input.dropFirst()
    }

    /// The line to be sent.
    func line(deadline: String) -> [UInt8] {
        let start = Array(#"{"type":"run","#.utf8)
        return head.isEmpty ? start + tail : start + head + Array(deadline.utf8) + tail
    }

    // MARK: - The way back

    /// The first that was delivered.
    var reply: Reply? { state.withLock { $0.reply } }

    func deliver(_ reply: Reply) {
        state.withLock { $0.reply = $0.reply ?? reply }
        isAnswered.signal()
    }

    /// Waits for the reply; for one caller.
    func wait() -> Reply? {
        isAnswered.wait()
        return reply
    }

    /// Keeps what the process writes to its log while it works on this.
    func keep(_ bytes: ArraySlice<UInt8>) { state.withLock { $0.kept.append(bytes) } }

    /// Takes a line of the log that can only be about this.
    func take(_ line: ArraySlice<UInt8>) {
        switch state.withLock({ $0.log.report(line) }) {
        case .line(let level, let text): state.withLock { $0.log.add(level, text) }
        case .progress(let fraction, let message): progress(fraction, message)
        case nil: break
        }
    }

    /// All that was kept, when nothing more comes.
    func finish() -> HeadAndTail {
        state.withLock { state in
            state.log.finish()
            return state.kept
        }
    }
}

extension ServeRequest: Hashable {
    static func == (one: ServeRequest, other: ServeRequest) -> Bool { one === other }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
