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

    /// The receiver of progress for the request of the current task.
    @TaskLocal static var progressSink: (@Sendable (Progress) -> Void)?

    /// Reports progress.
    ///
    /// Call it in the task of `handle`, or in one that it has created; elsewhere it does nothing.
    ///
    /// - Parameters:
    ///   - fraction: 0 to 1.
    ///   - message: A line for users, such as `page 5 of 12`.
    public static func progress(_ fraction: Double, _ message: String? = nil) {
        progressSink?(Progress(fraction: fraction.isNaN ? 0 : min(max(fraction, 0), 1), message: message))
    }

    /// Writes the text to the log, each of its lines with the level.
    public static func log(_ level: Level, _ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let marked = lines.map { "<\(level.rawValue)>\($0)\n" }.joined()
        ProtocolOutput.error.write(Array(marked.utf8))
    }

    struct Progress: Sendable {
        var fraction: Double
        var message: String?

        /// Returns the members that are written: the fraction under that name, and the message.
        func members(fraction name: String) -> [String: JSONValue] {
            var members: [String: JSONValue] = [name: .number(fraction)]
            members["message"] = message.map { .string($0) }
            return members
        }
    }
}
