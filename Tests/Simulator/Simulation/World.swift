import Synchronization
package import System

/// The files of a machine, its time and the kernel's event queue.
///
/// The same seed and the same calls give the same results. The processes that change the world have all permissions;
/// only mode 000 denies access to the program that reads it.
package final class World: Sendable {
    let state: Mutex<WorldState>
    /// The directory to which the paths of operations are relative.
    package let base: PathBytes

    /// Creates a world that contains only the base directory.
    ///
    /// - Parameters:
    ///   - seed: The seed for sizes, delays and the microseconds that operations take.
    ///   - base: An absolute path.
    ///   - delays: Whether up to 25 ms, and other events, may separate the two halves of a rename.
    package init(seed: UInt64 = 0, base: PathBytes = "/w", delays: Bool = false) {
        self.base = base
        state = Mutex(WorldState(seed: seed, base: base, hasDelays: delays))
    }

    /// Applies a change.
    ///
    /// - Parameters:
    ///   - operation: The change.
    ///   - isHintLost: Whether the kernel's queue is full, so that events are dropped until it is read.
    /// - Returns: False if the change is not possible; then nothing has changed.
    @discardableResult
    package func apply(_ operation: Operation, isHintLost: Bool = false) -> Bool {
        state.withLock { state in
            state.queue.isLosing = isHintLost
            defer { state.queue.isLosing = false }
            guard state.apply(operation) else { return false }
            if isHintLost { state.queue.isOverflowed = true }
            state.tick()
            return true
        }
    }

    /// Applies a change while the program inspects files; an earlier pending change is applied at once.
    ///
    /// - Parameters:
    ///   - operation: The change.
    ///   - inspections: The number of inspections by the program before the change.
    package func race(_ operation: Operation, afterInspections inspections: Int) {
        state.withLock { state in
            state.endRace()
            state.race.pending = (operation, inspections)
        }
    }

    /// Applies the pending change.
    func endRace() { state.withLock { $0.endRace() } }

    /// The change that is pending while the program inspects files.
    var race: Operation? { state.withLock { $0.race.pending?.operation } }

    /// The number of inspections of files by the program.
    package var inspections: Int { state.withLock { $0.inspections } }

    /// Returns the number of times that the program has read the metadata of a name, in whatever directory.
    package func looks(at name: PathBytes) -> Int { state.withLock { $0.looks[name, default: 0] } }

    /// The number of changes applied while the program inspected files.
    var raceCount: Int { state.withLock { $0.race.count } }

    /// The number of changes so far.
    var changes: Int { state.withLock { $0.changes } }

    // MARK: Time

    package func advance(by duration: Duration) { state.withLock { $0.elapsed += max(.zero, duration) } }

    package var time: Timestamp { state.withLock { $0.now } }

    /// The time since the world was created.
    package var elapsed: Duration { state.withLock { $0.elapsed } }

    // MARK: Options

    /// Makes names in the directory, and in directories created in it later, case-insensitive.
    @discardableResult
    package func foldCase(in directory: PathBytes) -> Bool { setOption(directory) { $0.isFoldingCase = true } }

    /// Omits the birth times of files created below the directory from now on.
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

    /// The paths at which a file system was mounted at any time.
    package var mountedOnce: Set<PathBytes> { state.withLock { $0.mountedOnce } }

    // MARK: Actual state

    /// Returns everything below a directory that is not a directory itself; links are not followed.
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

    /// Returns the metadata at an absolute path, whatever the permissions.
    package func snapshot(_ path: PathBytes) -> Snapshot? {
        state.withLock { state in state.truth(path).map { state.snapshot($0) } }
    }

    /// Returns the names in a directory, sorted.
    package func entries(of directory: PathBytes) -> [PathBytes] {
        state.withLock { state in state.truth(directory).map { state.entries($0).map(\.name) } ?? [] }
    }

    /// Returns the content of a file as a number; each write creates a new one.
    package func content(_ path: PathBytes) -> Int? {
        state.withLock { state in
            state.truth(path).flatMap { state.nodes[$0].type == .file ? state.nodes[$0].content : nil }
        }
    }

    /// Returns the bytes of a file; nil if the path is not a regular file.
    func text(_ path: PathBytes) -> [UInt8]? {
        state.withLock { state in
            state.truth(path).flatMap { state.nodes[$0].type == .file ? state.text($0) : nil }
        }
    }

    package func isBeingWritten(_ path: PathBytes) -> Bool {
        state.withLock { state in state.truth(path).map { state.nodes[$0].writers > 0 } ?? false }
    }

    /// Whether events were dropped and the queue has not been read since.
    var isLosing: Bool { state.withLock { $0.queue.isOverflowed } }

    /// The number of events in the kernel's queue, including those that are not readable yet.
    package var waitingEvents: Int { state.withLock { $0.queue.events.count } }

    /// Returns a path relative to the base directory, as operations use it.
    func name(of path: PathBytes) -> PathBytes { path.relative(to: base).map { PathBytes($0) } ?? path }

    /// Returns the files below a directory with their contents.
    func tree(_ directory: PathBytes) -> [PathBytes: Int] {
        let files = files(below: directory).keys.compactMap { path in
            content(path).flatMap { content in path.relative(to: directory).map { (PathBytes($0), content) } }
        }
        return Dictionary(files) { one, _ in one }
    }

    /// Returns the text of a file under any of its names.
    func text(of file: FileIdentity) -> [UInt8]? {
        files(below: base).filter { $0.value.identity == file }.keys.min().flatMap { text($0) }
    }
}
