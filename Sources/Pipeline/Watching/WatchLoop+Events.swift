import CAlightLinux
import FileEvents
import Glibc
import System

extension WatchLoop {
    func drain() {
        // Bounded, so that a process that writes continuously can't keep directories from being listed.
        for _ in 0..<16 {
            guard let inotify, inotify.read({ handle($0) }) else { return }
        }
    }

    private func handle(_ event: InotifyEvent) {
        if event.has(.overflow) {
            rescan.isWanted = true
            reports.append(rescan.isOverflow ? .overflowAgain : .overflow)
            rescan.isOverflow = true
            return
        }
        if event.has(.unmount) {
            unmounted(event.watch)
            return
        }
        if event.has(.ignored) {
            ended(event.watch)
            return
        }
        if event.name.isEmpty {
            aboutFolderItself(event)
            return
        }
        if event.has([.create, .movedTo, .movedFrom, .delete, .attrib]) {
            suspects.formUnion(ways.roots(event.watch, event.name))
        }
        // Nearly always true, and avoids building an array.
        if let folder = tree.onlyFolder(of: event.watch) {
            handle(event, in: folder)
            return
        }
        // With a directory mounted inside itself, one may be removed while another is handled.
        for folder in tree.folders(of: event.watch) where tree.contains(folder) { handle(event, in: folder) }
    }

    /// Handles a watch that the kernel has removed, since the directory is gone.
    private func ended(_ watch: WatchDescriptor) {
        suspects.formUnion(ways.roots(watch))
        for folder in tree.folders(of: watch) where tree.contains(folder) {
            if let root = rootOfFolder[folder] {
                _ = tree.setWatch(nil, of: folder)
                roots[root].isLost = true
                suspects.insert(root)
            } else {
                // Hints for it come from the directory that contains it.
                lookAgain(around: folder)
                lose(folder)
            }
        }
    }

    private func aboutFolderItself(_ event: InotifyEvent) {
        if event.has([.moveSelf, .deleteSelf]) {
            suspects.formUnion(ways.roots(event.watch))
        }
        guard event.has([.moveSelf, .attrib]) else { return }
        for folder in tree.folders(of: event.watch) {
            if let root = rootOfFolder[folder] {
                suspects.insert(root)
            } else if event.has(.moveSelf) {
                lookAgain(around: folder)
            }
        }
    }

    /// Schedules an immediate poll of the parent directory if it has no watch.
    private func lookAgain(around folder: DirectoryTree.ID) {
        guard let parent = tree.parent(of: folder), tree.watch(of: parent) == nil else { return }
        urgent.insert(parent)
    }

    private func handle(_ event: InotifyEvent, in folder: DirectoryTree.ID) {
        let isAppearing = event.has([.create, .movedTo])
        let isVanishing = event.has([.delete, .movedFrom])
        var signs: Hint.Signs = []
        if isAppearing { signs.insert(.appeared) }
        if isVanishing { signs.insert(.vanished) }
        if event.has([.movedFrom, .movedTo]) { signs.insert(.moved) }
        if event.has(.modify) { signs.insert(.written) }
        if event.has(.closeWrite) { signs.insert(.closed) }
        if event.has(.attrib) { signs.insert(.attributes) }
        // One write causes two events or more, and usually others follow.
        let place = event.isFolder ? nil : recent.place(of: event.name, in: folder)
        if let place, let known = recent.hint(at: place, named: event.name, among: hints) {
            hints[known].signs.formUnion(signs.union(Self.bareSigns(event)))
            return
        }
        if lastPrefix?.folder != folder { lastPrefix = (folder, Self.prefix(tree.path(of: folder))) }
        let path = Self.path(lastPrefix?.bytes ?? [], event.name)
        if event.isFolder {
            handleFolder(event, in: folder, path, isAppearing: isAppearing, isVanishing: isVanishing)
            if event.has(.movedFrom), scope.reaches(path) { signs.insert(.subtree) }
        } else {
            signs.formUnion(Self.bareSigns(event))
        }
        if signs.isEmpty { return }
        if scope.takes(path) || signs.contains(.subtree) {
            if let place { recent.set(hints.count, at: place) }
            hints.append(Hint(path: path, signs: signs, origin: .live))
        }
    }

    private static func bareSigns(_ event: InotifyEvent) -> Hint.Signs {
        var signs: Hint.Signs = []
        if event.has(.open) { signs.insert(.opened) }
        if event.has(.access) { signs.insert(.accessed) }
        if event.has(.closeNoWrite) { signs.insert(.closedUnwritten) }
        return signs
    }

    /// Adds a watch for the directory that is now at the path, and returns it.
    private func rewatched(_ path: PathBytes, in index: Int) -> WatchDescriptor? {
        var error: Int32 = 0
        guard let reader = open(path, in: index, error: &error) else { return nil }
        defer { reader.close() }
        return inotify?.add(opened: reader.descriptor, mask(for: path))
    }

    private func handleFolder(
        _ event: InotifyEvent, in folder: DirectoryTree.ID, _ path: PathBytes, isAppearing: Bool, isVanishing: Bool
    ) {
        guard let index = rootOfFolder[tree.root(of: folder)], isEntered(path, index) else { return }
        let child = tree.child(of: folder, named: event.name)
        if isVanishing {
            // Its watches would report wrong paths, or none.
            if let child { lose(child) }
            // If two directories were exchanged, another one has the name already.
            var error: Int32 = 0
            open(path, in: index, error: &error)?.close()
            switch error {
            case ENOENT, ENOTDIR, ELOOP: return
            default: visits.append(Visit(folder: tree.enter(folder, named: event.name), origin: .live))
            }
        } else if isAppearing {
            // A listing may have found it before; a directory that already has a watch has been or will be listed.
            if let child, let watch = tree.watch(of: child), watch == rewatched(path, in: index) { return }
            if let child { lose(child) }
            visits.append(Visit(folder: tree.enter(folder, named: event.name), origin: .live))
        } else if event.has(.attrib) {
            if let child {
                retry(child)
            } else {
                visits.append(Visit(folder: tree.enter(folder, named: event.name), origin: .live))
            }
        }
    }
}
