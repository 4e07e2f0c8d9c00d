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
    /// - Parameters:
    ///   - isUnlimited: Whether the kernel queue is unlimited; false in tests.
    ///   - isReading: Whether a thread reads the queue; otherwise, in tests, only ``writer(of:isTree:)`` reads it.
    /// - Throws: When the kernel refuses a group to this process; EPERM means that it lacks CAP_SYS_ADMIN.
    package init(isUnlimited: Bool = true, isReading: Bool = true) throws(WatchError) {
        let recording = try WriterRecording(isUnlimited: isUnlimited)
        let started = isReading ? WorkerThread(name: "alight-writers", body: { recording.run() }) : nil
        if isReading, started == nil { throw .refused("thread", errno: EAGAIN) }
        self.recording = recording
        thread = Mutex(started)
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
