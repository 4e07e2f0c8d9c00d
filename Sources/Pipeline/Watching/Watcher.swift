import FileEvents
import Glibc
import Synchronization
package import System

/// Watches folder trees on a thread of its own and fills a queue with hints.
///
/// Folders that appear are watched first and listed then, so that nothing in
/// them is missed however fast they are filled; what is seen twice merges in the
/// queue. Symbolic links are not followed, except that a root may be one.
/// A root that does not exist is waited for. Where the kernel does not tell of
/// everything, and where it has no watch left, folders are polled.
package final class Watcher: HintProducer {
    private let control: Control
    private let queue: HintQueue
    private let thread: Mutex<WorkerThread?>

    /// What other threads may ask of the watcher's thread.
    final class Control: Sendable {
        private let stopRequested = Atomic<Bool>(false)
        private let rescanRequested = Atomic<Bool>(false)
        private let doubted = Mutex<[PathBytes]>([])
        private let change = Mutex<(scope: WatchScope, number: Int)?>(nil)
        private let surveys = Mutex<[Survey]>([])
        private let drains = Mutex<[Drain]>([])
        /// The kernel's queue; negative while there is none.
        private let inotify = Atomic<Int32>(-1)
        /// Whether all events that were read are hinted.
        private let isIdle = Atomic<Bool>(false)
        let waker: Waker

        init() throws(SystemError) { waker = try Waker() }

        var isStopped: Bool { stopRequested.load(ordering: .acquiring) }

        func stop() {
            stopRequested.store(true, ordering: .releasing)
            waker.wake()
        }

        func rescan() {
            rescanRequested.store(true, ordering: .releasing)
            waker.wake()
        }

        func doubt(_ paths: [PathBytes]) {
            doubted.withLock { $0 += paths }
            waker.wake()
        }

        func takeDoubted() -> [PathBytes] {
            doubted.withLock { doubted in
                let taken = doubted
                doubted = []
                return taken
            }
        }

        func change(to scope: WatchScope, number: Int) {
            change.withLock { $0 = (scope, number) }
            waker.wake()
        }

        func takeChange() -> (scope: WatchScope, number: Int)? {
            change.withLock { change in
                let taken = change
                change = nil
                return taken
            }
        }

        func ask(_ survey: Survey) {
            surveys.withLock { $0.append(survey) }
            waker.wake()
        }

        func takeSurveys() -> [Survey] {
            surveys.withLock { surveys in
                let taken = surveys
                surveys = []
                return taken
            }
        }

        func setInotify(_ descriptor: Int32) { inotify.store(descriptor, ordering: .releasing) }

        func setIdle(_ isIdle: Bool) { self.isIdle.store(isIdle, ordering: .sequentiallyConsistent) }

        /// Whether no event waits in the kernel's queue or has been read and not been hinted.
        var isDrained: Bool {
            let descriptor = inotify.load(ordering: .acquiring)
            guard descriptor >= 0 else { return true }
            var bytes: Int32 = 0
            // In this order: an event that is no longer in the queue was read by a thread that was not idle.
            guard ioctl(descriptor, UInt(FIONREAD), &bytes) == 0, bytes == 0 else { return false }
            return isIdle.load(ordering: .sequentiallyConsistent)
        }

        func ask(_ drain: Drain) {
            drains.withLock { $0.append(drain) }
            waker.wake()
        }

        func takeDrains() -> [Drain] {
            drains.withLock { drains in
                let taken = drains
                drains = []
                return taken
            }
        }

        func takeRescan() -> Bool { rescanRequested.exchange(false, ordering: .acquiringAndReleasing) }
    }

    /// A question how it stands, and the answer.
    final class Survey: Sendable {
        private let answer = Mutex<WatchStatus?>(nil)
        private let done: Wake

        init() throws(SystemError) { done = try Wake() }

        func end(_ status: WatchStatus) {
            answer.withLock { $0 = status }
            done.signal()
        }

        func wait(until deadline: ContinuousClock.Instant) -> WatchStatus? {
            done.wait(until: deadline)
            return answer.withLock { $0 }
        }
    }

    /// A request to read the kernel's queue, and the sign that it is done.
    final class Drain: Sendable {
        private let done: Wake

        init() throws(SystemError) { done = try Wake() }

        func end() { done.signal() }

        /// Waits, but not for a thread that a file system holds up.
        func wait() { done.wait(until: .now + .seconds(1)) }
    }

    /// Starts the thread, which opens the kernel's queue.
    ///
    /// The first listing is told as hints with the origin `scan`, then as the report `ready`.
    /// A queue has one watcher at a time.
    ///
    /// - Throws: When there is no descriptor or thread to be had. Everything later comes as a report; without an
    ///   inotify instance everything is polled.
    package init(scope: WatchScope, queue: HintQueue) throws(WatchError) {
        let control: Control
        do throws(SystemError) {
            control = try Control()
        } catch {
            throw .refused("eventfd", errno: error.errno)
        }
        self.control = control
        self.queue = queue
        // Weak, since the queue may live longer and would keep the descriptor open.
        queue.setWhenRoom { [weak control] in control?.waker.wake() }
        let started = WorkerThread(name: "alight-watch") {
            WatchLoop(scope: scope, queue: queue, control: control).run()
        }
        guard let started else { throw .refused("thread", errno: EAGAIN) }
        thread = Mutex(started)
    }

    func ask(_ survey: Survey) { control.ask(survey) }

    /// Lists all roots again and hints everything found; ends with the report `rescanned`.
    package func rescan() { control.rescan() }

    /// Watches another scope from now on; what both scopes ask for keeps its watches.
    ///
    /// When the watcher has taken it, it reports `changed` with the number, and then
    /// does as at its start: all roots are listed, with the origin `scan`, and the
    /// last report of that is `ready`. What happens meanwhile is hinted as ever. Of two calls that come close
    /// together the first may never be taken.
    package func change(to scope: WatchScope, number: Int) { control.change(to: scope, number: number) }

    /// Hints the paths once more, when all that is polled has been looked at anew.
    ///
    /// For paths that were there when somebody looked, but perhaps not at the last
    /// poll: if they go before the next one, polling finds no difference.
    package func hintAgain(_ paths: [PathBytes]) {
        if !paths.isEmpty { control.doubt(paths) }
    }

    /// Returns once all events are hinted that the kernel had queued before the call.
    ///
    /// At rest that takes one system call; otherwise the thread reads the queue first.
    package func drain() {
        guard !control.isDrained, !control.isStopped, let drain = try? Drain() else { return }
        control.ask(drain)
        drain.wait()
    }

    /// Ends the thread and waits for it.
    ///
    /// A second call does nothing.
    package func stop() {
        let running = thread.withLock { thread in
            let running = thread
            thread = nil
            return running
        }
        control.stop()
        running?.join()
        if running != nil { queue.setWhenRoom(nil) }
    }

    deinit { stop() }
}

/// What fills the queue of hints: a ``Watcher``, or a simulated one.
package protocol HintProducer: Sendable {
    /// Lists all roots again and hints everything found; ends with the report `rescanned`.
    func rescan()

    /// Watches another scope from now on; see ``Watcher/change(to:number:)``.
    func change(to scope: WatchScope, number: Int)

    /// Hints the paths once more, when all that is polled has been checked again.
    func hintAgain(_ paths: [PathBytes])

    /// Returns once all events are hinted that the kernel had queued before the call.
    func drain()

    /// Ends it; a second call does nothing.
    func stop()
}
