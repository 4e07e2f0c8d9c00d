package import FileEvents
import Glibc
import Synchronization
package import System

/// Watches directory trees on its own thread and fills a queue with hints.
///
/// A directory that appears is watched first and listed afterwards, so that nothing
/// in it is missed however fast it is filled; duplicate hints merge in the queue.
/// Symbolic links are not followed, except that a root may be one. A missing root
/// is watched for. Where the kernel does not report every change, and where no
/// watch is available, directories are polled.
package final class Watcher: HintProducer {
    private let control: Control
    private let queue: HintQueue
    private let thread: Mutex<WorkerThread?>

    /// The requests of other threads for the next turn of the watcher's thread.
    struct Requests {
        var isStopped = false
        var isRescanWanted = false
        var doubts: [DoubtedPaths] = []
        var change: (scope: WatchScope, number: Int)?
        var surveys: [Request<WatchStatus>] = []
        /// Requests to read the kernel queue.
        var drains: [Request<Void>] = []
    }

    /// The state that the watcher's thread shares with other threads.
    final class Control: Sendable {
        private let requests = Mutex(Requests())
        /// The inotify descriptor; negative while there is none.
        private let inotify = Atomic<Int32>(-1)
        /// Whether all events that were read have been hinted.
        private let isIdle = Atomic<Bool>(false)
        let waker: Waker

        init() throws(SystemError) { waker = try Waker() }

        var isStopped: Bool { requests.withLock { $0.isStopped } }

        /// Changes the pending requests and wakes the watcher's thread.
        func request(_ change: (inout Requests) -> Void) {
            requests.withLock { change(&$0) }
            waker.wake()
        }

        func takeRequests() -> Requests {
            requests.withLock { requests in
                defer { requests = Requests(isStopped: requests.isStopped) }
                return requests
            }
        }

        func setInotify(_ descriptor: Int32) { inotify.store(descriptor, ordering: .releasing) }

        func setIdle(_ isIdle: Bool) { self.isIdle.store(isIdle, ordering: .sequentiallyConsistent) }

        /// Whether no event is in the kernel queue, or was read but not hinted yet.
        var isDrained: Bool {
            let descriptor = inotify.load(ordering: .acquiring)
            guard descriptor >= 0 else { return true }
            var bytes: Int32 = 0
            // In this order: an event that is no longer in the queue was read by a thread that was not idle.
            guard ioctl(descriptor, UInt(FIONREAD), &bytes) == 0, bytes == 0 else { return false }
            return isIdle.load(ordering: .sequentiallyConsistent)
        }
    }

    /// Starts the thread, which opens the inotify instance.
    ///
    /// The initial listing adds hints with the origin `scan`, then the report `ready`.
    /// A queue has one watcher at a time.
    ///
    /// - Throws: When no descriptor or thread is available. Later errors are reported; without an inotify instance
    ///   everything is polled.
    package init(scope: WatchScope, queue: HintQueue) throws(WatchError) {
        let control = try WatchError.opening("eventfd") { () throws(SystemError) in try Control() }
        self.control = control
        self.queue = queue
        // Weak, since the queue may live longer and would keep the descriptor open.
        queue.setWhenEmptied { [weak control] in control?.waker.wake() }
        let started = WorkerThread(name: "alight-watch") {
            WatchLoop(scope: scope, queue: queue, control: control).run()
        }
        guard let started else { throw .refused("thread", errno: EAGAIN) }
        thread = Mutex(started)
    }

    /// Lists all roots again and hints everything found; the last report is `rescanned`.
    package func rescan() { control.request { $0.isRescanWanted = true } }

    /// Switches to another scope; directories in both scopes keep their watches.
    ///
    /// When the change takes effect, the watcher reports `changed` with the number.
    /// Then it proceeds as at the start: all roots are listed, with the origin `scan`,
    /// and the last report is `ready`. Changes during that time are hinted as usual. Of
    /// two calls in quick succession, the first may never take effect.
    package func change(to scope: WatchScope, number: Int) { control.request { $0.change = (scope, number) } }

    /// Hints the paths once more, after all polled directories have been polled again.
    ///
    /// For paths that existed when a caller checked them, but perhaps not at the last
    /// poll: if they vanish before the next poll, polling finds no difference.
    package func hintAgain(_ doubt: DoubtedPaths) {
        if !doubt.paths.isEmpty { control.request { $0.doubts.append(doubt) } }
    }

    /// Returns once all events that the kernel had queued before the call are hinted.
    ///
    /// When the watcher is idle, that takes one system call; otherwise the thread reads the queue first.
    package func drain() {
        guard !control.isDrained, !control.isStopped else { return }
        let drain = Request<Void>()
        control.request { $0.drains.append(drain) }
        // For at most a second, since the thread may be blocked by a file system.
        drain.wait(until: .now + .seconds(1))
    }

    /// Requests the status from the watcher's thread and waits for it.
    ///
    /// The cost is proportional to the number of directories if they have changed since the last survey.
    ///
    /// - Parameter limit: The timeout; the thread may be listing on a slow file system.
    /// - Returns: The status; nil after the timeout.
    package func survey(within limit: Duration) -> WatchStatus? {
        let survey = Request<WatchStatus>()
        control.request { $0.surveys.append(survey) }
        return survey.wait(until: .now + limit)
    }

    /// Stops the thread and waits for it.
    ///
    /// A second call does nothing.
    package func stop() {
        let running = thread.withLock { $0.take() }
        control.request { $0.isStopped = true }
        running?.join()
        if running != nil { queue.setWhenEmptied(nil) }
    }

    deinit { stop() }
}

/// The paths of a request to hint them again.
package struct DoubtedPaths: Sendable {
    package var paths: [PathBytes]
    /// The number of the request, which its hints carry.
    package var request: UInt32

    package init(_ paths: [PathBytes], request: UInt32) { (self.paths, self.request) = (paths, request) }

    package var hints: [Hint] {
        paths.map { path in
            var hint = Hint(path: path, signs: .polled, origin: .poll)
            hint.request = request
            return hint
        }
    }
}

/// A source of hints for the queue: a ``Watcher``, or a simulated one.
package protocol HintProducer: Sendable {
    /// Lists all roots again and hints everything found; the last report is `rescanned`.
    func rescan()

    /// Switches to another scope; see ``Watcher/change(to:number:)``.
    func change(to scope: WatchScope, number: Int)

    /// Hints the paths once more, after all polled directories have been polled again.
    func hintAgain(_ doubt: DoubtedPaths)

    /// Returns once all events that the kernel had queued before the call are hinted.
    func drain()

    /// Stops the producer; a second call does nothing.
    func stop()
}
