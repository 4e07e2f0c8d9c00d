import Glibc
import System

extension WorldState {
    /// Applies an operation.
    ///
    /// Returns false, without a change, if it is not possible.
    mutating func apply(_ operation: Operation) -> Bool {
        let isApplied = perform(operation)
        if isApplied { changes += 1 }
        return isApplied
    }

    private mutating func perform(_ operation: Operation) -> Bool {
        switch operation {
        case .create(let path): create(path)
        case .write(let path): write(path)
        case .append(let path): append(path)
        case .replace(let path): replace(path)
        case .delete(let path): delete(path)
        case .rename(let from, let to): rename(from, to, isDirectory: from.bytes.last == .slash)
        case .directory(let from, let to): rename(from, to, isDirectory: true)
        case .swap(let one, let other): exchange(one, other)
        case .link(let from, let to): link(from, to)
        case .symlink(let path, let target): symlink(path, target)
        case .chmod(let path): chmod(path, nil)
        case .hide(let path): existing(path, isDirectory: true) != nil && chmod(path, 0)
        case .show(let path): existing(path, isDirectory: true) != nil && chmod(path, 0o755)
        case .touch(let path): touch(path)
        case .open(let path): open(path)
        case .close(let path): close(path)
        case .read(let path): read(path)
        case .mkdir(let path): makeDirectory(path)
        case .rmdir(let path): removeDirectory(path)
        case .mount(let path): mount(path)
        case .umount(let path): unmount(path)
        }
    }

    // MARK: Files

    private mutating func create(_ path: PathBytes) -> Bool {
        guard path.bytes.last != .slash, let spot = vacant(path) else { return false }
        let node = addNode(.file, in: nodes[spot.directory].volume, mode: 0o644, like: spot.directory)
        attach(node, spot.name, in: spot.directory)
        recordNames(spot.directory)
        queue.report(.create, spot.name, in: spot.directory, isDirectory: false)
        change(node, spot)
        queue.report(.closeWrite, spot.name, in: spot.directory, isDirectory: false)
        return true
    }

    /// Opens the file and writes to it.
    private mutating func change(_ node: Int, _ spot: PathLocation) {
        queue.report(.open, spot.name, in: spot.directory, isDirectory: false)
        recordContent(node)
        queue.report(.modify, spot.name, in: spot.directory, isDirectory: false)
    }

    private mutating func write(_ path: PathBytes) -> Bool {
        guard let (spot, node) = file(path) else { return false }
        change(node, spot)
        queue.report(.closeWrite, spot.name, in: spot.directory, isDirectory: false)
        return true
    }

    private mutating func append(_ path: PathBytes) -> Bool {
        guard let (spot, node) = file(path) else { return false }
        queue.report(.open, spot.name, in: spot.directory, isDirectory: false)
        recordAddition(node)
        queue.report(.modify, spot.name, in: spot.directory, isDirectory: false)
        queue.report(.closeWrite, spot.name, in: spot.directory, isDirectory: false)
        return true
    }

    /// Replaces a file with a new one from an unwatched directory.
    private mutating func replace(_ path: PathBytes) -> Bool {
        guard let (spot, old) = existing(path, isDirectory: false) else { return false }
        let node = addNode(.file, in: nodes[spot.directory].volume, mode: 0o644, like: spot.directory)
        recordContent(node)
        recordChange(node)
        recordReplaced(old, spot)
        attach(node, spot.name, in: spot.directory)
        recordNames(spot.directory)
        queue.report(.movedTo, spot.name, in: spot.directory, isDirectory: false)
        release(old)
        return true
    }

    /// Removes the name of a file that a rename replaces.
    private mutating func recordReplaced(_ node: Int, _ spot: PathLocation) {
        detach(spot.name, from: spot.directory)
        recordChange(node)
        unlinkHandles(spot)
    }

    private mutating func unlinkHandles(_ spot: PathLocation) {
        for index in handles.indices where handles[index].directory == spot.directory {
            if handles[index].name == spot.name { handles[index].isUnlinked = true }
        }
    }

    private mutating func delete(_ path: PathBytes) -> Bool {
        guard let (spot, node) = existing(path, isDirectory: false) else { return false }
        unlink(spot, node)
        return true
    }

    private mutating func unlink(_ spot: PathLocation, _ node: Int) {
        recordReplaced(node, spot)
        recordNames(spot.directory)
        queue.report(.delete, spot.name, in: spot.directory, isDirectory: false)
        release(node)
    }

    private mutating func link(_ from: PathBytes, _ to: PathBytes) -> Bool {
        guard let (_, node) = existing(from, isDirectory: false), let spot = vacant(to), to.bytes.last != .slash,
            nodes[node].volume == nodes[spot.directory].volume
        else { return false }
        attach(node, spot.name, in: spot.directory)
        recordChange(node)
        recordNames(spot.directory)
        queue.report(.create, spot.name, in: spot.directory, isDirectory: false)
        return true
    }

    private mutating func symlink(_ path: PathBytes, _ target: PathBytes) -> Bool {
        guard path.bytes.last != .slash, let spot = vacant(path) else { return false }
        let node = addNode(.symlink, in: nodes[spot.directory].volume, mode: 0o777, like: spot.directory)
        nodes[node].target = target
        nodes[node].size = UInt64(target.bytes.count)
        attach(node, spot.name, in: spot.directory)
        recordNames(spot.directory)
        queue.report(.create, spot.name, in: spot.directory, isDirectory: false)
        return true
    }

    private mutating func chmod(_ path: PathBytes, _ mode: UInt16?) -> Bool {
        guard let (spot, node) = existing(path), nodes[node].type != .symlink else { return false }
        // A mode that is restored before the action finishes would not be noticed.
        nodes[node].mode = mode ?? (nodes[node].mode & 0o700 | (nodes[node].mode + 1) & 0o77)
        recordChange(node)
        reportAttributes(spot, node)
        return true
    }

    private mutating func reportAttributes(_ spot: PathLocation, _ node: Int) {
        let isDirectory = nodes[node].type == .directory
        // The name of a mount point is not in the file system of its parent.
        if !isDirectory || !isVolumeRoot(node) {
            queue.report(.attrib, spot.name, in: spot.directory, isDirectory: isDirectory)
        }
        if isDirectory { queue.report(.attrib, node) }
    }

    private mutating func touch(_ path: PathBytes) -> Bool {
        guard let (spot, node) = existing(path) else { return false }
        let time = tick()
        (nodes[node].modified, nodes[node].changed) = (time, time)
        reportAttributes(spot, node)
        return true
    }

    // MARK: Writers

    private mutating func open(_ path: PathBytes) -> Bool {
        guard let (spot, node) = file(path) else { return false }
        change(node, spot)
        nodes[node].writers += 1
        handles.append(WriteHandle(node: node, directory: spot.directory, name: spot.name))
        return true
    }

    private mutating func close(_ path: PathBytes) -> Bool {
        guard let spot = spot(path) else { return false }
        func isOpen(_ handle: WriteHandle) -> Bool { handle.directory == spot.directory && handle.name == spot.name }
        let index =
            handles.firstIndex { isOpen($0) && !$0.isUnlinked }
            ?? handles.firstIndex { $0.node == spot.node } ?? handles.firstIndex(where: isOpen)
        guard let index else { return false }
        let handle = handles.remove(at: index)
        tick()
        if !handle.isUnlinked { queue.report(.closeWrite, handle.name, in: handle.directory, isDirectory: false) }
        nodes[handle.node].writers -= 1
        release(handle.node)
        return true
    }

    private mutating func read(_ path: PathBytes) -> Bool {
        guard let (spot, _) = file(path) else { return false }
        tick()
        for kind in [.open, .access, .closeNoWrite] as [KernelEvent.Kinds] {
            queue.report(kind, spot.name, in: spot.directory, isDirectory: false)
        }
        return true
    }

    // MARK: Renames

    private mutating func rename(_ from: PathBytes, _ to: PathBytes, isDirectory: Bool) -> Bool {
        guard let (source, node) = existing(from, isDirectory: isDirectory), let target = spot(to),
            isDirectory || to.bytes.last != .slash, !nodes[target.directory].isRemoved,
            nodes[target.directory].type == .directory, !isBusy(node, source),
            nodes[node].volume == nodes[target.directory].volume
        else { return false }
        // The name is stored as given: a rename can change the case of a name.
        let name = PathBytes((to.bytes.last == .slash ? PathBytes(to.bytes.dropLast()) : to).lastComponent)
        if isDirectory, isBelow(target.directory, node) { return false }
        var replaced: Int?
        if let other = target.node {
            if other == node {
                let isOtherCase =
                    source.directory == target.directory && source.name == target.name && name != source.name
                guard isOtherCase else { return false }
            } else {
                guard (nodes[other].type == .directory) == isDirectory, !isBusy(other, target) else { return false }
                guard !isDirectory || nodes[other].entries.isEmpty else { return false }
                replaced = other
            }
        }
        detach(source.name, from: source.directory)
        if let replaced { recordReplaced(replaced, target) }
        attach(node, name, in: target.directory)
        moveHandles(source, to: (target.directory, name), node)
        recordChange(node)
        recordNames(source.directory)
        if source.directory != target.directory { recordNames(target.directory) }
        let later = reportMove(source, (target.directory, name), node)
        if let replaced { release(replaced) }
        if isDirectory { queue.report(.moveSelf, node, at: later) }
        return true
    }

    private mutating func moveHandles(
        _ source: PathLocation, to target: (directory: Int, name: PathBytes), _ node: Int
    ) {
        for index in handles.indices where handles[index].node == node && !handles[index].isUnlinked {
            guard handles[index].directory == source.directory, handles[index].name == source.name else { continue }
            (handles[index].directory, handles[index].name) = target
        }
    }

    /// Reports both halves of a rename.
    ///
    /// Returns the time at which the second one is readable.
    private mutating func reportMove(
        _ source: PathLocation, _ target: (directory: Int, name: PathBytes), _ node: Int,
        after earliest: Duration? = nil
    ) -> Duration {
        let isDirectory = nodes[node].type == .directory
        let first = max(
            earliest ?? elapsed, queue.notBefore[source.directory] ?? .zero, queue.notBefore[target.directory] ?? .zero)
        queue.report(.movedFrom, source.name, in: source.directory, isDirectory: isDirectory, at: first)
        var later = max(first, elapsed)
        if hasDelays, Bool.random(using: &generator) {
            later += .microseconds(Int64.random(in: 0...25_000, using: &generator))
            // The kernel locks both directories until then.
            queue.notBefore[source.directory] = later
            queue.notBefore[target.directory] = later
        }
        queue.report(.movedTo, target.name, in: target.directory, isDirectory: isDirectory, at: later)
        return later
    }

    private mutating func exchange(_ one: PathBytes, _ other: PathBytes) -> Bool {
        guard let first = spot(one), let second = spot(other), let node = first.node, let replaced = second.node,
            node != replaced, !isBusy(node, first), !isBusy(replaced, second),
            nodes[node].volume == nodes[replaced].volume
        else { return false }
        for (path, node) in [(one, node), (other, replaced)] where path.bytes.last == .slash {
            guard nodes[node].type == .directory else { return false }
        }
        if nodes[node].type == .directory, isBelow(second.directory, node) { return false }
        if nodes[replaced].type == .directory, isBelow(first.directory, replaced) { return false }
        detach(first.name, from: first.directory)
        detach(second.name, from: second.directory)
        attach(node, second.name, in: second.directory)
        attach(replaced, first.name, in: first.directory)
        for index in handles.indices where !handles[index].isUnlinked {
            let handle = handles[index]
            if handle.directory == first.directory, handle.name == first.name {
                (handles[index].directory, handles[index].name) = (second.directory, second.name)
            } else if handle.directory == second.directory, handle.name == second.name {
                (handles[index].directory, handles[index].name) = (first.directory, first.name)
            }
        }
        recordChange(node)
        recordChange(replaced)
        recordNames(first.directory)
        if first.directory != second.directory { recordNames(second.directory) }
        var later = reportMove(first, (second.directory, second.name), node)
        if nodes[node].type == .directory { queue.report(.moveSelf, node, at: later) }
        later = reportMove(second, (first.directory, first.name), replaced, after: later)
        if nodes[replaced].type == .directory { queue.report(.moveSelf, replaced, at: later) }
        return true
    }

    // MARK: Directories

    private mutating func makeDirectory(_ path: PathBytes) -> Bool {
        guard let spot = vacant(path) else { return false }
        let node = addNode(.directory, in: nodes[spot.directory].volume, mode: 0o755, like: spot.directory)
        attach(node, spot.name, in: spot.directory)
        recordNames(spot.directory)
        queue.report(.create, spot.name, in: spot.directory, isDirectory: true)
        return true
    }

    private mutating func removeDirectory(_ path: PathBytes) -> Bool {
        guard let (spot, node) = existing(path, isDirectory: true), !isBusy(node, spot), !holdsMount(node) else {
            return false
        }
        remove(node, spot)
        return true
    }

    private func holdsMount(_ directory: Int) -> Bool {
        covered.keys.contains { isBelow($0, directory) } || isBelow(baseNode, directory)
    }

    private mutating func remove(_ node: Int, _ spot: PathLocation) {
        for (name, child) in entries(node) {
            let inner = PathLocation(directory: node, name: name, node: child, physical: "")
            if nodes[child].type == .directory { remove(child, inner) } else { unlink(inner, child) }
        }
        detach(spot.name, from: spot.directory)
        recordNames(spot.directory)
        recordChange(node)
        // Events inside the directory are queued first.
        if let earliest = queue.notBefore[node] {
            queue.notBefore[spot.directory] = max(earliest, queue.notBefore[spot.directory] ?? earliest)
        }
        queue.report(.delete, spot.name, in: spot.directory, isDirectory: true)
        release(node)
    }

    private mutating func mount(_ path: PathBytes) -> Bool {
        guard let (spot, node) = existing(path, isDirectory: true) else { return false }
        let point = spot.physical
        let known = volumes.firstIndex { $0.point == point }
        guard known == nil || known.map({ volumes[$0].mount == 0 }) == true else { return false }
        if known == nil { addVolume(at: point) }
        let volume = known ?? volumes.count - 1
        nextMount += 1
        volumes[volume].mount = nextMount
        volumes[volume].covers = node
        covered[node] = volume
        mountEdition += 1
        let name = path.bytes.last == .slash ? path.bytes.dropLast() : path.bytes[...]
        mountedOnce.insert(base.appending(Array(name)))
        tick()
        return true
    }

    /// Unmounts a file system.
    ///
    /// As in the kernel, this fails while something is mounted below or a process has a file or directory open.
    private mutating func unmount(_ path: PathBytes) -> Bool {
        guard let (_, node) = existing(path, isDirectory: true), isVolumeRoot(node) else { return false }
        let volume = nodes[node].volume
        guard let point = volumes[volume].covers, !covered.keys.contains(where: { nodes[$0].volume == volume }),
            !handles.contains(where: { nodes[$0.node].volume == volume }),
            !openDirectories.values.contains(where: { nodes[$0].volume == volume }), node != visible(baseNode)
        else { return false }
        covered[point] = nil
        volumes[volume].covers = nil
        volumes[volume].mount = 0
        mountEdition += 1
        tick()
        for node in queue.watches.keys.sorted() where nodes[node].volume == volume {
            queue.report(.unmount, node)
            queue.endWatch(node)
        }
        return true
    }
}
