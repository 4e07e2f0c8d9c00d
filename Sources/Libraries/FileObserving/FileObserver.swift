public import FileEvents
import FileWatching
public import System

/// Watches folders and tells what has become of the files in them, once each has come to rest.
///
/// An event is the difference between what was known of a path and what is there
/// now. It comes when the path was quiet for ``ObservationOptions/settle`` and no
/// process can write to it any more.
///
/// ```swift
/// for try await event in try FileObserver(roots: ["/srv/in"]).events {
///     print(event.kind, event.path)
/// }
/// ```
///
/// The watching begins with `init`, on two threads of the observer's own, and ends
/// with ``stop()``, or when the observer and all iterators over it are gone:
/// a sequence that is being iterated keeps its observer. To start again, make a
/// new one.
///
/// **Each iterator has a position of its own** and never waits for another. A slow
/// one makes changes merge by path, so what it holds is bounded by the number of
/// different paths that changed, and nothing is dropped. The first iterator begins
/// where the observer did, a later one with the present.
public final class FileObserver: Sendable {
    private let core: ObservationCore

    /// Begins to watch.
    ///
    /// Returns before the first listing is done: see ``waitUntilReady()``. What
    /// happens from now on is told. What is there already is known in silence, unless
    /// the options ask for it. A root that goes away later is waited for.
    ///
    /// - Parameters:
    ///   - roots: Folders; relative ones from the current folder. Only a root itself may be a symbolic link.
    ///   - options: Which paths, what about them, and when.
    /// - Throws: When a root is no folder or can't be looked at, when a pattern has no meaning, or when the system has
    ///   no room for another descriptor or thread. A root that does not exist is an error only with
    ///   ``MissingRoot/fail``.
    public init(roots: [PathBytes], options: ObservationOptions = ObservationOptions()) throws(ObservationError) {
        let plan = try ObservationPlan(roots: roots, options: options)
        try plan.prepareRoots()
        let core: ObservationCore
        do throws(SystemError) {
            core = try ObservationCore(plan)
        } catch {
            throw ObservationError(.refused("eventfd", errno: error.errno))
        }
        let source = try Source(plan, core.queue)
        let thread = WorkerThread(name: "file-observer") {
            let ending = Self.observe(core, source)
            core.end(ending)
            core.setEnded()
        }
        guard let thread else {
            source.stop()
            throw .noThread
        }
        // Nobody can wait for it in `deinit` without blocking.
        thread.detach()
        self.core = core
    }

    private static func observe(_ core: ObservationCore, _ source: Source) -> Ending {
        var loop = ObservationLoop(core, source)
        return loop.run()
    }

    deinit { core.stop() }

    /// Ends the watching; returns when its threads have ended and all of its descriptors are closed.
    ///
    /// All iterations end; what has gathered for them is not told. A second call does nothing.
    public func stop() async {
        core.stop()
        await core.waitUntilEnded()
    }

    /// Returns when the first listing of all roots is done.
    ///
    /// What happens before is told all the same.
    ///
    /// - Returns: How many folders are watched; 0 when the observer has been stopped.
    /// - Throws: When it turned out that a root can't be watched; then all iterations end with the same error.
    @discardableResult
    public func waitUntilReady() async throws(ObservationError) -> Int { try await core.waitUntilReady().get() }

    /// Compares everything that is known with the disk.
    ///
    /// Returns at once. What differs is told with the origin `rescan`, between
    /// `scan_begin` and `scan_end`. Changes are seen without it, where the kernel
    /// tells of them.
    public func rescan() { core.rescan() }

    /// Returns when all that was hinted before has been looked at, and what is due has been given to the iterators.
    ///
    /// Paths whose quiet time is not over stay where they are. It is meant for tests
    /// that use a ``ManualSource`` and a ``ManualClock``.
    public func catchUp() async { await core.catchUp() }

    /// All that is known now, to be given to another observer as ``ObservationOptions/resuming``.
    ///
    /// What the observer has told, or is about to tell to slow iterators, is in it;
    /// what has not settled is not, and will be found to differ.
    ///
    /// - Returns: What is known; nil when the observer has been stopped.
    public func snapshot() async -> ObservationSnapshot? { await core.snapshot() }

    /// How many iterators are open; the first that may still come counts.
    package var readers: Int { core.readers }

    /// Calls the closure with all that has gathered since its last call, until the observer is stopped; blocks.
    ///
    /// It is ``batches`` for a thread of one's own. A program that uses no tasks besides is not woken once a second
    /// while nothing happens, as the threads of Swift's tasks are on Linux.
    ///
    /// - Parameter body: Is called on the calling thread, in order, never with an empty array.
    /// - Throws: When a root turned out not to be watchable; then nothing follows.
    public func forEachBatch(_ body: ([FileEvent]) -> Void) throws(ObservationError) {
        let position = Position(self, existing: nil)
        while let batch = try position.take() { body(batch) }
    }

    // MARK: Sequences

    /// What happens, one event after the other.
    ///
    /// The first iterator over ``events`` or ``batches`` begins where the observer
    /// did. Others begin with the present; with ``ObservationOptions/existing`` they
    /// are told first what is known.
    public var events: Events { Events(observer: self, existing: nil) }

    /// What happens from the present on, for one more consumer.
    ///
    /// - Parameter existing: Whether it is told first what is known: `scan_begin`, `created` with the origin `scan` for
    ///   each path, folders before what is in them, and `scan_end`.
    /// - Returns: The events, one after the other.
    public func events(existing: Bool) -> Events { Events(observer: self, existing: existing) }

    /// What happens, in arrays of all that has gathered since the last one.
    ///
    /// The order is that of ``events``, and so is where it begins. An array is never empty.
    public var batches: Batches { Batches(observer: self) }

    /// The events of an observer, one after the other; iterate it as often as you like.
    public struct Events: AsyncSequence, Sendable {
        public typealias Element = FileEvent
        public typealias Failure = ObservationError

        let observer: FileObserver
        let existing: Bool?

        public func makeAsyncIterator() -> Iterator { Iterator(Position(observer, existing: existing)) }

        /// A position in the events; it is given up when the iterator goes out of scope.
        public struct Iterator: AsyncIteratorProtocol {
            private let position: Position

            init(_ position: Position) { self.position = position }

            /// The next event.
            ///
            /// Suspends, and blocks no thread. When its task is cancelled it returns nil at once.
            ///
            /// - Returns: nil when the observer was stopped or the task cancelled.
            /// - Throws: When a root turned out not to be watchable; then nothing follows.
            public mutating func next() async throws(ObservationError) -> FileEvent? {
                try await next(isolation: nil)
            }

            /// The next event, for a caller in the given isolation.
            ///
            /// - Parameter actor: Where the caller runs.
            /// - Returns: nil when the observer was stopped or the task cancelled.
            /// - Throws: When a root turned out not to be watchable; then nothing follows.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(ObservationError)
                -> FileEvent?
            {
                try await position.take(all: false, isolation: actor)?.first
            }
        }
    }

    /// The events of an observer in arrays; iterate it as often as you like.
    public struct Batches: AsyncSequence, Sendable {
        public typealias Element = [FileEvent]
        public typealias Failure = ObservationError

        let observer: FileObserver

        public func makeAsyncIterator() -> Iterator { Iterator(Position(observer, existing: nil)) }

        /// A position in the events; it is given up when the iterator goes out of scope.
        public struct Iterator: AsyncIteratorProtocol {
            private let position: Position

            init(_ position: Position) { self.position = position }

            /// All that has gathered since the last call; waits for one event at least.
            ///
            /// - Returns: nil when the observer was stopped or the task cancelled.
            /// - Throws: When a root turned out not to be watchable; then nothing follows.
            public mutating func next() async throws(ObservationError) -> [FileEvent]? {
                try await next(isolation: nil)
            }

            /// All that has gathered since the last call, for a caller in the given isolation.
            ///
            /// - Parameter actor: Where the caller runs.
            /// - Returns: nil when the observer was stopped or the task cancelled.
            /// - Throws: When a root turned out not to be watchable; then nothing follows.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(ObservationError) -> [FileEvent]? {
                try await position.take(all: true, isolation: actor)
            }
        }
    }

    /// What an iterator holds: it keeps the observer, and gives its place up at the end.
    final class Position: Sendable {
        private let observer: FileObserver
        private let consumer: Consumer

        init(_ observer: FileObserver, existing: Bool?) {
            self.observer = observer
            consumer = observer.core.subscribe(existing: existing)
        }

        deinit { observer.core.unsubscribe(consumer) }

        func take(all: Bool, isolation actor: isolated (any Actor)?) async throws(ObservationError) -> [FileEvent]? {
            while !Task.isCancelled {
                switch consumer.step(takingAll: all) {
                case .events(let events): return events
                case .ended(.finished): return nil
                case .ended(.failed(let error)): throw error
                case .empty: await consumer.wait(isolation: actor)
                }
            }
            return nil
        }

        /// All that has gathered; blocks until there is something, nil at the end.
        func take() throws(ObservationError) -> [FileEvent]? {
            while true {
                switch consumer.step(takingAll: true) {
                case .events(let events): return events
                case .ended(.finished): return nil
                case .ended(.failed(let error)): throw error
                case .empty: consumer.wait()
                }
            }
        }
    }
}

/// Observes folders for the time of a closure.
///
/// Returns when the observer has ended and all of its descriptors are closed.
///
/// - Parameters:
///   - roots: Folders; relative ones from the current folder.
///   - options: Which paths, what about them, and when.
///   - actor: Where the caller runs, and so the closure.
///   - body: Iterates over the observer's events; the observer must not be used after it.
/// - Returns: What the closure returns.
/// - Throws: What the closure throws, or an ``ObservationError`` when the observation can't begin.
@discardableResult
public func withObservation<Result>(
    roots: [PathBytes], options: ObservationOptions = ObservationOptions(),
    isolation actor: isolated (any Actor)? = #isolation, _ body: (FileObserver) async throws -> sending Result
) async throws -> sending Result {
    let observer = try FileObserver(roots: roots, options: options)
    do {
        let result = try await body(observer)
        await observer.stop()
        return result
    } catch {
        await observer.stop()
        throw error
    }
}
