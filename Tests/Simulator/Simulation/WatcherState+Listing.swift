import FileEvents
import Glibc
import System
import Watching

extension WatcherState {
    /// Watches a directory, then lists it.
    mutating func begin(_ visit: Visit, isScan: Bool, _ world: inout WorldState) {
        let directory = visit.directory
        guard let index = tree[directory]?.root else { return }
        let path = tree.path(of: directory)
        if roots[index].wantsPoll { tree[directory]?.isPolled = true }
        let node: Int
        do throws(SystemError) {
            node = try open(path, index, world)
        } catch {
            fail(directory, path, errno: error.errno, &world)
            return
        }
        if roots[index].wantsWatch { setWatch(world.queue.watch(node, kinds(path)), of: directory, &world) }
        tree[directory]?.volume = world.nodes[node].volume
        let isPolled = tree[directory]?.isPolled == true
        var signs: Hint.Signs = visit.origin == .live || visit.origin == .poll ? [.listed, .appeared] : .listed
        if isPolled { signs.insert(.polled) }
        tree.markUnseen(in: directory)
        var memory: [PathBytes: Snapshot] = [:]
        for entry in world.listing(node) {
            let inner = path.appending(entry.name.bytes)
            let isDirectory = world.nodes[entry.node].type == .directory
            memory[entry.name] = world.snapshot(entry.node)
            if scope.hintsFoundDirectories || !isDirectory || visit.origin != .scan, scope.takes(inner) {
                output.hints.append(Hint(path: inner, signs: signs, origin: visit.origin))
            }
            guard isDirectory, isEntered(inner, index) else { continue }
            let next = Visit(directory: tree.enter(directory, entry.name), origin: visit.origin)
            if isScan, !scans.isEmpty { scans[0].visits.append(next) } else { visits.append(next) }
        }
        let wasFailed = tree[directory]?.isFailed == true
        let isNew =
            tree[directory]?.parent != nil && tree[directory]?.isListed == false && visit.origin != .scan
            && visit.origin != .rescan
        tree[directory]?.isFailed = false
        if wasFailed || isNew { output.hints.append(Hint(path: path, signs: .subtree, origin: visit.origin)) }
        tree[directory]?.isListed = true
        loseUnseen(directory, &world)
        tree[directory]?.memory = isPolled ? memory : nil
    }

    private mutating func loseUnseen(_ directory: Int, _ world: inout WorldState) {
        for child in tree.children(of: directory) where tree[child]?.isSeen == false { lose(child, &world) }
    }

    /// Reports once that a directory can't be read.
    mutating func fail(_ directory: Int, _ path: PathBytes, errno: Int32, _ world: inout WorldState) {
        guard let known = tree[directory] else { return }
        if errno == ENOENT || errno == ENOTDIR || errno == ELOOP && known.parent != nil {
            if known.parent == nil {
                roots[known.root].isLost = true
                suspects.insert(known.root)
            } else {
                lose(directory, &world)
            }
            return
        }
        guard !known.isFailed else { return }
        tree[directory]?.isFailed = true
        output.reports.append(.failure(.refused(path, errno: errno)))
    }

    // MARK: Polling

    /// Starts a polling round unless one is in progress.
    mutating func beginPolls() {
        guard polls.isEmpty else { return }
        polls += tree.directories.keys.sorted().filter { tree[$0]?.isPolled == true }.map { .directory($0) }
        polls.append(.end)
    }

    mutating func poll(_ poll: Poll, _ world: inout WorldState) {
        guard case .directory(let directory) = poll else {
            for index in roots.indices where roots[index].wantsPoll && roots[index].presence != .present {
                check(index, because: .event, &world)
            }
            for index in doubts.indices { doubts[index].turns -= 1 }
            for (doubt, turns) in doubts where turns == 0 { output.hints += doubt.hints }
            doubts.removeAll { $0.turns == 0 }
            return
        }
        guard let known = tree[directory] else { return }
        if known.parent == nil {
            check(known.root, because: .event, &world)
            guard tree[directory] != nil else { return }
        }
        let path = tree.path(of: directory)
        do throws(SystemError) {
            compare(directory, path, try open(path, known.root, world), &world)
        } catch {
            fail(directory, path, errno: error.errno, &world)
        }
    }

    private mutating func compare(_ directory: Int, _ path: PathBytes, _ node: Int, _ world: inout WorldState) {
        guard let known = tree[directory] else { return }
        let earlier = known.memory ?? [:]
        var memory: [PathBytes: Snapshot] = [:]
        tree.markUnseen(in: directory)
        for entry in world.listing(node) {
            let inner = path.appending(entry.name.bytes)
            let isEntered = world.nodes[entry.node].type == .directory && isEntered(inner, known.root)
            if isEntered || scope.takes(inner) { memory[entry.name] = world.snapshot(entry.node) }
            if isEntered, let child = known.children[entry.name] { tree[child]?.isSeen = true }
        }
        if known.isFailed { output.hints.append(Hint(path: path, signs: .subtree, origin: .poll)) }
        tree[directory]?.isFailed = false
        tree[directory]?.isListed = true
        for name in Set(earlier.keys).union(memory.keys).sorted() {
            report(name, earlier[name], memory[name], directory, path, &world)
        }
        loseUnseen(directory, &world)
        tree[directory]?.memory = memory
    }

    /// Reports the change of a name since the last poll.
    private mutating func report(
        _ name: PathBytes, _ was: Snapshot?, _ now: Snapshot?, _ directory: Int, _ path: PathBytes,
        _ world: inout WorldState
    ) {
        var signs: Hint.Signs = .polled
        let isDirectory = (now ?? was)?.type == .directory
        var isGone = false
        switch (was, now) {
        case (nil, .some): signs.formUnion([.appeared, .listed])
        case (.some, nil):
            signs.insert(.vanished)
            isGone = isDirectory
        case (.some(let was), .some(let now)):
            if was.identity != now.identity || was.type != now.type {
                signs.formUnion([.vanished, .appeared, .listed, .written])
                isGone = was.type == .directory
            } else if !isDirectory, (was.size, was.modified) != (now.size, now.modified) {
                signs.insert(.written)
            } else if (was.mode, was.uid, was.gid) != (now.mode, now.uid, now.gid)
                || !isDirectory && (was.links, was.changed) != (now.links, now.changed)
            {
                signs.insert(.attributes)
            } else {
                return
            }
        case (nil, nil): return
        }
        let inner = path.appending(name.bytes)
        let child = tree[directory]?.children[name]
        if isGone {
            if let child { forget(child, &world) }
            if scope.reaches(inner) { signs.insert(.subtree) }
        }
        if isDirectory, signs.contains(.appeared), isEntered(inner, tree[directory]?.root ?? 0) {
            visits.append(Visit(directory: tree.enter(directory, name), origin: .poll))
        } else if signs.contains(.attributes), let child {
            retry(child, origin: .poll)
        }
        if scope.takes(inner) || signs.contains(.subtree) {
            output.hints.append(Hint(path: inner, signs: signs, origin: .poll))
        }
    }
}
