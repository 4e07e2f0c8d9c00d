import CAlightLinux
import FileEvents
import Rules
import System

/// Puts several staged files on the disk by one call for each file system, however many files.
///
/// syncfs(2). All have to be written before the first of them is flushed.
struct GroupFlush {
    /// With fewer it is better to flush each of them, since others' files are flushed too.
    private static let fewest = 4
    /// Most files at once: each holds some descriptors.
    private static let most = 64

    /// Works for files in groups that share a flush, or one by one where they are few.
    ///
    /// - Parameters:
    ///   - invocations: The files.
    ///   - alone: Works for one.
    ///   - together: Works for a group; it has an outcome for each, in order.
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

    /// What came of it, by the number of the file system.
    private var flushed: [UInt64: Int32] = [:]

    /// Flushes the file system that a file is on, unless that is done.
    mutating func flush(_ staged: StagedFile, for place: FilePlace) throws(FileFault) {
        let device = staged.device
        let error = flushed[device] ?? cal_sync_file_system(staged.descriptor)
        flushed[device] = error
        guard error == 0 else { throw FileFault(error, "cannot flush the file system of '\(place.path)'") }
    }
}

/// Flushes each of several folders once.
struct FolderFlush {
    private var folders: [PathBytes: OpenFolder] = [:]

    mutating func add(_ folder: OpenFolder) { folders[folder.path] = folder }

    func flush() { for folder in folders.values { folder.flush() } }
}
