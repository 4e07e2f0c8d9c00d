import Logging

/// Hands the lines of one attempt to the log, but not without end.
///
/// The first 64 KiB are logged, and what is a warning or worse up to ten times
/// as much, where a line counts as 64 bytes or more; the journal has the beginning and the end of all of it.
struct ProgramLog {
    private static let limit = 64 << 10

    let logger: Logger
    private var size = 0
    /// How many bytes of lines were not logged.
    private var dropped = 0

    init(logger: Logger) { self.logger = logger }

    /// Reads a line; nil for one that would not be logged anyway, which is not worth the reading.
    mutating func report(_ line: ArraySlice<UInt8>) -> ProgramReport? {
        guard size > Self.limit, line.first != UInt8(ascii: "<"), line.first != UInt8(ascii: "{") else {
            return ProgramReport(line: line)
        }
        dropped += line.count
        return nil
    }

    mutating func add(_ level: Logger.Level, _ text: String) {
        size += max(text.utf8.count, 64)
        guard size <= (level >= .warning ? 10 * Self.limit : Self.limit) else {
            dropped += text.utf8.count
            return
        }
        logger.log(level: level, "\(text)")
    }

    /// - Parameter unread: How many bytes more were not cut into lines.
    func finish(unread: Int = 0) {
        if dropped + unread > 0 { logger.notice("\(dropped + unread) more bytes were not logged") }
    }
}
