import FileEvents
import System
import Watching

extension ObservationPlan {
    /// Starts the source of the options, which fills the queue from now on.
    ///
    /// - Throws: When it can't be started.
    func startSource(_ queue: HintQueue) throws(ObservationError) -> any HintProducer {
        if let source = options.source {
            try source.start(roots: roots) { reports in
                queue.add(reports.compactMap(\.hint), reports: reports.compactMap(\.watchReport))
            }
            return OtherSource(source: source)
        }
        do throws(WatchError) {
            return try Watcher(scope: scope, queue: queue)
        } catch {
            throw ObservationError(error)
        }
    }
}

/// A source that is not the kernel: it has no queue to drain, and its scope is fixed.
private struct OtherSource: HintProducer {
    let source: any HintSource

    func rescan() { source.rescan() }
    func change(to scope: WatchScope, number: Int) {}
    func hintAgain(_ paths: [PathBytes]) {}
    func drain() {}
    func stop() { source.stop() }
}

extension SourceReport {
    fileprivate var hint: Hint? {
        if case .hint(let hint) = self { hint } else { nil }
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
