import CAlightLinux
import Foundation
import Glibc
import Programs
import Rules
import System

/// A conversation with a running program, which is killed when this value is released; used on one thread.
final class PluginConversation {
    enum Message {
        case line([UInt8])
        /// It has closed standard output.
        case end
    }

    let process: LaunchedProgram
    /// The output of the program; the first `taken` bytes have been returned as lines.
    private var output: [UInt8] = []
    private var taken = 0
    /// The size from which no more is read until lines are taken.
    private static let mostUnread = 4 << 20
    private var hasEnded = false
    private var errors = HeadAndTail()

    /// Starts the program; the input in `command` is ignored.
    init(_ command: Command, _ launcher: ProcessLauncher) throws(HandlerProblem) {
        do throws(LaunchFailure) {
            process = try launcher.start(command)
        } catch {
            throw HandlerProblem(message: error.reason, help: nil)
        }
    }

    deinit {
        process.input.close()
        process.kill()
        _ = end(within: .seconds(10))
    }

    /// Writes the bytes, as far as the program accepts them in time.
    func send(_ bytes: [UInt8], within limit: Duration) {
        var written = 0
        _ = poll(within: limit, every: .milliseconds(20), for: Int16(POLLOUT)) {
            !process.input.write(bytes, from: &written) || written == bytes.count ? true : nil
        }
    }

    /// Waits until the program has read everything that was sent, or has exited; at most for the given time.
    func waitUntilRead(within limit: Duration) {
        _ = poll(within: limit, every: .milliseconds(10)) {
            var unread: Int32 = 0
            let isRead = ioctl(process.input.raw, UInt(FIONREAD), &unread) == 0 && unread == 0
            return isRead || process.checkForEnd() ? true : nil
        }
    }

    /// Returns the next line of standard output; nil when none arrives in time.
    func next(within limit: Duration) -> Message? {
        poll(within: limit, every: .milliseconds(200)) {
            guard let newline = output[taken...].firstIndex(ofByte: UInt8(ascii: "\n")) else {
                return hasEnded ? .end : nil
            }
            defer { taken = newline + 1 }
            return .line(Array(output[taken..<newline]))
        }
    }

    /// Waits until the program and all its descendants have exited; returns nil when they do not in time.
    func end(within limit: Duration) -> ProgramResult.Termination? {
        poll(within: limit, every: .milliseconds(10)) {
            guard process.checkForEnd() else { return nil }
            take()
            return process.end
        }
    }

    /// Waits for a value, and reads the program's output meanwhile; returns nil when there is none in time.
    private func poll<Value>(
        within limit: Duration, every pause: Duration, for events: Int16 = 0, _ value: () -> Value?
    ) -> Value? {
        let deadline = ContinuousClock.now + limit
        while true {
            if let value = value() { return value }
            let now = ContinuousClock.now
            guard now < deadline else { return nil }
            var descriptors = [
                // At end-of-file it would be ready indefinitely.
                pollfd(fd: hasEnded || isFull ? -1 : process.output.raw, events: Int16(POLLIN), revents: 0),
                pollfd(fd: events == 0 ? -1 : process.input.raw, events: events, revents: 0),
            ]
            let time = min(deadline - now, pause) / .nanoseconds(1)
            _ = cal_poll(&descriptors, UInt(descriptors.count), Int64(time))
            take()
        }
    }

    /// The reason why it could not be started, or else the last line of standard error, for messages.
    var lastLine: String {
        take()
        if process.checkForEnd(), let reason = process.end?.whyNotStarted { return ": \(reason)" }
        let line = errors.text.split(whereSeparator: \.isNewline).last { !$0.allSatisfy(\.isWhitespace) }
        return line.map { ": \(ResponseReader.line(String($0)))" } ?? ""
    }

    private var isFull: Bool { output.count - taken > Self.mostUnread }

    private func take() {
        while let bytes = process.error.readAvailable(), !bytes.isEmpty { errors.append(bytes) }
        if taken > 1 << 16 {
            output.removeFirst(taken)
            taken = 0
        }
        while !isFull, !hasEnded, let bytes = process.output.readAvailable() {
            hasEnded = bytes.isEmpty
            output += bytes
        }
    }
}
