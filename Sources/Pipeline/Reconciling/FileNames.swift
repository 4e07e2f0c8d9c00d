import FileEvents
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
        var others = PathsByName()
        /// Those that were added since.
        var added: Set<PathBytes> = []
        /// Whether the names that differ from the ledger were marked as dirty.
        var isCompared = false
        /// Whether the kernel has reported a write under one of the names; nil if that was not looked up.
        var isWritten: Bool?
    }

    var files: [FileIdentity: File] = [:]

    var isEmpty: Bool { files.isEmpty }

    /// Records that the ledger row of a path has another file than before, or none.
    func setRow(_ path: PathBytes, _ old: FileIdentity?, _ new: FileIdentity?) {
        if let old, old != new {
            files[old]?.others.remove(path)
            files[old]?.added.remove(path)
            files[old]?.present.remove(path)
        }
        guard let new, files[new]?.present.contains(path) == false else { return }
        if files[new]?.others.insert(path) == true { files[new]?.added.insert(path) }
    }

    /// Records that the file was found at names.
    func confirm(_ paths: [PathBytes], _ identity: FileIdentity) {
        for path in paths where files[identity]?.others.remove(path) == true {
            files[identity]?.added.remove(path)
            files[identity]?.present.insert(path)
        }
    }

    /// Removes everything: a name may have changed without a change of its file, by the rename of a directory.
    func removeAll() { if !files.isEmpty { files = [:] } }
}
