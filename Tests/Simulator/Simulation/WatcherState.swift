import FileEvents
import Glibc
import System
import Watching

/// The state of a simulated watcher, with the same parts as the loop of the real one.
struct WatcherState {
    struct Folder {
        let parent: Int?
        let name: PathBytes
        let root: Int
        var children: [PathBytes: Int] = [:]
        var watch: Int32?
        var volume = -1
        var isPolled = false
        var isListed = false
        var isFailed = false
        var isSeen = false
        var memory: [PathBytes: Snapshot]?
    }

    struct Root {
        enum Presence { case unknown, present, missing, denied }

        let path: PathBytes
        var wantsWatch = false
        var wantsPoll = false
        var interval: Duration
        var presence = Presence.unknown
        var folder: Int?
        var identity: FileIdentity?
        var physical: PathBytes?
        var isLost = false
        var isRetired = false
        var steps: [(watch: Int32, name: PathBytes)] = []

        func isWatchedAs(_ other: Root) -> Bool {
            wantsWatch == other.wantsWatch && wantsPoll == other.wantsPoll && interval == other.interval
        }
    }

    struct Visit {
        var folder: Int
        var origin: EventOrigin
    }

    struct Scan {
        var root: Int
        var origin: EventOrigin
        var visits: [Visit]
        var hasBegun = false
    }

    enum Poll {
        case folder(Int)
        /// The end of a round.
        case end
    }

    var scope: WatchScope
    var folders: [Int: Folder] = [:]
    var nextFolder = 0
    var foldersOfWatch: [Int32: [Int]] = [:]
    var roots: [Root] = []
    var suspects: Set<Int> = []
    var tours: [Scan] = []
    var visits: [Visit] = []
    var polls: [Poll] = []
    var doubts: [(paths: [PathBytes], turns: Int)] = []
    var change: (scope: WatchScope, number: Int)?
    var rescan = (isWanted: false, isRunning: false, isOverflow: false)
    var isReady = false
    var isStopped = false
    var toldPolling: Set<PathBytes> = []
    var mountEdition = 0
    var mounts: [UInt64: PathBytes] = [:]
    var hints: [Hint] = []
    var reports: [WatchReport] = []

    init(scope: WatchScope) { self.scope = scope }

    var hasWork: Bool {
        !visits.isEmpty || !tours.isEmpty || !polls.isEmpty || !suspects.isEmpty || rescan.isWanted || !isReady
            || change != nil
    }

    // MARK: The tree

    func path(of folder: Int) -> PathBytes {
        guard let known = folders[folder] else { return "" }
        return known.parent.map { path(of: $0).appending(known.name.bytes) } ?? known.name
    }

    mutating func enter(_ folder: Int, _ name: PathBytes) -> Int {
        if let child = folders[folder]?.children[name] {
            folders[child]?.isSeen = true
            return child
        }
        nextFolder += 1
        folders[nextFolder] = Folder(
            parent: folder, name: name, root: folders[folder]?.root ?? 0, isPolled: folders[folder]?.isPolled ?? false,
            isSeen: true)
        folders[folder]?.children[name] = nextFolder
        return nextFolder
    }

    mutating func setWatch(_ watch: Int32?, of folder: Int, _ world: inout WorldState) {
        let old = folders[folder]?.watch
        guard old != watch else { return }
        folders[folder]?.watch = watch
        if let watch { foldersOfWatch[watch, default: []].append(folder) }
        guard let old else { return }
        foldersOfWatch[old]?.removeAll { $0 == folder }
        release(old, &world)
    }

    func release(_ watch: Int32, _ world: inout WorldState) {
        guard foldersOfWatch[watch, default: []].isEmpty else { return }
        guard !roots.contains(where: { $0.steps.contains { $0.watch == watch } }) else { return }
        world.queue.removeWatch(watch)
    }

    /// Forgets a directory and everything below it.
    ///
    /// Returns whether any of it was polled.
    @discardableResult
    mutating func forget(_ folder: Int, keepingItself: Bool = false, _ world: inout WorldState) -> Bool {
        guard let known = folders[folder] else { return false }
        var wasPolled = false
        for child in known.children.values.sorted() where forget(child, &world) { wasPolled = true }
        if keepingItself { return wasPolled }
        setWatch(nil, of: folder, &world)
        if let parent = known.parent { folders[parent]?.children[known.name] = nil }
        folders[folder] = nil
        return wasPolled || known.isPolled
    }

    mutating func lose(_ folder: Int, _ world: inout WorldState) {
        let path = path(of: folder)
        let wasListed = folders[folder]?.isListed == true
        if forget(folder, &world) || !wasListed { hints.append(Hint(path: path, signs: .subtree, origin: .live)) }
    }

    func failed(in folder: Int) -> [Int] {
        guard let known = folders[folder] else { return [] }
        return (known.isFailed ? [folder] : []) + known.children.values.sorted().flatMap { failed(in: $0) }
    }

    mutating func retry(_ folder: Int, origin: EventOrigin = .live) {
        visits += failed(in: folder).map { Visit(folder: $0, origin: origin) }
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
        guard scope.mayTake(path) else { return .names }
        return [.names, .closeWrite, .modify, scope.isRaw ? .raw : []]
    }

    // MARK: Work

    mutating func start(_ world: inout WorldState) {
        mountEdition = world.mountEdition
        mounts = world.mounts
        makeRoots(&world)
        for root in rootOrder { check(root, because: .start, &world) }
    }

    mutating func takeRequests(_ world: inout WorldState) {
        guard let wanted = change else { return }
        change = nil
        changeScope(wanted.scope, wanted.number, &world)
    }

    mutating func list(_ directory: PathBytes?, _ world: inout WorldState) -> Bool {
        checkSuspects(&world)
        if let directory { return list(named: directory, &world) }
        if let visit = visits.popLast() {
            begin(visit, isTour: false, &world)
            return true
        }
        if !polls.isEmpty {
            poll(polls.removeFirst(), &world)
            return true
        }
        guard !tours.isEmpty else { return rescan.isWanted }
        beginTour()
        if let visit = tours[0].visits.popLast() { begin(visit, isTour: true, &world) }
        return true
    }

    private mutating func list(named directory: PathBytes, _ world: inout WorldState) -> Bool {
        if let index = visits.firstIndex(where: { path(of: $0.folder) == directory }) {
            begin(visits.remove(at: index), isTour: false, &world)
            return true
        }
        let due = polls.firstIndex { poll in
            if case .folder(let folder) = poll { path(of: folder) == directory } else { false }
        }
        if let due {
            poll(polls.remove(at: due), &world)
            return true
        }
        guard let index = tours.first?.visits.firstIndex(where: { path(of: $0.folder) == directory }) else {
            return false
        }
        beginTour()
        begin(tours[0].visits.remove(at: index), isTour: true, &world)
        return true
    }

    private mutating func beginTour() {
        if !tours[0].hasBegun { reports.append(.listing(roots[tours[0].root].path, tours[0].origin)) }
        tours[0].hasBegun = true
    }

    /// Finishes scans when no directory is left to be listed.
    mutating func finishTours(_ world: inout WorldState) {
        while let tour = tours.first, tour.hasBegun, tour.visits.isEmpty, visits.isEmpty {
            reports.append(.listed(roots[tour.root].path, tour.origin))
            tours.removeFirst()
        }
        guard tours.isEmpty, suspects.isEmpty else { return }
        if !isReady {
            isReady = true
            for index in roots.indices where roots[index].isRetired { drop(index, &world) }
            reports.append(.ready(folders: folders.values.count { !$0.isFailed }))
        }
        if rescan.isRunning {
            rescan.isRunning = false
            if !rescan.isWanted { rescan.isOverflow = false }
            reports.append(.rescanned)
        }
        if rescan.isWanted {
            rescan.isWanted = false
            rescan.isRunning = true
            for root in rootOrder { check(root, because: .rescan, &world) }
        }
    }
}
