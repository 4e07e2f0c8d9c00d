import FileEvents
import Synchronization
package import System

/// A machine's files, its time, and the kernel's queue of events.
///
/// The same seed and the same calls give the same answers. The processes that change it may do everything; the program
/// that looks at it is refused by the mode 000 alone.
package final class World: Sendable {
    let state: Mutex<WorldState>
    /// The directory to which the paths of operations are relative.
    package let base: PathBytes

    /// Makes a world that has nothing but the base directory.
    ///
    /// - Parameters:
    ///   - seed: What sizes, the microseconds that operations take, and delays are drawn from.
    ///   - base: An absolute path.
    ///   - delays: Whether up to 25 ms are between the two halves of a rename, and other events between them.
    package init(seed: UInt64 = 0, base: PathBytes = "/w", delays: Bool = false) {
        self.base = base
        state = Mutex(WorldState(seed: seed, base: base, hasDelays: delays))
    }

    /// Applies one change.
    ///
    /// - Parameters:
    ///   - operation: The change.
    ///   - isHintLost: Whether the kernel's queue is full now: what happens is dropped until it is read.
    /// - Returns: False when it can't be done; then nothing has changed.
    @discardableResult
    package func apply(_ operation: Operation, isHintLost: Bool = false) -> Bool {
        state.withLock { state in
            state.isLosing = isHintLost
            defer { state.isLosing = false }
            guard state.apply(operation) else { return false }
            if isHintLost { state.isOverflowed = true }
            state.tick()
            return true
        }
    }

    /// Applies a change while the program inspects files; one that was to come before is applied at once.
    ///
    /// - Parameters:
    ///   - operation: The change.
    ///   - inspections: The number of inspections by the program before it.
    package func race(_ operation: Operation, afterInspections inspections: Int) {
        state.withLock { state in
            state.endRace()
            state.race = (operation, inspections)
        }
    }

    /// Applies the change that was to come while the program inspects files.
    func endRace() { state.withLock { $0.endRace() } }

    /// The change that is still to come while the program inspects files.
    var race: Operation? { state.withLock { $0.race?.operation } }

    /// How many changes have come while the program inspected files.
    var raceCount: Int { state.withLock { $0.raceCount } }

    // MARK: Time

    package func advance(by duration: Duration) { state.withLock { $0.elapsed += max(.zero, duration) } }

    package var time: Timestamp { state.withLock { $0.now } }

    /// The time since the world began.
    package var elapsed: Duration { state.withLock { $0.elapsed } }

    // MARK: Options

    /// Makes names in the directory, and in those that are made in it from now on, differ by more than case.
    @discardableResult
    package func foldCase(in directory: PathBytes) -> Bool { setOption(directory) { $0.isFoldingCase = true } }

    /// Takes the birth times of what is made below the directory from now on.
    @discardableResult
    package func dropBirthTimes(in directory: PathBytes) -> Bool { setOption(directory) { $0.hasBirth = false } }

    private func setOption(_ directory: PathBytes, _ body: (inout Inode) -> Void) -> Bool {
        state.withLock { state in
            guard let node = state.truth(base.resolving(directory.bytes)), state.nodes[node].type == .directory else {
                return false
            }
            body(&state.nodes[node])
            return true
        }
    }

    /// Where a file system was mounted at any time.
    package var mountedOnce: Set<PathBytes> { state.withLock { $0.mountedOnce } }

    // MARK: Truth

    /// All below a directory that is no directory itself; links are not followed.
    package func files(below root: PathBytes) -> [PathBytes: Snapshot] {
        state.withLock { state in
            var found: [PathBytes: Snapshot] = [:]
            guard let top = state.truth(root) else { return found }
            var rest = [(path: root, node: top)]
            while let (path, node) = rest.popLast() {
                for entry in state.entries(node) {
                    let inner = path.appending(entry.name.bytes)
                    if state.nodes[entry.node].type == .directory {
                        rest.append((inner, entry.node))
                    } else {
                        found[inner] = state.snapshot(entry.node)
                    }
                }
            }
            return found
        }
    }

    /// What is at an absolute path, whatever may be looked at.
    package func snapshot(_ path: PathBytes) -> Snapshot? {
        state.withLock { state in state.truth(path).map { state.snapshot($0) } }
    }

    /// The names in a directory, sorted.
    package func entries(of directory: PathBytes) -> [PathBytes] {
        state.withLock { state in state.truth(directory).map { state.entries($0).map(\.name) } ?? [] }
    }

    /// Which content a file has; each write makes one that no file ever had.
    package func content(_ path: PathBytes) -> Int? {
        state.withLock { state in
            state.truth(path).flatMap { state.nodes[$0].type == .file ? state.nodes[$0].content : nil }
        }
    }

    /// The bytes of a file; nil if it is none.
    func text(_ path: PathBytes) -> [UInt8]? {
        state.withLock { state in
            state.truth(path).flatMap { state.nodes[$0].type == .file ? state.text($0) : nil }
        }
    }

    package func isBeingWritten(_ path: PathBytes) -> Bool {
        state.withLock { state in state.truth(path).map { state.nodes[$0].writers > 0 } ?? false }
    }

    /// Whether events were dropped, of which nothing was read yet.
    var isLosing: Bool { state.withLock { $0.isOverflowed } }

    /// How many events of the kernel wait to be read, also those that can't be read yet.
    package var waitingEvents: Int { state.withLock { $0.events.count } }
}

extension WorldState {
    /// What is at a path, whatever the modes.
    func truth(_ path: PathBytes) -> Int? { (try? walk(path, isPrivileged: true))?.node }
}
