import System

/// The lock that SQLite takes while it writes to a file with a log, as listed by the kernel.
///
/// The locked file must not be opened for this: closing it would release the locks that this process has on it.
enum WriteLock {
    /// The offset of the lock in the shared memory file of the journal.
    private static let offset = "120"

    /// Returns the process that writes, with its name; nil if none is visible, such as one in another container.
    static func holder(of journal: PathBytes) -> String? {
        let memory = CompanionFile.memory.path(of: journal)
        guard let inode = KernelFileSystem().stat(following: memory).snapshot?.identity.inode else { return nil }
        for line in ProcFile.text(of: "/proc/locks").split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 8, words[1] == "POSIX", words[3] == "WRITE", words[6] == offset,
                words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == inode
            else { continue }
            let name = ProcFile.name(of: words[4])
            return "process \(words[4])" + (name.isEmpty ? "" : " (\(name))")
        }
        return nil
    }
}
