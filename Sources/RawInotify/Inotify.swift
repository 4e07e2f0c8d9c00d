public import FileEvents
import Synchronization

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// An instance of inotify(7): adds watches, and hands out what the kernel tells, unchanged.
///
/// ```swift
/// let inotify = try Inotify()
/// try inotify.add(path: "/srv/in", mask: [.closeWrite, .movedTo, .onlyDirectory])
/// for try await event in inotify.events {
///     if event.isOverflow { … } else { print(event.mask, event.name) }
/// }
/// ```
///
/// It knows no trees, pairs no moves and asks nothing of the disk. `FileObserver`, of the product `FileObserving`,
/// does all that.
///
/// All methods may be called from any thread. The kernel's queue is the only buffer:
/// what is not read stays there, up to `fs.inotify.max_queued_events`, and then an
/// overflow is told. The descriptors are closed on exec, and with ``close()`` or
/// when the instance and its iterators are gone.
public final class Inotify: Sendable {
    private struct State {
        /// Nil when closed.
        var queue: InotifyQueue?
        /// Made when a task has to wait for the first time.
        var waiters: InotifyWaiters?
    }

    private let state: Mutex<State>

    /// Opens an instance.
    ///
    /// - Throws: When the user has too many instances, or the process too many descriptors.
    public init() throws(InotifyError) {
        let queue = try InotifyQueue()
        state = Mutex(State(queue: queue))
    }

    deinit { close() }

    /// Ends all reading and iterating, and closes the descriptors as soon as no call uses them any more.
    ///
    /// A second call does nothing.
    public func close() {
        let ended = state.withLock { state in
            defer { state = State() }
            return state
        }
        ended.queue?.endWaiting()
        ended.waiters?.end()
    }

    private func open() throws(InotifyError) -> InotifyQueue {
        guard let queue = state.withLock({ $0.queue }) else { throw .closed }
        return queue
    }

    // MARK: Watches

    /// Watches a path.
    ///
    /// A file that has a watch already, under this path or another, keeps its number, and asks for the new mask alone
    /// unless that has ``InotifyMask/maskAdd``.
    ///
    /// - Parameters:
    ///   - path: A folder, to hear of the names in it, or a file.
    ///   - mask: What is to be told.
    /// - Returns: The number by which events name it.
    /// - Throws: When the limit of watches is reached, the path can't be watched, or the instance is closed.
    @discardableResult
    public func add(path: PathBytes, mask: InotifyMask) throws(InotifyError) -> InotifyWatch {
        let queue = try open()
        let result = path.withCString { inotify_add_watch(queue.descriptor, $0, mask.rawValue) }
        let error = errno
        if result >= 0 { return InotifyWatch(rawValue: result) }
        throw error == ENOSPC ? .watchLimit(path, .watches) : .refused(path, errno: error)
    }

    /// Ends a watch.
    ///
    /// What it told before may still come, and then one event with ``InotifyMask/ignored``.
    ///
    /// - Parameter watch: What ``add(path:mask:)`` returned.
    /// - Throws: When there is no such watch, or the instance is closed.
    public func remove(_ watch: InotifyWatch) throws(InotifyError) {
        let queue = try open()
        guard inotify_rm_watch(queue.descriptor, watch.rawValue) == 0 else { throw .unknownWatch(watch) }
    }

    // MARK: Reading

    /// Takes what is in the kernel's queue, and blocks the thread until something is.
    ///
    /// It must not be called on a thread of Swift's pool, unless the limit is zero.
    ///
    /// - Parameter limit: How long to wait; nil to wait for as long as it takes, zero to take only what is there.
    /// - Returns: What one read(2) gave, in the kernel's order; empty when the time was over.
    /// - Throws: When the instance is closed, also while it waits.
    public func read(within limit: Duration? = nil) throws(InotifyError) -> [InotifyEvent] {
        let deadline = limit.map { ContinuousClock.now + $0 }
        while true {
            let queue = try open()
            let events = try queue.take()
            if !events.isEmpty { return events }
            if let deadline, ContinuousClock.now >= deadline { return [] }
            queue.wait(until: deadline)
        }
    }

    /// What the kernel tells, one event after the other.
    ///
    /// All iterators take from the one queue of the instance, so each event goes to one of them.
    public var events: Events { Events(inotify: self) }

    /// The events of an instance.
    public struct Events: AsyncSequence, Sendable {
        public typealias Element = InotifyEvent
        public typealias Failure = InotifyError

        let inotify: Inotify

        public func makeAsyncIterator() -> Iterator { Iterator(inotify: inotify) }

        /// Takes events from the kernel's queue, and holds those of one read(2) at most.
        public struct Iterator: AsyncIteratorProtocol {
            let inotify: Inotify
            private var taken: ArraySlice<InotifyEvent> = []

            init(inotify: Inotify) { self.inotify = inotify }

            /// The next event.
            ///
            /// Suspends, and blocks no thread. When its task is cancelled it returns nil at once, and closes the
            /// instance.
            ///
            /// - Returns: nil when the instance was closed or the task cancelled.
            /// - Throws: When there is no room for the thread that waits, or the queue can't be read.
            public mutating func next() async throws(InotifyError) -> InotifyEvent? {
                try await next(isolation: nil)
            }

            /// The next event, for a caller in the given isolation.
            ///
            /// - Parameter actor: Where the caller runs.
            /// - Returns: nil when the instance was closed or the task cancelled.
            /// - Throws: When there is no room for the thread that waits, or the queue can't be read.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(InotifyError)
                -> InotifyEvent?
            {
                if Task.isCancelled { inotify.close() }
                if inotify.isClosed { return nil }
                if taken.isEmpty { taken = try await inotify.takeWhenThere(isolation: actor)[...] }
                return taken.popFirst()
            }
        }
    }

    private var isClosed: Bool { state.withLock { $0.queue == nil } }

    /// Takes what is in the queue, and suspends until something is; nothing when the instance is closed.
    private func takeWhenThere(isolation: isolated (any Actor)?) async throws(InotifyError) -> [InotifyEvent] {
        while let queue = state.withLock({ $0.queue }) {
            let events = try queue.take()
            if !events.isEmpty { return events }
            guard let waiters = try startedWaiters() else { return [] }
            await withTaskCancellationHandler {
                await waiters.wait(isolation: isolation)
            } onCancel: {
                close()
            }
        }
        return []
    }

    /// What tasks wait with; nil when the instance is closed.
    private func startedWaiters() throws(InotifyError) -> InotifyWaiters? {
        try state.withLock { state throws(InotifyError) in
            if let waiters = state.waiters { return waiters }
            guard let queue = state.queue else { return nil }
            let waiters = try InotifyWaiters(queue)
            state.waiters = waiters
            return waiters
        }
    }
}
