package import FileEvents
import Glibc
import Synchronization
import System

/// Records which processes write, rename and delete in the watched directories, on its own thread.
///
/// inotify(7) does not report which process caused an event, and that process may
/// exit shortly afterwards. The recorder therefore reads fanotify(7) events and
/// queries `/proc` at once. Its results are additional information: watching does
/// not depend on them.
///
/// Whole file systems are marked where the kernel supports it, single directories
/// elsewhere. A watcher registers the directories that matter, see
/// ``WatchScope/recorder``.
package final class WriterRecorder: Sendable {
    let recording: WriterRecording
    private let thread: Mutex<WorkerThread?>

    /// Opens the fanotify group and starts the thread.
    ///
    /// - Throws: When the kernel refuses a group to this process; EPERM means that it lacks CAP_SYS_ADMIN.
    package convenience init() throws(WatchError) { try self.init(isUnlimited: true, isReading: true) }

    /// Creates a recorder with options for tests.
    ///
    /// - Parameters:
    ///   - isUnlimited: Whether the kernel queue is unlimited.
    ///   - isReading: Whether a thread reads the queue; otherwise only ``writer(of:isTree:)`` reads it.
    /// - Throws: The same errors as `init()`.
    init(isUnlimited: Bool, isReading: Bool) throws(WatchError) {
        let recording = try WriterRecording(isUnlimited: isUnlimited)
        self.recording = recording
        thread = Mutex(nil)
        guard isReading else { return }
        guard let started = WorkerThread(name: "alight-writers", body: { recording.run() }) else {
            throw .refused("thread", errno: EAGAIN)
        }
        thread.withLock { $0 = started }
    }

    deinit { stop() }

    /// Stops the thread and waits for it; a second call does nothing.
    package func stop() {
        let running = thread.withLock { $0.take() }
        recording.stop()
        running?.join()
    }

    /// Returns the process behind an event.
    ///
    /// Everything that happened before the call is taken into account, even if the thread is behind.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - isTree: Whether the path is a directory that is handled as one unit with its contents.
    /// - Returns: The process, or the reason why it is unknown.
    package func writer(of event: FileEvent, isTree: Bool) -> Writer { recording.writer(of: event, isTree: isTree) }
}
