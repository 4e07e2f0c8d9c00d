import Logging
import Programs

/// The log output of a serving process, passed to the requests that it belongs to.
struct ServeLog {
    private var lines = LineSplitter()
    private var last: ArraySlice<UInt8> = []
    /// The log for lines of no particular request; renewed each minute, so that a verbose process is logged, but not
    /// without limit.
    private var log: ProgramLog?
    private var renewal: ContinuousClock.Instant?

    /// The last line that was not empty.
    var lastLine: String? {
        guard !last.isEmpty, case .line(_, let text) = ProgramReport(line: last) else { return nil }
        return text
    }

    mutating func take(_ bytes: ArraySlice<UInt8>, _ open: [ServeRequest], _ logger: Logger) {
        for request in open { request.store(bytes) }
        write(lines.add(bytes), open, logger)
    }

    mutating func finish(_ open: [ServeRequest], _ logger: Logger) {
        write([lines.finish()].compactMap(\.self), open, logger)
        log?.finish()
    }

    private mutating func write(_ complete: [ArraySlice<UInt8>], _ open: [ServeRequest], _ logger: Logger) {
        renew(logger)
        for line in complete where line.contains(where: { $0 > 0x20 }) {
            last = line
            if open.count == 1 { open[0].take(line) } else { _ = log?.take(line) }
        }
    }

    private mutating func renew(_ logger: Logger) {
        let now = ContinuousClock.now
        guard renewal.map({ $0 <= now }) ?? true else { return }
        log?.finish()
        log = ProgramLog(logger: logger)
        renewal = now + .seconds(60)
    }
}
