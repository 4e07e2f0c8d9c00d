public import FileEvents
public import System
import Watching

/// Watches directories and reports changes to the files in them, once each file has settled.
///
/// An event is the difference between the known state of a path and its current one.
/// It is delivered when the path was quiet for ``ObservationOptions/settle`` and no
/// process can write to it any more.
///
/// ```swift
/// for try await event in try FileObserver(roots: ["/srv/in"]).events {
///     print(event.kind, event.path)
/// }
/// ```
///
/// Watching starts with `init`, on two threads of the observer, and stops with
/// ``stop()``, or when the observer and all its iterators are deallocated: a sequence
/// that is being iterated retains its observer. To start again, create a new
/// observer.
///
/// **Each iterator has its own position** and never waits for another. With a slow
/// iterator, changes merge by path, so its memory is bounded by the number of
/// different paths that changed, and nothing is dropped. The first iterator starts
/// where the observer started, later ones start at the current time.
public final class FileObserver: Sendable {
    private let core: ObservationCore

    /// Starts watching.
    ///
    /// Returns before the initial listing is done: see ``waitUntilReady()``. Changes
    /// from now on are reported. Existing files are recorded without events, unless the
    /// options ask for events. If a root vanishes later, the observer waits for it.
    ///
    /// - Parameters:
    ///   - roots: Directories; relative paths are relative to the current directory. Only a root itself may be a
    ///     symbolic link.
    ///   - options: The paths to observe, the events to report, and their timing.
    /// - Throws: When a root is not a directory or can't be read, when a pattern is invalid, or when no descriptor or
    ///   thread is available. A missing root is an error only with `MissingRoot.fail`.
    public init(roots: [PathBytes], options: ObservationOptions = ObservationOptions()) throws(ObservationError) {
        let plan = try ObservationPlan(roots: roots, options: options)
        try plan.prepareRoots()
        let core = ObservationCore(plan)
        let source = try plan.startSource(core.queue)
        let thread = WorkerThread(name: "file-observer") {
            var loop = ObservationLoop(core, source)
            core.end(loop.run())
            core.setEnded()
        }
        guard let thread else {
            source.stop()
            throw .noThread
        }
        // `deinit` can't wait for the thread without blocking.
        thread.detach()
        self.core = core
    }

    deinit { core.stop() }

    /// Stops watching; returns when the observer's threads have exited and all of its descriptors are closed.
    ///
    /// All iterations finish; events that were collected for them are discarded. A second call does nothing.
    public func stop() async {
        core.stop()
        await core.waitUntilEnded()
    }

    /// Stops watching, like ``stop()``, but returns at once.
    package func stopWithoutWaiting() { core.stop() }

    /// Returns when the initial listing of all roots is done.
    ///
    /// Changes before that are reported too.
    ///
    /// - Returns: The number of watched directories; 0 when the observer has been stopped.
    /// - Throws: When a root can't be watched; all iterations then finish with the same error.
    @discardableResult
    public func waitUntilReady() async throws(ObservationError) -> Int { try await core.waitUntilReady().get() }

    /// Compares all known paths with the file system.
    ///
    /// Returns at once. Differences are reported with the origin `rescan`, between
    /// `scan_begin` and `scan_end`. Where the kernel reports every change, a rescan is
    /// not necessary.
    public func rescan() { core.rescan() }

    /// Returns when all previous hints have been processed, and due events have been delivered to the iterators.
    ///
    /// Paths whose quiet time is not over stay in the queue. Intended for tests
    /// that use a ``ManualSource`` and a ``ManualClock``.
    public func catchUp() async { await core.catchUp() }

    /// Returns the known state of all paths, for ``ObservationOptions/resuming`` of another observer.
    ///
    /// It includes everything that the observer has reported, or has yet to deliver to
    /// slow iterators. Paths that have not settled are not included, and will be
    /// reported as different.
    ///
    /// - Returns: The snapshot; nil when the observer has been stopped.
    public func snapshot() async -> ObservationSnapshot? { await core.snapshot() }

    /// The number of open iterators; the first one counts even if it does not exist yet.
    package var readers: Int { core.readers }

    /// Calls the closure with all events since its last call, until the observer is stopped; blocks.
    ///
    /// This is ``batches`` for a thread of the caller. A program without tasks is not woken once per second while
    /// nothing happens, as the threads of Swift's tasks are on Linux.
    ///
    /// - Parameter body: Called on the calling thread, in order, never with an empty array.
    /// - Throws: When a root can't be watched; there are no further events then.
    public func forEachBatch(_ body: ([FileEvent]) -> Void) throws(ObservationError) {
        let position = Position(self, existing: nil)
        while let batch = try position.take() { body(batch) }
    }

    // MARK: Sequences

    /// The events, one at a time.
    ///
    /// The first iterator over ``events`` or ``batches`` starts where the observer
    /// started. Others start at the current time; with ``ObservationOptions/existing``
    /// they receive the known state first.
    public var events: Events { Events(observer: self, existing: nil) }

    /// Returns the events from the current time on, for one more consumer.
    ///
    /// - Parameter existing: Whether it receives the known state first: `scan_begin`, `created` with the origin `scan`
    ///   for each path, directories before their contents, and `scan_end`.
    /// - Returns: The events, one at a time.
    public func events(existing: Bool) -> Events { Events(observer: self, existing: existing) }

    /// The events, in arrays of all events since the last array.
    ///
    /// Order and start are those of ``events``. An array is never empty.
    public var batches: Batches { Batches(observer: self) }

    /// The events of an observer, one at a time; can be iterated any number of times.
    public struct Events: AsyncSequence, Sendable {
        public typealias Element = FileEvent
        public typealias Failure = ObservationError

        let observer: FileObserver
        let existing: Bool?

        public func makeAsyncIterator() -> Iterator { Iterator(Position(observer, existing: existing)) }

        /// A position in the events; it is released when the iterator goes out of scope.
        public struct Iterator: AsyncIteratorProtocol {
            private let position: Position

            init(_ position: Position) { self.position = position }

            /// Returns the next event, for a caller in the given isolation.
            ///
            /// Suspends without blocking a thread. If its task is cancelled, it returns nil at once.
            ///
            /// - Parameter actor: The isolation of the caller.
            /// - Returns: The event; nil when the observer was stopped or the task cancelled.
            /// - Throws: When a root can't be watched; there are no further events then.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(ObservationError)
                -> FileEvent?
            { try await position.take(all: false, isolation: actor)?.first }
        }
    }

    /// The events of an observer in arrays; can be iterated any number of times.
    public struct Batches: AsyncSequence, Sendable {
        public typealias Element = [FileEvent]
        public typealias Failure = ObservationError

        let observer: FileObserver

        public func makeAsyncIterator() -> Iterator { Iterator(Position(observer, existing: nil)) }

        /// A position in the events; it is released when the iterator goes out of scope.
        public struct Iterator: AsyncIteratorProtocol {
            private let position: Position

            init(_ position: Position) { self.position = position }

            /// Returns all events since the last call, for a caller in the given isolation; waits for at least one
            /// event.
            ///
            /// - Parameter actor: The isolation of the caller.
            /// - Returns: The events; nil when the observer was stopped or the task cancelled.
            /// - Throws: When a root can't be watched; there are no further events then.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(ObservationError) -> [FileEvent]? { try await position.take(all: true, isolation: actor) }
        }
    }

    /// The state of an iterator: it retains the observer, and unsubscribes when it is deallocated.
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
                if let events = try consumer.take(all: all) { return events.isEmpty ? nil : events }
                await consumer.wait(isolation: actor)
            }
            return nil
        }

        /// Returns all collected events; blocks until there is one, and returns nil at the end.
        func take() throws(ObservationError) -> [FileEvent]? {
            while true {
                if let events = try consumer.take(all: true) { return events.isEmpty ? nil : events }
                consumer.wait()
            }
        }
    }
}

/// Observes directories while a closure runs.
///
/// Returns when the observer has stopped and all of its descriptors are closed.
///
/// - Parameters:
///   - roots: Directories; relative paths are relative to the current directory.
///   - options: The paths to observe, the events to report, and their timing.
///   - actor: The isolation of the caller, and of the closure.
///   - body: Iterates over the observer's events; the observer must not be used after it.
/// - Returns: The result of the closure.
/// - Throws: The closure's error, or an ``ObservationError`` when the observation can't start.
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
