import CAlightLinux
import FileEvents
import Glibc
import Synchronization
import System

/// The state shared by the recorder's thread and its callers.
final class WriterRecording: Sendable {
    /// The way a file system is marked.
    private enum Marking {
        case whole, byDirectory, not
    }

    private struct State {
        let group: FanotifyGroup
        var markings: [UInt64: Marking] = [:]
        var directories = RecordedDirectories()
        var table = WriterTable()
        /// The time of the last queue overflow; earlier events may be missing.
        var overflow: Timestamp?
    }

    private let state: Mutex<State>
    private let descriptor: Int32
    private let waker: Waker

    init(isUnlimited: Bool) throws(WatchError) {
        let group = try WatchError.opening("fanotify") { () throws(SystemError) in
            try FanotifyGroup(isUnlimited: isUnlimited)
        }
        waker = try WatchError.opening("eventfd") { () throws(SystemError) in try Waker() }
        descriptor = group.descriptor
        state = Mutex(State(group: group))
    }

    func stop() { waker.wake() }

    func run() {
        // A process that writes a small file exits a tenth of a millisecond later. If this is refused, more of them
        // have exited.
        _ = cal_hurry_thread()
        var descriptors = [
            pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            _ = cal_poll(&descriptors, 2, -1)
            if descriptors[0].revents != 0 { return }
            // Not until the queue is empty: a caller may be waiting for the lock.
            _ = state.withLock { Self.read(&$0) }
        }
    }

    // MARK: Listening

    /// Marks an open directory that is about to be watched, unless its whole file system is marked.
    ///
    /// - Parameters:
    ///   - reader: The directory.
    ///   - path: Its path.
    ///   - isRoot: Whether it is the root of the tree.
    /// - Returns: The errno if it can't be marked, reported once per file system; 0 on success or if already reported.
    func enter(_ reader: DirectoryReader, at path: PathBytes, isRoot: Bool) -> Int32 {
        let (directory, device) = (reader.file, reader.device)
        return state.withLock { state in
            if let marking = state.markings[device] {
                if marking == .whole, isRoot { _ = state.directories.add(directory, at: path) }
                if marking == .byDirectory { _ = state.group.mark(directory, isFileSystem: false) }
                return 0
            }
            // overlayfs, among others, supports marks of directories only. And where directories can't be opened by
            // their handles, events of a whole file system could not be filtered.
            var error = state.group.mark(directory, isFileSystem: true)
            if error == 0, state.directories.add(directory, at: path) {
                state.markings[device] = .whole
                return 0
            }
            if error == 0 { state.group.unmarkFileSystem(of: directory) }
            error = state.group.mark(directory, isFileSystem: false)
            // Without a key of its own, the directory could not be recognized in events.
            if error == 0, !state.directories.addMarked(directory) { error = EOPNOTSUPP }
            state.markings[device] = error == 0 ? .byDirectory : .not
            return error
        }
    }

    /// Whether only whole file systems are marked.
    var isWhole: Bool { state.withLock { $0.markings.values.allSatisfy { $0 == .whole } } }

    /// Forgets the devices after a mount or unmount, since their numbers may have been reused.
    func forgetDevices() { state.withLock { $0.markings = [:] } }

    // MARK: Reading

    /// Reads one buffer of the queue; returns whether there may be more.
    private static func read(_ state: inout State) -> Bool {
        // The time after the buffer was read, so that no event in it is later.
        var time: Timestamp?
        // A process that causes many events is queried once per buffer.
        var last: WritingProcess?
        let group = state.group
        return group.read { event in
            let now = time ?? DiskProbe.now()
            time = now
            if event.is_overflow != 0 {
                state.table.removeAll()
                state.overflow = now
                return
            }
            if event.is_directory_move != 0 { state.directories.forgetResults() }
            let directory = event.directory
            // The whole file system is marked: most of its events are discarded here.
            guard state.directories.contains(directory) else { return }
            if last?.pid != event.pid { last = event.pid > 0 ? WritingProcess(of: event.pid) : nil }
            state.table.record(event.changes, to: event.entryName, in: directory, by: last, at: now)
        }
    }

    // MARK: Queries

    func writer(of event: FileEvent, isTree: Bool) -> Writer {
        state.withLock { state in
            // Bounded, since other processes may cause events indefinitely.
            var chunks = 0
            while chunks < 1_000, Self.read(&state) { chunks += 1 }
            return Self.writer(of: event, isTree: isTree, state)
        }
    }

    private static func writer(of event: FileEvent, isTree: Bool, _ state: borrowing State) -> Writer {
        let changes = WriterChanges(for: event.kind)
        guard !changes.isEmpty else { return .notAsked }
        let snapshot = event.snapshot
        var change: WriterChange?
        if let directory = key(of: event.path.parent, below: event.root) {
            change = state.table.change(changes, to: event.path.lastComponent, in: directory)
        }
        if isTree, changes == .content {
            let inner = state.table.lastDeed(in: directories(inside: event.path, below: event.root))
            if let inner, change.map({ $0.number < inner.number }) ?? true { change = inner }
        }
        // If the file shows a later change, another process made it. Content times can be set to any value.
        let latest = changes == .content ? min(snapshot.modified, snapshot.changed) : snapshot.changed
        // This check does not apply to a directory with its contents, or to a file that is still being written.
        if let change, isTree || event.kind == .arriving || latest <= change.time {
            return change.process.map { .process($0) } ?? .unknown(.unseen)
        }
        return .unknown(state.overflow.map { latest <= $0 } ?? false ? .overflow : .unseen)
    }

    private static func key(of directory: PathBytes, below root: PathBytes) -> DirectoryKey? {
        // The path of an event may be its root.
        let top = directory.isInside(root) ? root : directory
        guard let reader = try? DirectoryReader(directory, below: top) else { return nil }
        return DirectoryKey(of: reader.file)
    }

    /// Returns the keys of a directory and of all directories below it.
    private static func directories(inside path: PathBytes, below root: PathBytes) -> Set<DirectoryKey> {
        var found: Set<DirectoryKey> = []
        let top = path.isInside(root) ? root : path
        var rest = [path]
        while let directory = rest.popLast() {
            guard let reader = try? DirectoryReader(directory, below: top) else { continue }
            if let key = DirectoryKey(of: reader.file) { found.insert(key) }
            try? reader.forEach { if reader.isDirectory($0) { rest.append(directory.appending($0.name)) } }
        }
        return found
    }
}

extension WritingProcess {
    /// Reads the attributes of a process now; it may have exited, in which case they are nil.
    fileprivate init(of pid: Int32) {
        self.init(pid: pid)
        withUnsafeTemporaryAllocation(of: cal_process.self, capacity: 1) { buffer in
            guard let process = buffer.baseAddress else { return }
            cal_read_process(pid, process)
            let raw = UnsafeRawPointer(process)
            func bytes(_ field: PartialKeyPath<cal_process>, _ length: Int64) -> [UInt8]? {
                guard length > 0, let offset = MemoryLayout<cal_process>.offset(of: field) else { return nil }
                return Array(UnsafeRawBufferPointer(start: raw + offset, count: Int(length)))
            }
            name = bytes(\.name, process.pointee.name_length).map { PathBytes($0) }
            executable = bytes(\.executable, process.pointee.executable_length).map { bytes in
                // The kernel appends this to the path of an executable that has been replaced since the process
                // started.
                let mark = Array(" (deleted)".utf8)
                return PathBytes(bytes.suffix(mark.count).elementsEqual(mark) ? bytes.dropLast(mark.count) : bytes[...])
            }
            if process.pointee.has_user != 0 { uid = process.pointee.user }
        }
    }
}
