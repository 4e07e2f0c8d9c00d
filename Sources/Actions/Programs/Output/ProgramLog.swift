package import Logging
import Synchronization

/// Logs the lines of one attempt, up to a limit.
///
/// The first 64 KiB are logged, and lines of level warning or higher up to ten times as much, where each line counts as
/// at least 64 bytes. The journal contains the start and the end of all output.
package final class ProgramLog: Sendable {
    private static let limit = 64 << 10

    let logger: Logger
    /// The number of bytes that count as logged, and the number of bytes in lines that were not logged.
    private let counts = Mutex((size: 0, dropped: 0))

    package init(logger: Logger) { self.logger = logger }

    /// Logs a line; returns it read, or nil for one that would not be logged anyway, which is not parsed.
    package func take(_ line: ArraySlice<UInt8>) -> ProgramReport? {
        counts.withLock { counts in
            guard counts.size <= Self.limit || line.first == UInt8(ascii: "<") || line.first == UInt8(ascii: "{") else {
                counts.dropped += line.count
                return nil
            }
            let report = ProgramReport(line: line)
            guard case .line(let level, let text) = report else { return report }
            counts.size += max(text.utf8.count, 64)
            if counts.size <= (level >= .warning ? 10 * Self.limit : Self.limit) {
                logger.log(level: level, "\(text)")
            } else {
                counts.dropped += text.utf8.count
            }
            return report
        }
    }

    /// - Parameter unread: The number of further bytes that were not split into lines.
    package func finish(unread: Int = 0) {
        let dropped = counts.withLock { $0.dropped } + unread
        if dropped > 0 { logger.notice("\(dropped) more bytes were not logged") }
    }
}
