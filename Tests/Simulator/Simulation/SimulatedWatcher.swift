import FileEvents
import Synchronization
package import System
package import Watching

/// A watcher without a thread that produces the hints of a ``Watcher`` for a world, on request.
///
/// After a kill, the program uses another watcher of the same world; there is one kernel queue at a time.
package final class SimulatedWatcher: HintProducer {
    private let state: Mutex<WatcherState>
    private let world: World
    let queue: HintQueue

    package init(world: World, scope: WatchScope, queue: HintQueue) {
        self.world = world
        self.queue = queue
        state = Mutex(WatcherState(scope: scope))
        _ = turn { watcher, world in
            world.queue.watches = [:]
            world.queue.events = []
            world.queue.isOverflowed = false
            watcher.start(&world)
            return true
        }
    }

    private func turn(_ body: (inout WatcherState, inout WorldState) -> Bool) -> Bool {
        let (done, hints, reports) = state.withLock { watcher -> (Bool, [Hint], [WatchReport]) in
            guard !watcher.isStopped else { return (false, [], []) }
            let done = world.state.withLock { world in
                watcher.takeRequests(&world)
                let done = body(&watcher, &world)
                watcher.finishScans(&world)
                if world.isDeaf { watcher.output.hints.removeAll { !$0.signs.contains(.appeared) } }
                return done
            }
            defer { watcher.output = ([], []) }
            return (done || !watcher.output.reports.isEmpty, watcher.output.hints, watcher.output.reports)
        }
        queue.add(hints, reports: reports)
        return done
    }

    package func drain() { drainAll() }

    /// Reads the events that are readable now.
    ///
    /// Returns false if there are none.
    @discardableResult package func read() -> Bool { turn { $0.drain(all: false, &$1) } }

    /// Reads all events, including those that are not readable yet.
    @discardableResult package func drainAll() -> Bool { turn { $0.drain(all: true, &$1) } }

    /// Lists one directory that is due: the given one, or the next.
    ///
    /// - Returns: False if there is none.
    @discardableResult package func list(_ directory: PathBytes? = nil) -> Bool { turn { $0.list(directory, &$1) } }

    /// Compares all polled directories with their last state, as when their interval has passed.
    package func poll() { state.withLock { $0.beginPolls() } }

    /// Whether there is a directory to list or an event to read.
    package var hasWork: Bool {
        state.withLock { watcher in
            guard !watcher.isStopped else { return false }
            return watcher.hasWork
                || world.state.withLock { world in
                    world.queue.isOverflowed || world.mountEdition != watcher.mounts.edition
                        || world.queue.events.first.map { $0.readable <= world.elapsed } == true
                }
        }
    }

    package func rescan() { state.withLock { $0.rescan.isWanted = true } }

    package func change(to scope: WatchScope, number: Int) { state.withLock { $0.change = (scope, number) } }

    package func hintAgain(_ doubt: DoubtedPaths) {
        if !doubt.paths.isEmpty { state.withLock { $0.doubts.append((doubt, 2)) } }
    }

    package func stop() { state.withLock { $0.isStopped = true } }
}
