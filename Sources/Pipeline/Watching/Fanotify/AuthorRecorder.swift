package import FileEvents
import Glibc
import Synchronization
package import System

/// Records which processes write, rename and delete in the watched folders, on a thread of its own.
///
/// inotify does not say who did something, and the process may have ended a moment
/// later. So this listens to fanotify(7) and asks `/proc` at once. What it tells is an
/// extra: nothing of the watching depends on it.
///
/// The kernel tells of whole file systems where it can, and of single folders where
/// not; a watcher says which folders matter, see ``WatchScope/recorder``.
package final class AuthorRecorder: Sendable {
    private let core: AuthorRecording
    private let thread: Mutex<WorkerThread?>

    /// Begins to listen.
    ///
    /// - Throws: When the kernel does not tell this process; with EPERM for want of CAP_SYS_ADMIN.
    package convenience init() throws(WatchError) { try self.init(isUnlimited: true, isReading: true) }

    /// Begins to listen, in a way that tests choose.
    ///
    /// - Parameters:
    ///   - isUnlimited: Whether all is kept until it is read.
    ///   - isReading: Whether a thread reads; else only who asks does.
    /// - Throws: As above.
    init(isUnlimited: Bool, isReading: Bool) throws(WatchError) {
        let core = try AuthorRecording(isUnlimited: isUnlimited)
        self.core = core
        thread = Mutex(nil)
        guard isReading else { return }
        guard let started = WorkerThread(name: "alight-authors", body: { core.run() }) else {
            throw .refused("thread", errno: EAGAIN)
        }
        thread.withLock { $0 = started }
    }

    deinit { stop() }

    /// Ends the thread and waits for it; a second call does nothing.
    package func stop() {
        let running = thread.withLock { thread in
            let running = thread
            thread = nil
            return running
        }
        core.stop()
        running?.join()
    }

    /// Who did what the events tell of, in their order.
    ///
    /// All that happened before the call is known to it, however late the thread is.
    package func authors(of events: [Question]) -> [Author] { core.authors(of: events) }

    /// What is asked about one event.
    package struct Question: Sendable {
        package var path: PathBytes
        package var root: PathBytes
        package var kind: EventKind
        /// The facts of the event.
        package var snapshot: Snapshot
        /// Whether the path is a folder that is one unit with all that is in it.
        package var isTree: Bool

        package init(_ event: FileEvent, isTree: Bool) {
            path = event.path
            root = event.root
            kind = event.kind
            snapshot = event.snapshot
            self.isTree = isTree
        }
    }

    /// Listens to an open folder that is about to be watched, if it has to be listened to by itself.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - path: Its path.
    ///   - device: Its file system.
    ///   - isRoot: Whether the tree begins there.
    /// - Returns: Why it can't be listened to, told once for each file system; 0 when it can, or when that has been told.
    func enter(_ folder: Int32, at path: PathBytes, device: UInt64, isRoot: Bool) -> Int32 {
        core.enter(folder, at: path, device: device, isRoot: isRoot)
    }

    /// Whether it is told of whole file systems alone.
    var isWhole: Bool { core.isWhole }

    /// Notes that file systems came or went, so that devices may be others.
    func forgetDevices() { core.forgetDevices() }
}
