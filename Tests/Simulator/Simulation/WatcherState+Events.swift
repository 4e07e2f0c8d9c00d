import FileEvents
import Glibc
import System
import Watching

extension WatcherState {
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
            reports.append(rescan.isOverflow ? .overflowAgain : .overflow)
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
            aboutFolderItself(event)
            return
        }
        if event.has([.create, .movedTo, .movedFrom, .delete, .attrib]) {
            for index in roots.indices where roots[index].steps.contains(where: { $0 == (event.watch, name) }) {
                suspects.insert(index)
            }
        }
        for folder in foldersOfWatch[event.watch] ?? [] where folders[folder] != nil {
            handle(event, name, in: folder, &world)
        }
    }

    private mutating func suspect(_ watch: Int32) {
        for index in roots.indices where roots[index].steps.contains(where: { $0.watch == watch }) {
            suspects.insert(index)
        }
    }

    private mutating func ended(_ watch: Int32, _ world: inout WorldState) {
        suspect(watch)
        for folder in foldersOfWatch[watch] ?? [] {
            guard let known = folders[folder] else { continue }
            if known.parent == nil {
                setWatch(nil, of: folder, &world)
                roots[known.root].isLost = true
                suspects.insert(known.root)
            } else {
                lose(folder, &world)
            }
        }
    }

    private mutating func aboutFolderItself(_ event: KernelEvent) {
        if event.has([.moveSelf, .deleteSelf]) { suspect(event.watch) }
        guard event.has([.moveSelf, .attrib]) else { return }
        for folder in foldersOfWatch[event.watch] ?? [] {
            if let known = folders[folder], known.parent == nil { suspects.insert(known.root) }
        }
    }

    private mutating func handle(
        _ event: KernelEvent, _ name: PathBytes, in folder: Int, _ world: inout WorldState
    ) {
        let path = path(of: folder).appending(name.bytes)
        var signs: Hint.Signs = []
        if event.has([.create, .movedTo]) { signs.insert(.appeared) }
        if event.has([.delete, .movedFrom]) { signs.insert(.vanished) }
        if event.has([.movedFrom, .movedTo]) { signs.insert(.moved) }
        if event.has(.modify) { signs.insert(.written) }
        if event.has(.closeWrite) { signs.insert(.closed) }
        if event.has(.attrib) { signs.insert(.attributes) }
        if event.isFolder {
            handleFolder(event, name, in: folder, path, &world)
            if event.has(.movedFrom), scope.reaches(path) { signs.insert(.subtree) }
        } else {
            if event.has(.open) { signs.insert(.opened) }
            if event.has(.access) { signs.insert(.accessed) }
            if event.has(.closeNoWrite) { signs.insert(.closedUnwritten) }
        }
        guard !signs.isEmpty, scope.takes(path) || signs.contains(.subtree) else { return }
        hints.append(Hint(path: path, signs: signs, origin: .live))
    }

    private mutating func handleFolder(
        _ event: KernelEvent, _ name: PathBytes, in folder: Int, _ path: PathBytes, _ world: inout WorldState
    ) {
        guard let index = folders[folder]?.root, isEntered(path, index) else { return }
        let child = folders[folder]?.children[name]
        if event.has([.delete, .movedFrom]) {
            if let child { lose(child, &world) }
            do throws(SystemError) {
                _ = try open(path, index, world)
            } catch {
                if [ENOENT, ENOTDIR, ELOOP].contains(error.errno) { return }
            }
            visits.append(Visit(folder: enter(folder, name), origin: .live))
        } else if event.has([.create, .movedTo]) {
            if let child, let watch = folders[child]?.watch, let node = try? open(path, index, world),
                watch == world.queue.watch(node, kinds(path))
            {
                return
            }
            if let child { lose(child, &world) }
            visits.append(Visit(folder: enter(folder, name), origin: .live))
        } else if event.has(.attrib) {
            if let child { retry(child) } else { visits.append(Visit(folder: enter(folder, name), origin: .live)) }
        }
    }

    // MARK: Mounts

    /// Checks which file systems were mounted or unmounted.
    ///
    /// Returns false if there is no change.
    private mutating func compareMounts(_ world: inout WorldState) -> Bool {
        guard mountEdition != world.mountEdition else { return false }
        mountEdition = world.mountEdition
        let (old, new) = (mounts, world.mounts)
        mounts = new
        for id in old.keys.sorted() where new[id] == nil { remount(old[id] ?? "/", isMounted: false, &world) }
        for id in new.keys.sorted() where old[id] == nil { remount(new[id] ?? "/", isMounted: true, &world) }
        return true
    }

    private mutating func remount(_ point: PathBytes, isMounted: Bool, _ world: inout WorldState) {
        for index in rootOrder {
            guard let physical = roots[index].physical, let top = roots[index].folder, !physical.isInside(point),
                let relative = point.relative(to: physical)
            else {
                if roots[index].physical != roots[index].path || roots[index].path.isInside(point) {
                    check(index, because: isMounted ? .mounted : .unmounted(point), &world)
                }
                continue
            }
            var folder: Int? = top
            for name in relative.split(separator: .slash) {
                folder = folder.flatMap { folders[$0]?.children[PathBytes(name)] }
            }
            if let folder { remount(folder: folder, isMounted: isMounted, &world) }
        }
    }

    private mutating func remount(folder: Int, isMounted: Bool, _ world: inout WorldState) {
        let path = path(of: folder)
        reports.append(isMounted ? .mounted(path) : .unmounted(path, point: path))
        folders[folder]?.memory = nil
        forget(folder, keepingItself: true, &world)
        setWatch(nil, of: folder, &world)
        folders[folder]?.isFailed = false
        hints.append(Hint(path: path, signs: isMounted ? .subtree : .listed, origin: .live))
        visits.append(Visit(folder: folder, origin: .live))
    }
}
