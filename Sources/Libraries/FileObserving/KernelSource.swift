import FileEvents
import System
import Watching

/// The source of an observer's hints.
enum Source: Sendable {
    case kernel(Watcher)
    case other(any HintSource)

    /// Starts the source of the options, which fills the queue from now on.
    ///
    /// - Throws: When it can't be started.
    init(_ plan: ObservationPlan, _ queue: HintQueue) throws(ObservationError) {
        if let source = plan.options.source {
            try source.start(roots: plan.roots) { reports in
                queue.add(reports.compactMap(\.hint), reports: reports.compactMap(\.watchReport))
            }
            self = .other(source)
            return
        }
        do throws(WatchError) {
            self = .kernel(try Watcher(scope: plan.scope, queue: queue))
        } catch {
            throw ObservationError(error)
        }
    }

    func rescan() {
        switch self {
        case .kernel(let watcher): watcher.rescan()
        case .other(let source): source.rescan()
        }
    }

    /// Returns once all events that the kernel had queued before the call are hinted; does nothing for other sources.
    func drain() {
        if case .kernel(let watcher) = self { watcher.drain() }
    }

    /// Requests another hint for paths that polling may not know; does nothing for other sources.
    func hintAgain(_ paths: [PathBytes]) {
        if case .kernel(let watcher) = self { watcher.hintAgain(paths) }
    }

    /// Stops the source and releases its resources; blocks until the watcher's thread has exited.
    func stop() {
        switch self {
        case .kernel(let watcher): watcher.stop()
        case .other(let source): source.stop()
        }
    }
}

extension SourceReport {
    fileprivate var hint: Hint? {
        guard case .hint(let hint) = self else { return nil }
        return hint
    }

    fileprivate var watchReport: WatchReport? {
        switch self {
        case .hint: nil
        case .listing(let root, let origin): .listing(root, origin)
        case .listed(let root, let origin): .listed(root, origin)
        case .ready(let folders): .ready(folders: folders)
        case .overflow: .overflow
        case .rescanned: .rescanned
        case .rootMissing(let root): .rootMissing(root, watching: root.parent)
        case .rootAppeared(let root): .rootAppeared(root)
        case .unmounted(let folder): .unmounted(folder, point: folder)
        }
    }
}
