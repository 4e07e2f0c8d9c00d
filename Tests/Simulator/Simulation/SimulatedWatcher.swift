import FileEvents
package import FileWatching
import Synchronization
package import System

/// A watcher without a thread that gives the hints of a ``Watcher`` over a world, when it is told to work.
///
/// A program that was killed is another watcher over the same world: there is one queue of the kernel at a time.
package final class SimulatedWatcher: HintProducer {
    private let state: Mutex<WatcherState>
    private let world: World
    private let queue: HintQueue

    package init(world: World, scope: WatchScope, queue: HintQueue) {
        self.world = world
        self.queue = queue
        state = Mutex(WatcherState(scope: scope))
        _ = turn { watcher, world in
            world.watches = [:]
            world.events = []
            world.isOverflowed = false
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
                watcher.finishTours(&world)
                return done
            }
            let taken = (done || !watcher.reports.isEmpty, watcher.hints, watcher.reports)
            watcher.hints = []
            watcher.reports = []
            return taken
        }
        queue.add(hints, reports: reports)
        return done
    }

    package func drain() { drainAll() }

    /// Reads what the kernel tells by now; false when that is nothing.
    @discardableResult package func read() -> Bool { turn { $0.drain(all: false, &$1) } }

    /// Reads all that the kernel has to tell, also what could not be read yet.
    @discardableResult package func drainAll() -> Bool { turn { $0.drain(all: true, &$1) } }

    /// Lists one directory that is due: the one that is named, or the next.
    ///
    /// - Returns: False when there is none.
    @discardableResult package func list(_ directory: PathBytes? = nil) -> Bool { turn { $0.list(directory, &$1) } }

    /// Has all polled directories compared with what was in them, as when their interval has passed.
    package func poll() { state.withLock { $0.beginPolls() } }

    /// Whether there is something to list, or to read by now.
    package var hasWork: Bool {
        state.withLock { watcher in
            guard !watcher.isStopped else { return false }
            return watcher.hasWork
                || world.state.withLock { world in
                    world.isOverflowed || world.mountEdition != watcher.mountEdition
                        || world.events.first.map { $0.readable <= world.elapsed } == true
                }
        }
    }

    package func rescan() { state.withLock { $0.rescan.isWanted = true } }

    package func change(to scope: WatchScope, number: Int) { state.withLock { $0.change = (scope, number) } }

    package func hintAgain(_ paths: [PathBytes]) {
        if !paths.isEmpty { state.withLock { $0.doubts.append((paths, 2)) } }
    }

    package func stop() { state.withLock { $0.isStopped = true } }
}
