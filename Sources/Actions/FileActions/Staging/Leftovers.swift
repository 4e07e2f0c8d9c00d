import CAlightLinux
import Glibc
import System

/// The cleanup of files that a killed process has left: those with temporary names on which no process holds a lock.
///
/// An unfinished file is removed. A file that was renamed away to be removed gets its name back; whether it may be
/// removed is then determined again.
enum Leftovers {
    /// The minimum age of a link, which cannot be locked and has its temporary name only for microseconds.
    private static let linkAge: Duration = .seconds(10)

    /// Cleans a directory.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - now: The time of the system clock.
    static func clear(_ directory: DirectoryHandle, now: Timestamp) {
        guard let names = try? directory.names() else { return }
        for name in names {
            guard let kind = TemporaryName.kind(of: name), let there = try? directory.metadata(of: name)
            else { continue }
            switch there.type {
            case .symlink where now.since(there.changed) > linkAge: settle(name, kind, directory)
            case .file, .directory:
                guard let file = try? directory.open(name, CAL_OPEN_READING),
                    flock(file.descriptor, LOCK_EX | LOCK_NB) == 0
                else { continue }
                settle(name, kind, directory)
            default: continue
            }
        }
    }

    private static func settle(_ name: PathBytes, _ kind: TemporaryName.Kind, _ directory: DirectoryHandle) {
        switch kind {
        case .taken(let former): try? Removal.restore(name, former, from: directory, to: directory)
        case .staged:
            guard directory.unlink(name) == EISDIR else { return }
            _ = DirectoryRemoval.remove(name, in: directory) { false }
        }
    }
}
