import ActionAPI
import CAlightLinux
import Rules
import System

/// A flush of several staged files by one call of syncfs(2) per file system, regardless of the number of files.
///
/// All files must be written before the first of them is flushed.
struct FileSystemFlush {
    /// The minimum number of files; with fewer, separate flushes are better, since syncfs(2) also flushes unrelated
    /// files.
    private static let fewest = 4
    /// The maximum number of files at once, since each one holds several descriptors.
    private static let most = 64

    /// Processes files in groups that share a flush, or one by one if there are few.
    ///
    /// - Parameters:
    ///   - invocations: The invocations, one per file.
    ///   - alone: Processes a single file.
    ///   - together: Processes a group, and returns an outcome for each file, in order.
    /// - Returns: The outcomes, in order.
    static func run(
        _ invocations: [Invocation], alone: (Invocation) -> Outcome, together: (ArraySlice<Invocation>) -> [Outcome]
    ) -> [Outcome] {
        guard invocations.count >= fewest else {
            return invocations.map { $0.stop.isRaised ? .interrupted("Alight stops") : alone($0) }
        }
        var outcomes: [Outcome] = []
        while outcomes.count < invocations.count {
            outcomes += together(invocations[outcomes.count...].prefix(most))
        }
        return outcomes
    }

    /// The result of each flush, by device number: 0, or the errno.
    private var flushed: [UInt64: Int32] = [:]

    /// Flushes the file system of a staged file, unless that has been done.
    mutating func flush(_ staged: StagedFile, for place: FilePlace) throws(FileError) {
        let device = staged.device
        let error = flushed[device] ?? cal_sync_file_system(staged.descriptor)
        flushed[device] = error
        guard error == 0 else { throw FileError(error, "cannot flush the file system of '\(place.path)'") }
    }
}

/// A set of directories that are each flushed once.
struct DirectoryFlush {
    private var folders: [PathBytes: DirectoryHandle] = [:]

    mutating func add(_ folder: DirectoryHandle) { folders[folder.path] = folder }

    func flush() { for folder in folders.values { folder.flush() } }
}
