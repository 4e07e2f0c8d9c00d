#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Reports of a plugin during its work: progress, and lines for the log.
public enum PluginReport {
    /// The levels of sd-daemon(3) that Alight supports.
    public enum Level: Int, Sendable, Hashable {
        case error = 3
        case warning = 4
        case notice = 5
        case info = 6
        case debug = 7
    }

    typealias Progress = @Sendable (_ fraction: Double, _ message: String?) -> Void

    /// The receiver of progress for the request of the current task.
    @TaskLocal static var progressSink: Progress?

    /// Reports progress.
    ///
    /// Call it in the task of `handle`, or in one that it has created; elsewhere it does nothing.
    ///
    /// - Parameters:
    ///   - fraction: 0 to 1.
    ///   - message: A line for users, such as `page 5 of 12`.
    public static func progress(_ fraction: Double, _ message: String? = nil) {
        progressSink?(fraction.isNaN ? 0 : min(max(fraction, 0), 1), message)
    }

    /// Writes the text to the log, each of its lines with the level.
    public static func log(_ level: Level, _ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let marked = lines.map { "<\(level.rawValue)>\($0)\n" }.joined()
        ProtocolOutput.error.send(Array(marked.utf8))
    }
}
