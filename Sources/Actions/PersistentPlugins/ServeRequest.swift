package import Logging
package import Programs
import Synchronization

/// A serving program.
package struct ServedProgram: Sendable {
    /// `plugin 'resize'`, for messages.
    var title: String
    /// The command to start; its working directory is empty where each process gets one of its own.
    var command: Command
    /// The number of requests that a process accepts at once, unless it specifies that itself.
    var concurrent: Int

    package init(title: String, command: Command, concurrent: Int) {
        self.title = title
        self.command = command
        self.concurrent = concurrent
    }
}

/// A request to a serving process, and its reply.
package final class ServeRequest: Sendable, Equatable {
    /// The fate of a request.
    package enum Reply: Sendable, Hashable {
        /// The line that answers it; `after` is the reason why it had been cancelled.
        case answered([UInt8], after: ProgramResult.Termination?)
        /// It had been cancelled and was not answered, or nothing could be started for it.
        case ended(ProgramResult.Termination)
        /// Its answer is longer than a response may be.
        case tooLarge
        /// Its process died; the reason is a clause that follows the plugin's name.
        case lost(String, ProgramResult.Termination)
        /// No process accepts it; the reason is a clause like that of `lost`, and may be temporary.
        case refused(String, mayPass: Bool)
    }

    private struct State: Sendable {
        var reply: Reply?
        var whenAnswered: (@Sendable (Reply) -> Void)?
        var log: ProgramLog
        var retained = HeadAndTail()
    }

    let program: ServedProgram
    /// The id of the job.
    let id: String
    /// The attempt of the job.
    let attempt: Int
    /// How long it may take after it has been sent.
    let timeout: Duration
    let logger: Logger
    let progress: @Sendable (Double, String?) -> Void
    /// The start of the line, before the deadline; `tail` is the rest after it.
    private let head: ArraySlice<UInt8>
    private let tail: ArraySlice<UInt8>
    private let state: Mutex<State>

    /// - Parameters:
    ///   - program: The program that answers it.
    ///   - id: The id of the job.
    ///   - attempt: The attempt of the job.
    ///   - timeout: How long it may take.
    ///   - input: The request as it is written for `run`, a JSON object and a newline.
    ///   - deadline: The value of its member `deadline`, which is replaced when it is sent.
    ///   - logger: Receives what the process logs while it works on nothing else.
    ///   - progress: Receives the progress of the request.
    package init(
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
        // Members are in alphabetical order, so only a number precedes it.
        let mark = Array(#""deadline":"\#(deadline)""#.utf8)
        let start = input.prefix(256).indices.first { input[$0...].starts(with: mark) }
        head = start.map { input[1..<($0 + mark.count - deadline.utf8.count - 1)] } ?? []
        tail = start.map { input[($0 + mark.count - 1)...] } ?? input.dropFirst()
    }

    /// Returns the line to send.
    func line(deadline: String) -> [UInt8] {
        let start = Array(#"{"type":"run","#.utf8)
        return head.isEmpty ? start + tail : start + head + Array(deadline.utf8) + tail
    }

    // MARK: - Reply

    /// The first reply that was delivered.
    var reply: Reply? { state.withLock { $0.reply } }

    func deliver(_ reply: Reply) {
        let whenAnswered = state.withLock { state in
            state.reply = state.reply ?? reply
            defer { state.whenAnswered = nil }
            return state.whenAnswered
        }
        whenAnswered?(reply)
    }

    /// Sets the closure that is called with the reply.
    func whenAnswered(_ body: @escaping @Sendable (Reply) -> Void) { state.withLock { $0.whenAnswered = body } }

    /// Stores what the process writes to its log while it works on this request.
    func store(_ bytes: ArraySlice<UInt8>) { state.withLock { $0.retained.append(bytes) } }

    /// Logs a line that can only belong to this request.
    func take(_ line: ArraySlice<UInt8>) {
        if case .progress(let fraction, let message) = state.withLock({ $0.log.take(line) }) {
            progress(fraction, message)
        }
    }

    /// Returns all stored log output, once no more arrives.
    package func finish() -> HeadAndTail {
        state.withLock { state in
            state.log.finish()
            return state.retained
        }
    }

    package static func == (one: ServeRequest, other: ServeRequest) -> Bool { one === other }
}
