import Glibc
import Rules
import Synchronization
import System

/// A descriptor to which whole lines are written.
final class Output: Sendable {
    private let descriptor: Int32
    /// The kernel may interleave long lines of several threads, so only the thread that holds the lock writes.
    private let queue = Mutex(Queue())

    static let standard = Output(STDOUT_FILENO)
    static let error = Output(STDERR_FILENO)

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// The text that has not been written yet.
    private struct Queue {
        /// Called when text is lost; nil for outputs whose writers wait for the reader.
        var report: LossReport?
        var waiting: [[UInt8]] = []
        /// The number of bytes queued or being written.
        var size = 0
        var dropped = 0
        /// Whether a thread is writing the queue.
        var isDraining = false
    }

    /// Reports a loss of text because an output is not read: nil when the first text is dropped, and the number of
    /// dropped texts when the reader has resumed.
    typealias LossReport = @Sendable (_ dropped: Int?) -> Void

    /// Whether the output is a terminal and colors are wanted.
    ///
    /// An empty NO_COLOR has no effect; see https://no-color.org.
    var hasColor: Bool {
        let isUnwanted = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let isPlain = getenv("TERM").map { strcmp($0, "dumb") == 0 } ?? false
        return isatty(descriptor) == 1 && !isUnwanted && !isPlain
    }

    /// The result of a write.
    enum Written: Sendable, Hashable {
        case whole
        /// The rest was dropped: the reader is gone, or did not read in time before the exit.
        case unread
        case failed(errno: Int32)
    }

    /// Writes the text and a newline.
    ///
    /// A reader that is gone is not an error.
    ///
    /// If the reader exists but does not read, such as a paused terminal, the write blocks until ``hurry()``. Outputs
    /// configured by ``neverBlock(_:)`` instead drop text that does not fit into their queue.
    ///
    /// - Parameter text: One or more lines.
    /// - Returns: Whether all of it was written, or why not.
    @discardableResult
    func write(_ text: String) -> Written { writeRaw(text + "\n") }

    /// Writes the text without adding a newline.
    ///
    /// - Parameter text: Any text.
    /// - Returns: Whether all of it was written, or why not.
    @discardableResult
    func writeRaw(_ text: String) -> Written {
        let bytes = Array(text.utf8)
        let (result, report, needsThread): (Written, LossReport?, Bool) = queue.withLock { queue in
            var rest = bytes[...]
            guard let report = queue.report else { return (put(&rest) { waitForCapacity() }, nil, false) }
            let needsThread = !queue.isDraining
            if needsThread {
                let result = put(&rest) { hasCapacity(within: 0) }
                guard result == .unread, hasReader else { return (result, nil, false) }
            } else if queue.size + rest.count > Self.queueLimit {
                queue.dropped += 1
                return (.unread, queue.dropped == 1 ? report : nil, false)
            }
            queue.waiting.append(Array(rest))
            queue.size += rest.count
            queue.isDraining = true
            return (.whole, nil, needsThread)
        }
        if needsThread, WorkerThread(name: "alight-output", body: { [self] in drain() }) == nil {
            queue.withLock { queue in
                queue.dropped += queue.waiting.count
                queue.waiting = []
                queue.size = 0
                queue.isDraining = false
            }
        }
        recordFailure(result)
        report?(nil)
        return result
    }

    /// Writes bytes from the front, and removes those that were written.
    ///
    /// - Parameters:
    ///   - rest: The bytes.
    ///   - isReady: Called before each write; false stops the writing.
    /// - Returns: Whether all of them were written, or why not.
    private func put(_ rest: inout ArraySlice<UInt8>, while isReady: () -> Bool) -> Written {
        while !rest.isEmpty {
            guard isReady() else { return .unread }
            let step = rest.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, min($0.count, Self.pipeCapacity))
            }
            let error = errno
            if step < 0, error == EINTR || error == EAGAIN { continue }
            guard step > 0 else { return step == 0 || error == EPIPE ? .unread : .failed(errno: error) }
            rest = rest.dropFirst(step)
        }
        return .whole
    }

    private func recordFailure(_ result: Written) {
        guard case .failed(let error) = result, descriptor == STDOUT_FILENO else { return }
        Self.failure.store(error, ordering: .relaxed)
    }

    // MARK: Outputs that never block

    /// The maximum number of queued bytes.
    private static let queueLimit = 4 << 20

    /// Makes writes never wait for the reader of this output.
    ///
    /// Text that does not fit into a queue is dropped and counted.
    ///
    /// - Parameter report: Called on any thread when text is lost. It may write to the output.
    func neverBlock(_ report: @escaping LossReport) { queue.withLock { $0.report = report } }

    /// Writes queued text until the queue is empty.
    private func drain() {
        while true {
            let (texts, dropped, report) = queue.withLock { queue in
                defer { queue.waiting = [] }
                guard queue.waiting.isEmpty else { return (queue.waiting, 0, nil as LossReport?) }
                defer { queue.dropped = 0 }
                queue.isDraining = false
                return ([], queue.dropped, queue.report)
            }
            guard !texts.isEmpty else {
                if dropped > 0 { report?(dropped) }
                return
            }
            for text in texts {
                var rest = text[...]
                recordFailure(put(&rest) { waitForCapacity() })
                queue.withLock { $0.size -= text.count }
            }
        }
    }

    /// Waits until the queue is written, as long as the reader makes progress.
    ///
    /// If it has read nothing for a second, the rest is dropped.
    func flush() {
        var size = Int.max
        var last = ContinuousClock.now
        while true {
            let (isDraining, left) = queue.withLock { ($0.isDraining, $0.size) }
            guard isDraining else { return }
            if left < size {
                size = left
                last = .now
            }
            guard ContinuousClock.now - last < .seconds(1) else { return }
            usleep(5_000)
        }
    }

    /// Whether the output may still have a reader.
    private var hasReader: Bool {
        var waited = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&waited, 1, 0) <= 0 || waited.revents & Int16(POLLERR | POLLNVAL) == 0
    }

    /// Blocks until the reader is gone: the other end of a pipe is closed, or the terminal has hung up.
    ///
    /// For a file, it never returns.
    func waitForDeparture() {
        while true {
            var waited = pollfd(fd: descriptor, events: 0, revents: 0)
            if poll(&waited, 1, -1) > 0, waited.revents != 0 { return }
        }
    }

    /// Exits the program between two lines.
    func exit(_ status: ExitStatus) -> Never { queue.withLock { _ in Glibc.exit(status.rawValue) } }

    // MARK: Write errors

    /// The errno of the last failed write to standard output; 0 if none has failed.
    private static let failure = Atomic<Int32>(0)

    /// Prints an error if standard output could not be written; the command has then failed.
    ///
    /// - Parameter status: The intended exit status.
    /// - Returns: The exit status to use.
    static func checked(_ status: ExitStatus) -> ExitStatus {
        let error = failure.load(ordering: .relaxed)
        guard error != 0 else { return status }
        Problem(
            "cannot write to standard output: \(SystemError(errno: error))",
            help: "free space at its target, or redirect it elsewhere"
        ).emit()
        return .runtimeError
    }

    // MARK: Readers that do not read

    private static let isHurried = Atomic(false)
    /// PIPE_BUF: the space that a pipe has if poll(2) reports it as writable.
    private static let pipeCapacity = 4096

    /// From now on, drops text that cannot be written at once, for all outputs, so that the exit waits for no reader.
    static func hurry() { isHurried.store(true, ordering: .relaxed) }

    private func waitForCapacity() -> Bool {
        while true {
            let isHurried = Self.isHurried.load(ordering: .relaxed)
            if hasCapacity(within: isHurried ? 0 : 200) { return true }
            if isHurried { return false }
        }
    }

    /// Returns whether a write would not block, or would fail at once.
    private func hasCapacity(within milliseconds: Int32) -> Bool {
        var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let ready = poll(&waited, 1, milliseconds)
        return ready > 0 || ready < 0 && errno != EINTR
    }
}
