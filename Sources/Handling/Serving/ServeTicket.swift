@preconcurrency import Dispatch
import Logging
import Synchronization

/// A request on its way to a serving process, and back to the thread that waits for it.
final class ServeTicket: Sendable {
    private struct State: Sendable {
        var reply: ServePool.Reply?
        var log: ProgramLog
        var kept = HeadAndTail()
    }

    let id: String
    let attempt: Int
    /// How long it may take from when it is sent.
    let timeout: Duration
    let logger: Logger
    let progress: @Sendable (Double, String?) -> Void
    /// The line, but for the moment that it has to be answered by.
    private let head: ArraySlice<UInt8>
    private let tail: ArraySlice<UInt8>
    private let state: Mutex<State>
    private let news = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - id: The job's.
    ///   - attempt: The job's.
    ///   - timeout: How long it may take.
    ///   - request: The request as it is written for `run`, a JSON object and a newline.
    ///   - deadline: The text of its member `deadline`, which becomes that of the moment when it is sent.
    ///   - logger: Takes what the process logs while it works on nothing else.
    ///   - progress: Takes how far it is.
    init(
        id: String, attempt: Int, timeout: Duration, request: [UInt8], deadline: String, logger: Logger,
        progress: @escaping @Sendable (Double, String?) -> Void
    ) {
        self.id = id
        self.attempt = attempt
        self.timeout = timeout
        self.logger = logger
        self.progress = progress
        state = Mutex(State(log: ProgramLog(logger: logger)))
        // Members are in alphabetical order, so only a number stands before it.
        let mark = Array(#""deadline":"\#(deadline)""#.utf8)
        let start = request.prefix(256).indices.first { request[$0...].starts(with: mark) }
        head = start.map { request[1..<($0 + mark.count - deadline.utf8.count - 1)] } ?? []
        tail = start.map { request[($0 + mark.count - 1)...] } ?? request[1...]
    }

    /// The line to be sent.
    func line(deadline: String) -> [UInt8] {
        let start = Array(#"{"type":"run","#.utf8)
        return head.isEmpty ? start + tail : start + head + Array(deadline.utf8) + tail
    }

    // MARK: - The way back

    func deliver(_ reply: ServePool.Reply) {
        state.withLock { $0.reply = $0.reply ?? reply }
        news.signal()
    }

    /// Lets the thread that waits look around.
    func poke() { news.signal() }

    /// Waits for the reply; nil when there is none yet, and somebody has poked or the moment has come.
    func wait(until moment: ContinuousClock.Instant?) -> ServePool.Reply? {
        if let moment {
            let seconds = max(moment - .now, .zero) / .seconds(1)
            _ = news.wait(timeout: .now() + seconds)
        } else {
            news.wait()
        }
        return state.withLock { $0.reply }
    }

    /// Keeps what the process writes to its log while it works on this.
    func keep(_ bytes: ArraySlice<UInt8>) { state.withLock { $0.kept.append(bytes) } }

    /// Takes a line that can only be about this.
    func take(_ line: ArraySlice<UInt8>) {
        guard let report = state.withLock({ $0.log.report(line) }) else { return }
        switch report {
        case .line(let level, let text): state.withLock { $0.log.add(level, text) }
        case .progress(let fraction, let message): progress(fraction, message)
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
