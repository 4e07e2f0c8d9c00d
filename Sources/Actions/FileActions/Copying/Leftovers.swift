import CAlightLinux
import FileEvents
import Glibc
package import System

/// Clears away what a killed Alight has left: temporary names that nobody holds a lock on.
///
/// What was being made is removed. What had been taken away from its name, to be
/// removed, gets that name back: whether it may go is then found out again.
package enum Leftovers {
    /// A link can't be locked, and has its temporary name for microseconds only.
    private static let linkAge: Duration = .seconds(10)

    /// Clears a folder.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - now: The time of the system clock.
    package static func clear(_ folder: OpenFolder, now: Timestamp) {
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

    private static func settle(_ name: PathBytes, _ kind: TemporaryName.Kind, _ folder: OpenFolder) {
        switch kind {
        case .taken(let former): try? Removal.giveBack(name, former, in: folder)
        case .staged:
            guard folder.unlink(name) == EISDIR else { return }
            _ = FolderRemoval.remove(name, in: folder) { false }
        }
    }
}
