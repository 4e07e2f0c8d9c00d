import FileEvents
import Glibc
import Synchronization

/// Scratch folders that nobody has touched, for the next attempts.
///
/// Most programs leave theirs as it was, and on the disk of a container making
/// and removing one costs as much as all else of a request.
final class SpareFolders: Sendable {
    /// What a folder was when it was made.
    ///
    /// Whoever adds an entry to it, removes one, or changes its mode, its owner or its attributes gives it another
    /// time of change.
    private struct Facts: Sendable, Equatable {
        private let numbers: [Int]

        init?(_ folder: PathBytes) {
            var status = stat()
            guard folder.withCString({ lstat($0, &status) }) == 0 else { return nil }
            numbers = [
                Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_mode),
                Int(status.st_uid), status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
            ]
        }
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

    /// Takes a folder.
    ///
    /// - Parameter remove: Takes those that are not as they were made.
    /// - Returns: One that is; nil when there is none.
    func take(remove: (PathBytes) -> Void) -> PathBytes? {
        while let (folder, facts) = state.withLock({ state -> (PathBytes, Facts?)? in
            state.spare.popLast().map { ($0, state.made[$0]) }
        }) {
            if let facts, Facts(folder) == facts { return folder }
            // A process that should have ended has changed it meanwhile.
            forget(folder)
            remove(folder)
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
    func give(_ folder: PathBytes, isEmpty: (PathBytes) -> Bool) -> Bool {
        guard let facts = state.withLock({ $0.made[folder] }) else { return false }
        // The time of change moves by ticks of some milliseconds on older kernels, within which it says nothing.
        guard Facts(folder) == facts, isEmpty(folder) else {
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

    /// Gives up all that are spare.
    func takeAll() -> [PathBytes] {
        state.withLock { state in
            defer { state = State() }
            return state.spare
        }
    }

    private func forget(_ folder: PathBytes) { state.withLock { $0.made[folder] = nil } }
}
