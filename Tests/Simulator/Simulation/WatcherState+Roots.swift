import FileEvents
import Glibc
import System
import Watching

extension WatcherState {
    enum CheckReason: Equatable {
        case start, rescan, event, mounted
        case unmounted(PathBytes)
    }

    enum RootState {
        case directory(FileIdentity, PathBytes)
        case missing(nearest: PathBytes, isOther: Bool)
        case denied(errno: Int32)
    }

    /// The indices of active roots, inner roots first.
    var rootOrder: [Int] { innerFirst(roots.indices.filter { !roots[$0].isRetired }) }

    private func innerFirst(_ indices: some Sequence<Int>) -> [Int] {
        indices.sorted { (-roots[$0].path.bytes.count, $0) < (-roots[$1].path.bytes.count, $1) }
    }

    private static func wanted(by scope: WatchScope) -> [Root] {
        var roots: [Root] = []
        for root in scope.roots {
            var index = roots.firstIndex { $0.path == root.path } ?? -1
            if index < 0 {
                roots.append(Root(path: root.path, interval: root.interval))
                index = roots.count - 1
            }
            roots[index].interval = min(roots[index].interval, root.interval)
            if root.backend == .poll { roots[index].wantsPoll = true } else { roots[index].wantsWatch = true }
        }
        return roots
    }

    mutating func makeRoots(_ world: inout WorldState) {
        for root in Self.wanted(by: scope) {
            roots.append(root)
            reportPolling(roots.count - 1)
        }
    }

    /// Reports once that a rule asks for polling.
    private mutating func reportPolling(_ index: Int) {
        let root = roots[index]
        guard root.wantsPoll, !root.isPollingReported else { return }
        roots[index].isPollingReported = true
        output.reports.append(.polling(root.path, .asked, every: root.interval))
    }

    mutating func checkSuspects(_ world: inout WorldState) {
        let checked = suspects
        suspects = []
        for root in innerFirst(checked) { check(root, because: .event, &world) }
    }

    /// Checks whether the root exists and is the same directory, and reacts to a change.
    mutating func check(_ index: Int, because cause: CheckReason, _ world: inout WorldState) {
        guard !roots[index].isRetired else { return }
        let end = follow(index, &world)
        let root = roots[index]
        switch end {
        case .directory(let identity, let physical):
            let isSame = root.presence == .present && !root.isLost && root.identity == identity
            if isSame, cause != .start, cause != .rescan {
                roots[index].physical = physical
                if let directory = root.directory { retry(directory) }
                return
            }
            if !isSame { replace(index, by: (identity, physical), because: cause, &world) }
            guard let directory = roots[index].directory else { return }
            let origin: EventOrigin = cause == .start ? .scan : isSame ? .rescan : .live
            switch cause {
            case .start, .unmounted: break
            default: output.hints.append(Hint(path: root.path, signs: .subtree, origin: origin))
            }
            scans.append(Scan(root: index, origin: origin, visits: [Visit(directory: directory, origin: origin)]))
        case .missing(let nearest, let isOther):
            guard root.presence != .missing else { return }
            if case .unmounted(let point) = cause, root.presence == .present {
                output.reports.append(.unmounted(root.path, point: point))
            }
            drop(index, &world)
            roots[index].presence = .missing
            if isOther { output.reports.append(.failure(.notDirectory(root.path))) }
            output.reports.append(.rootMissing(root.path, watching: nearest))
        case .denied(let errno):
            guard root.presence != .denied, root.presence != .present || !root.isLost else { return }
            if root.presence != .present { roots[index].presence = .denied }
            output.reports.append(.failure(.refused(root.path, errno: errno)))
        }
    }

    private mutating func replace(
        _ index: Int, by found: (FileIdentity, PathBytes), because cause: CheckReason, _ world: inout WorldState
    ) {
        let root = roots[index]
        switch (root.presence, cause) {
        case (.present, .mounted): output.reports.append(.mounted(root.path))
        case (.present, .unmounted(let point)): output.reports.append(.unmounted(root.path, point: point))
        case (.present, _):
            output.reports.append(.rootMissing(root.path, watching: found.1.parent))
            output.reports.append(.rootAppeared(root.path))
        case (.missing, _), (.denied, _): output.reports.append(.rootAppeared(root.path))
        case (.unknown, _): break
        }
        drop(index, &world)
        roots[index].directory = tree.add(WatchedTree.Directory(parent: nil, name: root.path, root: index))
        roots[index].presence = .present
        (roots[index].identity, roots[index].physical) = found
    }

    /// Forgets the tree of a root.
    mutating func drop(_ index: Int, _ world: inout WorldState) {
        roots[index].isLost = false
        roots[index].identity = nil
        roots[index].physical = nil
        guard let directory = roots[index].directory else { return }
        roots[index].directory = nil
        forget(directory, &world)
    }

    /// Follows the path of a root from `/` and watches each directory on the way.
    private mutating func follow(_ index: Int, _ world: inout WorldState) -> RootState {
        var path = PathBytes("/")
        var nearest = path
        var end = RootState.missing(nearest: path, isOther: false)
        var steps: [(watch: Int32, name: PathBytes)] = []
        let names = roots[index].path.bytes.split(separator: .slash)
        loop: for (location, name) in names.enumerated() {
            path = path.appending(name)
            do throws(SystemError) {
                let spot = try world.walk(path, following: .all)
                for step in spot.steps {
                    let watch = world.queue.watch(step.directory, .names)
                    if !steps.contains(where: { $0 == (watch, step.name) }) { steps.append((watch, step.name)) }
                }
                guard let node = spot.node, world.nodes[node].type == .directory else {
                    end = .missing(nearest: nearest, isOther: spot.node != nil && location == names.count - 1)
                    break loop
                }
                nearest = spot.physical
                end = .directory(world.snapshot(node).identity, spot.physical)
            } catch {
                end = error.errno == EACCES ? .denied(errno: EACCES) : .missing(nearest: nearest, isOther: false)
                break loop
            }
        }
        let old = roots[index].steps
        roots[index].steps = steps
        for step in old { release(step.watch, &world) }
        return end
    }

    // MARK: Changing the scope

    mutating func changeScope(_ scope: WatchScope, _ number: Int, _ world: inout WorldState) {
        self.scope = scope
        let wanted = Self.wanted(by: scope)
        for index in rootOrder where !wanted.contains(where: { $0.path == roots[index].path }) {
            roots[index].isRetired = true
            roots[index].isPollingReported = false
            suspects.remove(index)
            let steps = roots[index].steps
            roots[index].steps = []
            for step in steps { release(step.watch, &world) }
        }
        for root in wanted {
            let index = roots.firstIndex { $0.path == root.path } ?? roots.count
            if index < roots.count {
                let wasDropped = roots[index].isRetired && roots[index].directory == nil
                roots[index].isRetired = false
                if wasDropped || !roots[index].isWatchedAs(root) {
                    drop(index, &world)
                    let old = roots[index]
                    roots[index] = root
                    (roots[index].steps, roots[index].isPollingReported) = (old.steps, old.isPollingReported)
                }
            } else {
                roots.append(root)
            }
            reportPolling(index)
        }
        scans = []
        if rescan.isRunning {
            rescan.isRunning = false
            rescan.isWanted = true
        }
        isReady = false
        output.reports.append(.changed(number: number))
        for root in rootOrder { check(root, because: .start, &world) }
    }
}
