package import Logging

/// Logs the lines of one attempt, up to a limit.
///
/// The first 64 KiB are logged, and lines of level warning or higher up to ten times as much, where each line counts as
/// at least 64 bytes. The journal contains the start and the end of all output.
package struct ProgramLog {
    private static let limit = 64 << 10

    let logger: Logger
    private var size = 0
    /// The number of bytes in lines that were not logged.
    private var dropped = 0

    package init(logger: Logger) { self.logger = logger }

    /// Logs a line; returns it read, or nil for one that would not be logged anyway, which is not parsed.
    package mutating func take(_ line: ArraySlice<UInt8>) -> ProgramReport? {
        guard size <= Self.limit || line.first == UInt8(ascii: "<") || line.first == UInt8(ascii: "{") else {
            dropped += line.count
            return nil
        }
        let report = ProgramReport(line: line)
        guard case .line(let level, let text) = report else { return report }
        size += max(text.utf8.count, 64)
        if size <= (level >= .warning ? 10 * Self.limit : Self.limit) {
            logger.log(level: level, "\(text)")
        } else {
            dropped += text.utf8.count
        }
        return report
    }

    /// - Parameter unread: The number of further bytes that were not split into lines.
    package func finish(unread: Int = 0) {
        if dropped + unread > 0 { logger.notice("\(dropped + unread) more bytes were not logged") }
    }
}
