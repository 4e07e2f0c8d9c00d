import CAlightLinux
import FileEvents
import Glibc
import Synchronization

/// Scratch folders that nobody has touched, for the next attempts.
///
/// Most programs leave theirs as it was, and on the disk of a container making
/// and removing one costs several times as much as looking at it and renaming it.
/// Each attempt gets another name: who was given the name of an earlier one, and
/// writes there late, finds nothing.
final class SpareFolders: Sendable {
    /// What a folder was when it was made.
    ///
    /// Whoever adds an entry to it, removes one, or changes its mode, its owner or its attributes gives it another
    /// time of change.
    private struct Facts: Sendable, Equatable {
        private let numbers: [Int]
        private let changed: [Int]

        init?(_ folder: PathBytes) {
            var status = stat()
            guard folder.withCString({ lstat($0, &status) }) == 0 else { return nil }
            numbers = [
                Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_mode),
                Int(status.st_uid), Int(status.st_gid),
            ]
            changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
        }

        /// Whether it differs in nothing but the time of change, which a rename moves.
        func isRenamed(from other: Facts) -> Bool { numbers == other.numbers }
    }

    private struct State: Sendable {
        var made: [PathBytes: Facts] = [:]
        var spare: [PathBytes] = []
    }

    private let state = Mutex(State())
    /// More than run at once are needed by nobody.
    private static let most = 64
    private let count = Atomic(0)

    /// The name of the next folder that is made.
    func nextName() -> [UInt8] { Array("\(count.add(1, ordering: .relaxed).newValue)".utf8) }

    /// Takes a folder, and gives it the next name.
    ///
    /// - Parameter remove: Takes those that are not as they were made.
    /// - Returns: One that is; nil when there is none.
    func take(remove: (PathBytes) -> Void) -> PathBytes? {
        while let (folder, known) = state.withLock({ state -> (PathBytes, Facts?)? in
            state.spare.popLast().map { ($0, state.made.removeValue(forKey: $0)) }
        }) {
            // A process that should have ended may have changed it meanwhile.
            guard let known, Facts(folder) == known else {
                remove(folder)
                continue
            }
            let new = folder.parent.appending(nextName())
            let error = folder.withCString { from in new.withCString { cal_rename_noreplace(from, $0) } }
            guard error == 0 else {
                remove(folder)
                continue
            }
            // From now on nobody finds it who knows its old name.
            guard let facts = Facts(new), facts.isRenamed(from: known), FolderRemoval.isEmpty(new) else {
                remove(new)
                continue
            }
            state.withLock { $0.made[new] = facts }
            return new
        }
        return nil
    }

    /// Notes a folder that was made just now.
    func add(_ folder: PathBytes) {
        guard let facts = Facts(folder) else { return }
        state.withLock { $0.made[folder] = facts }
    }

    /// Takes a folder back if it is as it was made.
    ///
    /// - Returns: False when it has to be removed.
    func give(_ folder: PathBytes) -> Bool {
        guard let facts = state.withLock({ $0.made[folder] }) else { return false }
        // The time of change moves by ticks of some milliseconds on older kernels, within which it says nothing.
        guard Facts(folder) == facts, FolderRemoval.isEmpty(folder) else {
            forget(folder)
            return false
        }
        return state.withLock { state in
            guard state.spare.count < Self.most else {
                state.made[folder] = nil
                return false
            }
            state.spare.append(folder)
            return true
        }
    }

    /// Forgets all.
    func clear() { state.withLock { $0 = State() } }

    private func forget(_ folder: PathBytes) { state.withLock { $0.made[folder] = nil } }
}
