import FileEvents
import Glibc
import System
import Watching

/// The state of a simulated watcher, with the same parts as the loop of the real one.
struct WatcherState {
    struct Root {
        enum Presence { case unknown, present, missing, denied }

        let path: PathBytes
        var wantsWatch = false
        var wantsPoll = false
        var interval: Duration
        var presence = Presence.unknown
        var directory: Int?
        var identity: FileIdentity?
        var physical: PathBytes?
        var isLost = false
        var isRetired = false
        var isPollingReported = false
        var steps: [(watch: Int32, name: PathBytes)] = []

        func isWatchedAs(_ other: Root) -> Bool {
            wantsWatch == other.wantsWatch && wantsPoll == other.wantsPoll && interval == other.interval
        }
    }

    struct Visit {
        var directory: Int
        var origin: EventOrigin
    }

    struct Scan {
        var root: Int
        var origin: EventOrigin
        var visits: [Visit]
        var hasStarted = false
    }

    enum Poll {
        case directory(Int)
        /// The end of a round.
        case end
    }

    var scope: WatchScope
    var tree = WatchedTree()
    var directoriesByWatch: [Int32: [Int]] = [:]
    var roots: [Root] = []
    var suspects: Set<Int> = []
    var scans: [Scan] = []
    var visits: [Visit] = []
    var polls: [Poll] = []
    var doubts: [(doubt: DoubtedPaths, turns: Int)] = []
    var change: (scope: WatchScope, number: Int)?
    var rescan = (isWanted: false, isRunning: false, isOverflow: false)
    var isReady = false
    var isStopped = false
    var mounts: (edition: Int, points: [UInt64: PathBytes]) = (0, [:])
    /// The hints and reports that the queue has not received yet.
    var output: (hints: [Hint], reports: [WatchReport]) = ([], [])

    init(scope: WatchScope) {
        self.scope = scope
        // Here, any name may be that of a companion.
        output.reports.append(.companions)
    }

    var hasWork: Bool {
        !visits.isEmpty || !scans.isEmpty || !polls.isEmpty || !suspects.isEmpty || rescan.isWanted || !isReady
            || change != nil
    }

    // MARK: The tree

    mutating func setWatch(_ watch: Int32?, of directory: Int, _ world: inout WorldState) {
        let old = tree[directory]?.watch
        guard old != watch else { return }
        tree[directory]?.watch = watch
        if let watch { directoriesByWatch[watch, default: []].append(directory) }
        guard let old else { return }
        directoriesByWatch[old]?.removeAll { $0 == directory }
        release(old, &world)
    }

    func release(_ watch: Int32, _ world: inout WorldState) {
        guard directoriesByWatch[watch, default: []].isEmpty else { return }
        guard !roots.contains(where: { $0.steps.contains { $0.watch == watch } }) else { return }
        world.queue.removeWatch(watch)
    }

    /// Forgets a directory and everything below it.
    ///
    /// Returns whether any of it was polled.
    @discardableResult
    mutating func forget(_ directory: Int, keepingItself: Bool = false, _ world: inout WorldState) -> Bool {
        guard let known = tree[directory] else { return false }
        var wasPolled = false
        for child in known.children.values.sorted() where forget(child, &world) { wasPolled = true }
        if keepingItself { return wasPolled }
        setWatch(nil, of: directory, &world)
        if let parent = known.parent { tree[parent]?.children[known.name] = nil }
        tree[directory] = nil
        return wasPolled || known.isPolled
    }

    mutating func lose(_ directory: Int, _ world: inout WorldState) {
        let path = tree.path(of: directory)
        let wasListed = tree[directory]?.isListed == true
        if forget(directory, &world) || !wasListed {
            output.hints.append(Hint(path: path, signs: .subtree, origin: .live))
        }
    }

    mutating func retry(_ directory: Int, origin: EventOrigin = .live) {
        visits += tree.failed(in: directory).map { Visit(directory: $0, origin: origin) }
    }

    func isEntered(_ path: PathBytes, _ root: Int) -> Bool {
        guard scope.reaches(path) else { return false }
        guard let other = roots.first(where: { $0.path == path && !$0.isRetired }) else { return true }
        return !other.isWatchedAs(roots[root])
    }

    /// Opens a directory for listing.
    func open(_ path: PathBytes, _ root: Int, _ world: WorldState) throws(SystemError) -> Int {
        let top = try world.directory(roots[root].path, following: .all)
        let relative = PathBytes(path.relative(to: roots[root].path) ?? [])
        let node = relative.bytes.isEmpty ? top : try world.directory(relative, from: top, following: .none)
        guard world.nodes[node].mode & 0o444 != 0 else { throw SystemError(errno: EACCES) }
        return node
    }

    func kinds(_ path: PathBytes) -> KernelEvent.Kinds {
        guard scope.canMatch(path) else { return .names }
        return [.names, .closeWrite, .modify, scope.isRaw ? .raw : []]
    }

    // MARK: Work

    mutating func start(_ world: inout WorldState) {
        mounts = (world.mountEdition, world.mounts)
        makeRoots(&world)
        for root in rootOrder { check(root, because: .start, &world) }
    }

    mutating func takeRequests(_ world: inout WorldState) {
        guard let wanted = change else { return }
        change = nil
        changeScope(wanted.scope, wanted.number, &world)
    }

    mutating func list(_ path: PathBytes?, _ world: inout WorldState) -> Bool {
        checkSuspects(&world)
        if let path { return list(named: path, &world) }
        if let visit = visits.popLast() {
            begin(visit, isScan: false, &world)
            return true
        }
        if !polls.isEmpty {
            poll(polls.removeFirst(), &world)
            return true
        }
        guard !scans.isEmpty else { return rescan.isWanted }
        beginScan()
        if let visit = scans[0].visits.popLast() { begin(visit, isScan: true, &world) }
        return true
    }

    private mutating func list(named path: PathBytes, _ world: inout WorldState) -> Bool {
        if let index = visits.firstIndex(where: { tree.path(of: $0.directory) == path }) {
            begin(visits.remove(at: index), isScan: false, &world)
            return true
        }
        let due = polls.firstIndex { poll in
            if case .directory(let index) = poll { tree.path(of: index) == path } else { false }
        }
        if let due {
            poll(polls.remove(at: due), &world)
            return true
        }
        guard let index = scans.first?.visits.firstIndex(where: { tree.path(of: $0.directory) == path }) else {
            return false
        }
        beginScan()
        begin(scans[0].visits.remove(at: index), isScan: true, &world)
        return true
    }

    private mutating func beginScan() {
        if !scans[0].hasStarted { output.reports.append(.listing(roots[scans[0].root].path, scans[0].origin)) }
        scans[0].hasStarted = true
    }

    /// Finishes scans when no directory is left to be listed.
    mutating func finishScans(_ world: inout WorldState) {
        while let scan = scans.first, scan.hasStarted, scan.visits.isEmpty, visits.isEmpty {
            output.reports.append(.listed(roots[scan.root].path, scan.origin))
            scans.removeFirst()
        }
        guard scans.isEmpty, suspects.isEmpty else { return }
        if !isReady {
            isReady = true
            for index in roots.indices where roots[index].isRetired { drop(index, &world) }
            output.reports.append(.ready(directories: tree.directories.values.count { !$0.isFailed }))
        }
        if rescan.isRunning {
            rescan.isRunning = false
            if !rescan.isWanted { rescan.isOverflow = false }
            output.reports.append(.rescanned)
        }
        if rescan.isWanted {
            rescan.isWanted = false
            rescan.isRunning = true
            for root in rootOrder { check(root, because: .rescan, &world) }
        }
    }

    // MARK: Events

    mutating func drain(all: Bool, _ world: inout WorldState) -> Bool {
        let events = world.queue.takeEvents(all: all)
        let isRemounted = compareMounts(&world)
        for event in events { handle(event, &world) }
        let hadSuspects = !suspects.isEmpty
        checkSuspects(&world)
        return !events.isEmpty || isRemounted || hadSuspects
    }

    private mutating func handle(_ event: KernelEvent, _ world: inout WorldState) {
        if event.has(.overflow) {
            rescan.isWanted = true
            output.reports.append(rescan.isOverflow ? .overflowAgain : .overflow)
            rescan.isOverflow = true
            return
        }
        // The mount table has already shown the unmount.
        if event.has(.unmount) { return }
        if event.has(.ignored) {
            ended(event.watch, &world)
            return
        }
        guard let name = event.name else {
            handleDirectoryItself(event)
            return
        }
        if event.has([.create, .movedTo, .movedFrom, .delete, .attrib]) {
            for index in roots.indices where roots[index].steps.contains(where: { $0 == (event.watch, name) }) {
                suspects.insert(index)
            }
        }
        for directory in directoriesByWatch[event.watch] ?? [] where tree[directory] != nil {
            handle(event, name, in: directory, &world)
        }
    }

    private mutating func suspect(_ watch: Int32) {
        for index in roots.indices where roots[index].steps.contains(where: { $0.watch == watch }) {
            suspects.insert(index)
        }
    }

    private mutating func ended(_ watch: Int32, _ world: inout WorldState) {
        suspect(watch)
        for directory in directoriesByWatch[watch] ?? [] {
            guard let known = tree[directory] else { continue }
            if known.parent == nil {
                setWatch(nil, of: directory, &world)
                roots[known.root].isLost = true
                suspects.insert(known.root)
            } else {
                lose(directory, &world)
            }
        }
    }

    private mutating func handleDirectoryItself(_ event: KernelEvent) {
        if event.has([.moveSelf, .deleteSelf]) { suspect(event.watch) }
        guard event.has([.moveSelf, .attrib]) else { return }
        for directory in directoriesByWatch[event.watch] ?? [] {
            if let known = tree[directory], known.parent == nil { suspects.insert(known.root) }
        }
    }

    private mutating func handle(
        _ event: KernelEvent, _ name: PathBytes, in directory: Int, _ world: inout WorldState
    ) {
        let path = tree.path(of: directory).appending(name.bytes)
        var signs: Hint.Signs = []
        if event.has([.create, .movedTo]) { signs.insert(.appeared) }
        if event.has([.delete, .movedFrom]) { signs.insert(.vanished) }
        if event.has([.movedFrom, .movedTo]) { signs.insert(.moved) }
        if event.has(.modify) { signs.insert(.written) }
        if event.has(.closeWrite) { signs.insert(.closed) }
        if event.has(.attrib) { signs.insert(.attributes) }
        if event.isDirectory {
            handleDirectory(event, name, in: directory, path, &world)
            if event.has(.movedFrom), scope.reaches(path) { signs.insert(.subtree) }
        } else {
            if event.has(.open) { signs.insert(.opened) }
            if event.has(.access) { signs.insert(.accessed) }
            if event.has(.closeNoWrite) { signs.insert(.closedUnwritten) }
        }
        guard !signs.isEmpty, scope.takes(path) || signs.contains(.subtree) else { return }
        output.hints.append(Hint(path: path, signs: signs, origin: .live))
    }

    private mutating func handleDirectory(
        _ event: KernelEvent, _ name: PathBytes, in directory: Int, _ path: PathBytes, _ world: inout WorldState
    ) {
        guard let index = tree[directory]?.root, isEntered(path, index) else { return }
        let child = tree[directory]?.children[name]
        if event.has([.delete, .movedFrom]) {
            if let child { lose(child, &world) }
            do throws(SystemError) {
                _ = try open(path, index, world)
            } catch {
                if [ENOENT, ENOTDIR, ELOOP].contains(error.errno) { return }
            }
            visits.append(Visit(directory: tree.enter(directory, name), origin: .live))
        } else if event.has([.create, .movedTo]) {
            if let child, let watch = tree[child]?.watch, let node = try? open(path, index, world),
                watch == world.queue.watch(node, kinds(path))
            {
                return
            }
            if let child { lose(child, &world) }
            visits.append(Visit(directory: tree.enter(directory, name), origin: .live))
        } else if event.has(.attrib) {
            if let child { return retry(child) }
            visits.append(Visit(directory: tree.enter(directory, name), origin: .live))
        }
    }

    // MARK: Mounts

    /// Checks which file systems were mounted or unmounted.
    ///
    /// Returns false if there is no change.
    private mutating func compareMounts(_ world: inout WorldState) -> Bool {
        guard mounts.edition != world.mountEdition else { return false }
        let (old, new) = (mounts.points, world.mounts)
        mounts = (world.mountEdition, new)
        for id in old.keys.sorted() where new[id] == nil { remount(old[id] ?? "/", isMounted: false, &world) }
        for id in new.keys.sorted() where old[id] == nil { remount(new[id] ?? "/", isMounted: true, &world) }
        return true
    }

    private mutating func remount(_ point: PathBytes, isMounted: Bool, _ world: inout WorldState) {
        for index in rootOrder {
            guard let physical = roots[index].physical, let top = roots[index].directory, !physical.isInside(point),
                let relative = point.relative(to: physical)
            else {
                if roots[index].physical != roots[index].path || roots[index].path.isInside(point) {
                    check(index, because: isMounted ? .mounted : .unmounted(point), &world)
                }
                continue
            }
            var directory: Int? = top
            for name in relative.split(separator: .slash) {
                directory = directory.flatMap { tree[$0]?.children[PathBytes(name)] }
            }
            if let directory { remount(directory: directory, isMounted: isMounted, &world) }
        }
    }

    private mutating func remount(directory: Int, isMounted: Bool, _ world: inout WorldState) {
        let path = tree.path(of: directory)
        output.reports.append(isMounted ? .mounted(path) : .unmounted(path, point: path))
        tree[directory]?.memory = nil
        forget(directory, keepingItself: true, &world)
        setWatch(nil, of: directory, &world)
        tree[directory]?.isFailed = false
        output.hints.append(Hint(path: path, signs: isMounted ? .subtree : .listed, origin: .live))
        visits.append(Visit(directory: directory, origin: .live))
    }
}
