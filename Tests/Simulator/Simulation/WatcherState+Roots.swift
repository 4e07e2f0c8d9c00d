import FileEvents
import Glibc
import System
import Watching

extension WatcherState {
    enum Cause: Equatable {
        case start, rescan, event, mounted
        case unmounted(PathBytes)
    }

    enum End {
        case folder(FileIdentity, PathBytes)
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
            tellAsked(root)
        }
    }

    private mutating func tellAsked(_ root: Root) {
        guard root.wantsPoll, toldPolling.insert(root.path).inserted else { return }
        reports.append(.polling(root.path, .asked, every: root.interval))
    }

    mutating func checkSuspects(_ world: inout WorldState) {
        let checked = suspects
        suspects = []
        for root in innerFirst(checked) { check(root, because: .event, &world) }
    }

    /// Checks whether the root exists and is the same directory, and reacts to a change.
    mutating func check(_ index: Int, because cause: Cause, _ world: inout WorldState) {
        guard !roots[index].isRetired else { return }
        let end = follow(index, &world)
        let root = roots[index]
        switch end {
        case .folder(let identity, let physical):
            let isSame = root.presence == .present && !root.isLost && root.identity == identity
            if isSame, cause != .start, cause != .rescan {
                roots[index].physical = physical
                if let folder = root.folder { retry(folder) }
                return
            }
            if !isSame { replace(index, by: (identity, physical), because: cause, &world) }
            guard let folder = roots[index].folder else { return }
            let origin: EventOrigin = cause == .start ? .scan : isSame ? .rescan : .live
            switch cause {
            case .start, .unmounted: break
            default: hints.append(Hint(path: root.path, signs: .subtree, origin: origin))
            }
            tours.append(Scan(root: index, origin: origin, visits: [Visit(folder: folder, origin: origin)]))
        case .missing(let nearest, let isOther):
            guard root.presence != .missing else { return }
            if case .unmounted(let point) = cause, root.presence == .present {
                reports.append(.unmounted(root.path, point: point))
            }
            drop(index, &world)
            roots[index].presence = .missing
            if isOther { reports.append(.failure(.notFolder(root.path))) }
            reports.append(.rootMissing(root.path, watching: nearest))
        case .denied(let errno):
            guard root.presence != .denied, root.presence != .present || !root.isLost else { return }
            if root.presence != .present { roots[index].presence = .denied }
            reports.append(.failure(.refused(root.path, errno: errno)))
        }
    }

    private mutating func replace(
        _ index: Int, by found: (FileIdentity, PathBytes), because cause: Cause, _ world: inout WorldState
    ) {
        let root = roots[index]
        switch (root.presence, cause) {
        case (.present, .mounted): reports.append(.mounted(root.path))
        case (.present, .unmounted(let point)): reports.append(.unmounted(root.path, point: point))
        case (.present, _):
            reports.append(.rootMissing(root.path, watching: found.1.parent))
            reports.append(.rootAppeared(root.path))
        case (.missing, _), (.denied, _): reports.append(.rootAppeared(root.path))
        case (.unknown, _): break
        }
        drop(index, &world)
        nextFolder += 1
        folders[nextFolder] = Folder(parent: nil, name: root.path, root: index)
        roots[index].folder = nextFolder
        roots[index].presence = .present
        (roots[index].identity, roots[index].physical) = found
    }

    /// Forgets the tree of a root.
    mutating func drop(_ index: Int, _ world: inout WorldState) {
        roots[index].isLost = false
        roots[index].identity = nil
        roots[index].physical = nil
        guard let folder = roots[index].folder else { return }
        roots[index].folder = nil
        forget(folder, &world)
    }

    /// Follows the path of a root from `/` and watches each directory on the way.
    private mutating func follow(_ index: Int, _ world: inout WorldState) -> End {
        var path = PathBytes("/")
        var nearest = path
        var end = End.missing(nearest: path, isOther: false)
        var steps: [(watch: Int32, name: PathBytes)] = []
        let names = roots[index].path.bytes.split(separator: .slash)
        loop: for (place, name) in names.enumerated() {
            path = path.appending(name)
            do throws(SystemError) {
                let spot = try world.walk(path, following: .all)
                for step in spot.steps {
                    let watch = world.queue.watch(step.directory, .names)
                    if !steps.contains(where: { $0 == (watch, step.name) }) { steps.append((watch, step.name)) }
                }
                guard let node = spot.node, world.nodes[node].type == .directory else {
                    end = .missing(nearest: nearest, isOther: spot.node != nil && place == names.count - 1)
                    break loop
                }
                nearest = spot.physical
                end = .folder(world.snapshot(node).identity, spot.physical)
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
            toldPolling.remove(roots[index].path)
            suspects.remove(index)
            let steps = roots[index].steps
            roots[index].steps = []
            for step in steps { release(step.watch, &world) }
        }
        for root in wanted {
            if let index = roots.firstIndex(where: { $0.path == root.path }) {
                let wasDropped = roots[index].isRetired && roots[index].folder == nil
                roots[index].isRetired = false
                if wasDropped || !roots[index].isWatchedAs(root) {
                    drop(index, &world)
                    let steps = roots[index].steps
                    roots[index] = root
                    roots[index].steps = steps
                }
            } else {
                roots.append(root)
            }
            tellAsked(root)
        }
        tours = []
        if rescan.isRunning {
            rescan.isRunning = false
            rescan.isWanted = true
        }
        isReady = false
        reports.append(.changed(number: number))
        for root in rootOrder { check(root, because: .start, &world) }
    }
}
