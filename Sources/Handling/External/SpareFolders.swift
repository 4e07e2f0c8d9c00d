import CAlightLinux
import FileEvents
import Glibc
import Synchronization

/// Scratch folders that nobody has touched, for the next attempts.
///
/// Most programs leave theirs as it was, and on the disk of a container making
/// and removing one costs many times as much as looking at it and renaming it.
/// Each attempt gets another name: who was given the name of an earlier one, and
/// writes there late, finds nothing. It is given that name when the earlier attempt
/// ends, since nobody waits then for a program to begin.
final class SpareFolders: Sendable {
    /// What a folder was when it was made, or got its name.
    ///
    /// Whoever adds an entry to it, removes one, or changes its mode, its owner or its attributes gives it another
    /// time of change.
    private struct Facts: Sendable, Equatable {
        private let numbers: [Int]
        private let changed: [Int]

        init?(_ folder: PathBytes) {
            var status = stat()
            guard folder.withCString({ lstat($0, &status) }) == 0 else { return nil }
            self.init(status)
        }

        init?(descriptor: Int32) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { return nil }
            self.init(status)
        }

        private init(_ status: stat) {
            numbers = [
                Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_mode),
                Int(status.st_uid), Int(status.st_gid), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            ]
            changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
        }

        /// Whether it differs in nothing but the time of change, which a rename moves.
        func isRenamed(from other: Facts) -> Bool { numbers == other.numbers }
    }

    private struct State: Sendable {
        /// Of those that attempts have.
        var made: [PathBytes: Facts] = [:]
        var spare: [(folder: PathBytes, facts: Facts)] = []
    }

    private let state = Mutex(State())
    /// More than run at once are needed by nobody.
    private static let most = 64
    private let count = Atomic(0)

    /// The name of the next folder that is made.
    func nextName() -> [UInt8] { Array("\(count.add(1, ordering: .relaxed).newValue)".utf8) }

    /// Takes a folder.
    ///
    /// - Parameter remove: Takes those that are not as they were.
    /// - Returns: One that is; nil when there is none.
    func take(remove: (PathBytes) -> Void) -> PathBytes? {
        while let (folder, known) = state.withLock({ $0.spare.popLast() }) {
            // A process that should have ended may have changed it meanwhile, or somebody has removed it.
            guard let facts = Facts(folder), facts == known else {
                remove(folder)
                continue
            }
            state.withLock { $0.made[folder] = facts }
            return folder
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
    /// - Returns: What has to be removed; nil when it is kept.
    func give(_ folder: PathBytes) -> PathBytes? {
        let made = state.withLock { state in
            let facts = state.made.removeValue(forKey: folder)
            return state.spare.count < Self.most ? facts : nil
        }
        guard let made else { return folder }
        let descriptor = folder.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else { return folder }
        defer { close(descriptor) }
        // Times move by ticks of some milliseconds on older kernels, within which they say nothing: so it is read, too.
        guard Facts(descriptor: descriptor) == made, cal_is_empty_folder(descriptor) != 0 else { return folder }
        let new = folder.parent.appending(nextName())
        guard folder.withCString({ from in new.withCString { cal_rename_noreplace(from, $0) } }) == 0 else {
            return folder
        }
        // From now on nobody finds it who knows its old name. What came since it was read has moved its time.
        guard let facts = Facts(descriptor: descriptor), facts.isRenamed(from: made) else { return new }
        state.withLock { $0.spare.append((new, facts)) }
        return nil
    }

    /// Forgets all.
    func clear() { state.withLock { $0 = State() } }
}
