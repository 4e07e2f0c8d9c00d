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
    ///   - folder: The directory.
    ///   - now: The time of the system clock.
    static func clear(_ folder: DirectoryHandle, now: Timestamp) {
        guard let names = try? folder.names() else { return }
        for name in names {
            guard let kind = TemporaryName.kind(of: name), let facts = try? folder.look(at: name) else { continue }
            switch facts.type {
            case .symlink where now.since(facts.changed) > linkAge: settle(name, kind, folder)
            case .file, .directory:
                guard case .success(let file) = folder.open(name, CAL_OPEN_READING),
                    flock(file.descriptor, LOCK_EX | LOCK_NB) == 0
                else { continue }
                settle(name, kind, folder)
            default: continue
            }
        }
    }

    private static func settle(_ name: PathBytes, _ kind: TemporaryName.Kind, _ folder: DirectoryHandle) {
        switch kind {
        case .taken(let former): try? Removal.giveBack(name, former, from: folder, to: folder)
        case .staged:
            guard folder.unlink(name) == EISDIR else { return }
            _ = DirectoryRemoval.remove(name, in: folder) { false }
        }
    }
}
