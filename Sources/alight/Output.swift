import FileEvents
import Glibc
import Synchronization

/// A descriptor to which whole lines are written.
struct Output: Sendable {
    let descriptor: Int32
    private let turn: Turn

    static let standard = Output(descriptor: STDOUT_FILENO, turn: Turn())
    static let error = Output(descriptor: STDERR_FILENO, turn: Turn())

    /// Whoever holds it writes: the kernel mixes long lines of several threads.
    private final class Turn: Sendable {
        let lock = Mutex(())
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
    /// A reader that is there and does not read, a paused terminal say, is waited for until ``hurry()``.
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
        let result: Written = turn.lock.withLock { _ in
            var written = 0
            while written < bytes.count {
                guard waitForRoom() else { return .unread }
                let step = bytes.withUnsafeBytes {
                    Glibc.write(
                        descriptor, $0.baseAddress.map { $0 + written }, min(bytes.count - written, Self.pipeRoom))
                }
                let error = errno
                if step < 0, error == EINTR || error == EAGAIN { continue }
                guard step > 0 else { return step == 0 || error == EPIPE ? .unread : .failed(errno: error) }
                written += step
            }
            return .whole
        }
        if case .failed(let error) = result, descriptor == STDOUT_FILENO {
            Self.failure.store(error, ordering: .relaxed)
        }
        return result
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
            var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let isHurried = Self.isHurried.load(ordering: .relaxed)
            let ready = poll(&waited, 1, isHurried ? 0 : 200)
            if ready > 0 || ready < 0 && errno != EINTR { return true }
            if isHurried { return false }
        }
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
