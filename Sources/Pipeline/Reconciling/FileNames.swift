import System

/// The names of files with several names, as they were inspected since the last hint.
///
/// Each change of a name changes the file for all its names. Without this record, n changes of a file with n names
/// would inspect n² names.
final class FileNames {
    struct File {
        /// The change time of the file when its names were inspected.
        let changed: Timestamp?
        /// The names in the ledger at which the file is.
        var present: Set<PathBytes> = []
        /// The names in the ledger at which it may not be, including those that were added since.
        var others: Set<PathBytes> = []
        /// Whether the names that differ from the ledger were marked as dirty.
        var isCompared = false
        /// Whether the kernel has reported a write under one of the names; nil if that was not looked up.
        var isWritten: Bool?
    }

    private var files: [FileIdentity: File] = [:]

    subscript(identity: FileIdentity) -> File? {
        get { files[identity] }
        set { files[identity] = newValue }
    }

    /// Records that a path has a ledger row with the file, or none.
    func setRow(_ path: PathBytes, _ identity: FileIdentity?) {
        guard !files.isEmpty else { return }
        if let identity {
            if files[identity]?.present.contains(path) == false { files[identity]?.others.insert(path) }
        } else {
            for identity in Array(files.keys) { files[identity]?.others.remove(path) }
        }
    }

    /// Records that the file was found at a name.
    func confirm(_ path: PathBytes, _ identity: FileIdentity) {
        if files[identity]?.others.remove(path) != nil { files[identity]?.present.insert(path) }
    }

    /// Removes everything: a name may have changed without a change of its file, by the rename of a directory.
    func removeAll() { if !files.isEmpty { files = [:] } }
}
