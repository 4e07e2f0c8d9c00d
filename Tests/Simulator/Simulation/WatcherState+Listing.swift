import FileEvents
import Glibc
import System
import Watching

extension WatcherState {
    /// Watches a directory, then lists it.
    mutating func begin(_ visit: Visit, isTour: Bool, _ world: inout WorldState) {
        let folder = visit.folder
        guard let index = folders[folder]?.root else { return }
        let path = path(of: folder)
        if roots[index].wantsPoll { folders[folder]?.isPolled = true }
        let node: Int
        do throws(SystemError) {
            node = try open(path, index, world)
        } catch {
            fail(folder, path, errno: error.errno, &world)
            return
        }
        if roots[index].wantsWatch { setWatch(world.queue.watch(node, kinds(path)), of: folder, &world) }
        folders[folder]?.volume = world.nodes[node].volume
        let isPolled = folders[folder]?.isPolled == true
        var signs: Hint.Signs = visit.origin == .live || visit.origin == .poll ? [.listed, .appeared] : .listed
        if isPolled { signs.insert(.polled) }
        markUnseen(folder)
        var memory: [PathBytes: Snapshot] = [:]
        for entry in world.listing(node) {
            let inner = path.appending(entry.name.bytes)
            let isFolder = world.nodes[entry.node].type == .directory
            memory[entry.name] = world.snapshot(entry.node)
            if scope.hintsFoundFolders || !isFolder || visit.origin != .scan, scope.takes(inner) {
                hints.append(Hint(path: inner, signs: signs, origin: visit.origin))
            }
            guard isFolder, isEntered(inner, index) else { continue }
            let next = Visit(folder: enter(folder, entry.name), origin: visit.origin)
            if isTour, !tours.isEmpty { tours[0].visits.append(next) } else { visits.append(next) }
        }
        let wasFailed = folders[folder]?.isFailed == true
        let isNew =
            folders[folder]?.parent != nil && folders[folder]?.isListed == false && visit.origin != .scan
            && visit.origin != .rescan
        folders[folder]?.isFailed = false
        if wasFailed || isNew { hints.append(Hint(path: path, signs: .subtree, origin: visit.origin)) }
        folders[folder]?.isListed = true
        loseUnseen(folder, &world)
        folders[folder]?.memory = isPolled ? memory : nil
    }

    private mutating func markUnseen(_ folder: Int) {
        for child in folders[folder]?.children.values.sorted() ?? [] { folders[child]?.isSeen = false }
    }

    private mutating func loseUnseen(_ folder: Int, _ world: inout WorldState) {
        for child in folders[folder]?.children.values.sorted() ?? [] where folders[child]?.isSeen == false {
            lose(child, &world)
        }
    }

    /// Reports once that a directory can't be read.
    mutating func fail(_ folder: Int, _ path: PathBytes, errno: Int32, _ world: inout WorldState) {
        guard let known = folders[folder] else { return }
        if errno == ENOENT || errno == ENOTDIR || errno == ELOOP && known.parent != nil {
            if known.parent == nil {
                roots[known.root].isLost = true
                suspects.insert(known.root)
            } else {
                lose(folder, &world)
            }
            return
        }
        guard !known.isFailed else { return }
        folders[folder]?.isFailed = true
        reports.append(.failure(.refused(path, errno: errno)))
    }

    // MARK: Polling

    /// Starts a polling round unless one is in progress.
    mutating func beginPolls() {
        guard polls.isEmpty else { return }
        polls += folders.keys.sorted().filter { folders[$0]?.isPolled == true }.map { .folder($0) }
        polls.append(.end)
    }

    mutating func poll(_ poll: Poll, _ world: inout WorldState) {
        guard case .folder(let folder) = poll else {
            for index in roots.indices where roots[index].wantsPoll && roots[index].presence != .present {
                check(index, because: .event, &world)
            }
            for index in doubts.indices { doubts[index].turns -= 1 }
            for doubt in doubts where doubt.turns == 0 {
                hints += doubt.paths.map { Hint(path: $0, signs: .polled, origin: .poll) }
            }
            doubts.removeAll { $0.turns == 0 }
            return
        }
        guard let known = folders[folder] else { return }
        if known.parent == nil {
            check(known.root, because: .event, &world)
            guard folders[folder] != nil else { return }
        }
        let path = path(of: folder)
        do throws(SystemError) {
            compare(folder, path, try open(path, known.root, world), &world)
        } catch {
            fail(folder, path, errno: error.errno, &world)
        }
    }

    private mutating func compare(_ folder: Int, _ path: PathBytes, _ node: Int, _ world: inout WorldState) {
        guard let known = folders[folder] else { return }
        let earlier = known.memory ?? [:]
        var memory: [PathBytes: Snapshot] = [:]
        markUnseen(folder)
        for entry in world.listing(node) {
            let inner = path.appending(entry.name.bytes)
            let isEntered = world.nodes[entry.node].type == .directory && isEntered(inner, known.root)
            if isEntered || scope.takes(inner) { memory[entry.name] = world.snapshot(entry.node) }
            if isEntered, let child = known.children[entry.name] { folders[child]?.isSeen = true }
        }
        if known.isFailed { hints.append(Hint(path: path, signs: .subtree, origin: .poll)) }
        folders[folder]?.isFailed = false
        folders[folder]?.isListed = true
        for name in Set(earlier.keys).union(memory.keys).sorted() {
            tell(name, earlier[name], memory[name], folder, path, &world)
        }
        loseUnseen(folder, &world)
        folders[folder]?.memory = memory
    }

    /// Reports the change of a name since the last poll.
    private mutating func tell(
        _ name: PathBytes, _ was: Snapshot?, _ now: Snapshot?, _ folder: Int, _ path: PathBytes,
        _ world: inout WorldState
    ) {
        var signs: Hint.Signs = .polled
        let isFolder = (now ?? was)?.type == .directory
        var isGone = false
        switch (was, now) {
        case (nil, .some): signs.formUnion([.appeared, .listed])
        case (.some, nil):
            signs.insert(.vanished)
            isGone = isFolder
        case (.some(let was), .some(let now)):
            if was.identity != now.identity || was.type != now.type {
                signs.formUnion([.vanished, .appeared, .listed, .written])
                isGone = was.type == .directory
            } else if !isFolder, (was.size, was.modified) != (now.size, now.modified) {
                signs.insert(.written)
            } else if (was.mode, was.uid, was.gid) != (now.mode, now.uid, now.gid)
                || !isFolder && (was.links, was.changed) != (now.links, now.changed)
            {
                signs.insert(.attributes)
            } else {
                return
            }
        case (nil, nil): return
        }
        let inner = path.appending(name.bytes)
        let child = folders[folder]?.children[name]
        if isGone {
            if let child { forget(child, &world) }
            if scope.reaches(inner) { signs.insert(.subtree) }
        }
        if isFolder, signs.contains(.appeared), isEntered(inner, folders[folder]?.root ?? 0) {
            visits.append(Visit(folder: enter(folder, name), origin: .poll))
        } else if signs.contains(.attributes), let child {
            retry(child, origin: .poll)
        }
        if scope.takes(inner) || signs.contains(.subtree) {
            hints.append(Hint(path: inner, signs: signs, origin: .poll))
        }
    }
}
