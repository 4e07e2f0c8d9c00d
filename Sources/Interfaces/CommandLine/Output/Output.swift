import FileEvents
import Glibc
import Synchronization
import System

/// A descriptor to which whole lines are written.
struct Output: Sendable {
    let descriptor: Int32
    private let turn: Turn

    static let standard = Output(descriptor: STDOUT_FILENO, turn: Turn())
    static let error = Output(descriptor: STDERR_FILENO, turn: Turn())

    /// The kernel mixes long lines of several threads, so that one writes at a time.
    private final class Turn: Sendable {
        let lock = Mutex(Queue())
    }

    /// Text that waits for its reader.
    private struct Queue {
        /// Called with what happens to the queue; nil where writers wait for the reader.
        var report: (@Sendable (Loss) -> Void)?
        var waiting: [[UInt8]] = []
        /// Bytes of all that waits or is being written.
        var size = 0
        var dropped = 0
        /// Whether a thread writes what waits.
        var isDraining = false
    }

    /// What is lost because an output isn't read.
    enum Loss: Sendable, Hashable {
        /// The first text was dropped.
        case begins
        /// The reader goes on; so many texts were dropped meanwhile.
        case ended(Int)
    }

    /// Whether a person reads it, with colours wanted: https://no-color.org has an empty NO_COLOR mean nothing.
    var hasColor: Bool {
        let isUnwanted = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let isPlain = getenv("TERM").map { strcmp($0, "dumb") == 0 } ?? false
        return isatty(descriptor) == 1 && !isUnwanted && !isPlain
    }

    /// What became of a text.
    enum Written: Sendable, Hashable {
        case whole
        /// The rest was dropped, since nothing reads it any more, or not in time for the end.
        case unread
        case failed(errno: Int32)
    }

    /// Writes the text and a newline; a reader that has gone is not an error.
    ///
    /// A reader that is there and does not read, a paused terminal say, is waited for until ``hurry()``, but for
    /// outputs that ``neverBlock(_:)`` has made to drop what doesn't fit into their queue.
    ///
    /// - Parameter text: One line, or several.
    /// - Returns: Whether all of it was written, or why not.
    @discardableResult
    func write(_ text: String) -> Written { writeRaw(text + "\n") }

    /// Writes the text as it is.
    ///
    /// - Parameter text: Any text.
    /// - Returns: Whether all of it was written, or why not.
    @discardableResult
    func writeRaw(_ text: String) -> Written {
        let bytes = Array(text.utf8)
        let (result, report, needsThread): (Written, (@Sendable (Loss) -> Void)?, Bool) = turn.lock.withLock { queue in
            guard let report = queue.report else {
                var rest = bytes[...]
                return (put(&rest) { waitForRoom() }, nil, false)
            }
            if !queue.isDraining {
                var rest = bytes[...]
                let result = put(&rest) { hasRoom(within: 0) }
                guard result == .unread, hasReader else { return (result, nil, false) }
                queue.waiting.append(Array(rest))
                queue.size += rest.count
                queue.isDraining = true
                return (.whole, nil, true)
            }
            guard queue.size + bytes.count <= Self.queueLimit else {
                queue.dropped += 1
                return (.unread, queue.dropped == 1 ? report : nil, false)
            }
            queue.waiting.append(bytes)
            queue.size += bytes.count
            return (.whole, nil, false)
        }
        if needsThread, WorkerThread(name: "alight-output", body: { [self] in drain() }) == nil {
            turn.lock.withLock { queue in
                queue.dropped += queue.waiting.count
                queue.waiting = []
                queue.size = 0
                queue.isDraining = false
            }
        }
        noteFailure(result)
        report?(.begins)
        return result
    }

    /// Writes from the front of the bytes, and removes what was written.
    ///
    /// - Parameters:
    ///   - rest: The bytes.
    ///   - isReady: Asked before each write; false ends it.
    /// - Returns: Whether all of it was written, or why not.
    private func put(_ rest: inout ArraySlice<UInt8>, while isReady: () -> Bool) -> Written {
        while !rest.isEmpty {
            guard isReady() else { return .unread }
            let step = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, min($0.count, Self.pipeRoom)) }
            let error = errno
            if step < 0, error == EINTR || error == EAGAIN { continue }
            guard step > 0 else { return step == 0 || error == EPIPE ? .unread : .failed(errno: error) }
            rest = rest.dropFirst(step)
        }
        return .whole
    }

    private func noteFailure(_ result: Written) {
        guard case .failed(let error) = result, descriptor == STDOUT_FILENO else { return }
        Self.failure.store(error, ordering: .relaxed)
    }

    // MARK: Outputs that never block

    /// Bytes that wait at most for a reader.
    private static let queueLimit = 4 << 20

    /// Makes writers of this output never wait for its reader: what doesn't fit into a queue is dropped and counted.
    ///
    /// - Parameter report: Called on any thread when something is lost; it may write to the output.
    func neverBlock(_ report: @escaping @Sendable (Loss) -> Void) { turn.lock.withLock { $0.report = report } }

    /// Writes what waits until nothing does.
    private func drain() {
        while true {
            let (texts, dropped, report) = turn.lock.withLock { queue in
                defer { queue.waiting = [] }
                guard queue.waiting.isEmpty else { return (queue.waiting, 0, nil as (@Sendable (Loss) -> Void)?) }
                defer { queue.dropped = 0 }
                queue.isDraining = false
                return ([], queue.dropped, queue.report)
            }
            guard !texts.isEmpty else {
                if dropped > 0 { report?(.ended(dropped)) }
                return
            }
            for text in texts {
                var rest = text[...]
                noteFailure(put(&rest) { waitForRoom() })
                turn.lock.withLock { $0.size -= text.count }
            }
        }
    }

    /// Waits until what is in the queue was written, for as long as the reader goes on reading.
    ///
    /// What is left when it has read nothing for a second is dropped.
    func flush() {
        var size = Int.max
        var last = ContinuousClock.now
        while true {
            let (isDraining, left) = turn.lock.withLock { ($0.isDraining, $0.size) }
            guard isDraining else { return }
            if left < size {
                size = left
                last = .now
            }
            guard ContinuousClock.now - last < .seconds(1) else { return }
            usleep(5_000)
        }
    }

    /// Whether a reader could still come to what is written.
    private var hasReader: Bool {
        var waited = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&waited, 1, 0) <= 0 || waited.revents & Int16(POLLERR | POLLNVAL) == 0
    }

    /// Blocks until nobody reads any more: the other end of a pipe is closed, the terminal is gone.
    ///
    /// A file is always read, so for a file it never returns.
    func waitForDeparture() {
        while true {
            var waited = pollfd(fd: descriptor, events: 0, revents: 0)
            if poll(&waited, 1, -1) > 0, waited.revents != 0 { return }
        }
    }

    /// Ends the program between two lines.
    func exit(_ status: ExitStatus) -> Never { turn.lock.withLock { _ in Glibc.exit(status.rawValue) } }

    // MARK: What can't be written

    /// Why standard output could not be written the last time that it couldn't; 0 when it always could.
    private static let failure = Atomic<Int32>(0)

    /// Says when standard output could not be written, with which no command has done what it is for.
    ///
    /// - Parameter status: What the program would end with.
    /// - Returns: What it is to end with.
    static func checked(_ status: ExitStatus) -> ExitStatus {
        let error = failure.load(ordering: .relaxed)
        guard error != 0 else { return status }
        Output.error.write(
            "error: cannot write to standard output: \(String(cString: strerror(error)))\n"
                + "    help: make room where it goes, or send it elsewhere")
        return .runtimeError
    }

    // MARK: Readers that do not read

    private static let isHurried = Atomic(false)
    /// PIPE_BUF: what a pipe has room for when poll(2) says that it has.
    private static let pipeRoom = 4096

    /// Drops from now on, for all outputs, what can't be written at once, so that the end waits for no reader.
    static func hurry() { isHurried.store(true, ordering: .relaxed) }

    private func waitForRoom() -> Bool {
        while true {
            let isHurried = Self.isHurried.load(ordering: .relaxed)
            if hasRoom(within: isHurried ? 0 : 200) { return true }
            if isHurried { return false }
        }
    }

    /// Whether a write would not block, or would fail at once.
    private func hasRoom(within milliseconds: Int32) -> Bool {
        var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let ready = poll(&waited, 1, milliseconds)
        return ready > 0 || ready < 0 && errno != EINTR
    }
}

/// Text made safe to show on a terminal.
enum Display {
    /// The path with control characters as `\n` or `\u{1b}`, and bytes that are not UTF-8 as U+FFFD.
    ///
    /// File names come from anyone: a name must not be able to move the cursor or forge a line of the log.
    static func path(_ path: PathBytes) -> String { text(path.bytes) }

    static func text(_ bytes: some Collection<UInt8>) -> String {
        // Nearly every name needs no second look: printable ASCII is safe.
        if bytes.allSatisfy({ (0x20...0x7e).contains($0) }) { return String(decoding: bytes, as: UTF8.self) }
        var shown = ""
        var decoder = UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.parseScalar(from: &iterator) {
            case .valid(let encoded): shown += escaped(UTF8.decode(encoded))
            case .error(let length):
                // What was cut out is shown as U+FFFD for each byte: the exact bytes are in the JSON.
                shown += String(repeating: "\u{FFFD}", count: max(1, length))
            case .emptyInput: return shown
            }
        }
    }

    static func text(_ text: String) -> String { self.text(text.utf8) }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": return "\\n"
        case "\t": return "\\t"
        case "\r": return "\\r"
        default: break
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator:
            return "\\u{\(String(scalar.value, radix: 16))}"
        default: return String(scalar)
        }
    }
}
