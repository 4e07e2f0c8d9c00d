import ActionAPI
import FileEvents
import Glibc
import Globbing
import Logging
import PluginProtocol
import Rules
import Synchronization
import System

/// One list on the disk, and the state it was generated from.
final class IndexFile: Sendable {
    private struct State {
        var index: FileIndex
        var selection: FileSelection
        /// The metadata of the file that was written.
        var written: Snapshot
    }

    private let path: PathBytes
    /// Nil until the list is generated, and after any error.
    private let state = Mutex<State?>(nil)

    init(_ path: PathBytes) { self.path = path }

    /// Updates the list; one update waits for another.
    ///
    /// - Parameter invocations: At least one, all of the same rule.
    /// - Returns: The outcome for all of them.
    func update(_ invocations: [Invocation]) -> Outcome {
        state.withLock { state in
            do throws(FileError) {
                return try update(&state, invocations)
            } catch {
                state = nil
                return error.outcome
            }
        }
    }

    private func update(_ state: inout State?, _ invocations: [Invocation]) throws(FileError) -> Outcome {
        let first = invocations[0]
        let events = invocations.map(\.job.event)
        var index = FileIndex(order: FileIndex.Order(first.text("sort") ?? "name"))
        var hasChanged = false
        let files = WatchedPaths(roots: first.selection.filter.roots.map { PathBytes($0) })
        let former = state.flatMap { isUsable($0, first.selection, index.order) ? $0 : nil }
        if let former, !events.contains(where: \.kind.isOfWholeTree) {
            index = former.index
            let paths = events.flatMap { [$0.path] + ($0.from.map { [$0] } ?? []) }
            for path in index.copying.union(paths) {
                if refresh(path, &index, first.selection, files) { hasChanged = true }
            }
        } else {
            let limit = first.limit
            switch first.selection.list(isStopped: { limit.isOver }) {
            case .stopped:
                if first.stop.isRaised { return .interrupted("stopped while listing") }
                return .timedOut("timed out while listing")
            case .rootMissing:
                return Outcome(.skipped, "the root does not exist; the list is not changed", code: "root-missing")
            case .found(let found, let unseen):
                index.add(
                    found.filter { !isOwn($0.path) }.map {
                        ($0.path, entry($0.path, $0.root, $0.snapshot, first.selection, files))
                    })
                // Files in a directory that cannot be listed are not gone.
                for (directory, error) in unseen {
                    if error != ENOENT {
                        first.log.warning("cannot list '\(directory)': \(SystemError(errno: error))")
                    }
                    if let former { index.add(former.index.entries(in: directory)) }
                }
                hasChanged = true
            }
        }
        let count = index.count == 1 ? "1 file" : "\(index.count) files"
        if hasChanged {
            state = nil
            let written = try write(index.json, first)
            state = State(index: index, selection: first.selection, written: written)
        }
        return Outcome(
            .succeeded, "\(count) in \(path)\(hasChanged ? "" : ", unchanged")", outputs: [path],
            values: ["files": .integer(Int64(index.count))])
    }

    /// Whether the list on the disk is the one written last, for the same files in the same order.
    private func isUsable(_ state: State, _ selection: FileSelection, _ order: FileIndex.Order) -> Bool {
        guard case .present(let there) = KernelFileSystem().stat(path) else { return false }
        return there.hasSameContent(as: state.written) && state.selection == selection
            && state.index.order == order
    }

    // MARK: Entries

    /// Checks a path and updates its entry; returns whether the entry has changed.
    private func refresh(
        _ path: PathBytes, _ index: inout FileIndex, _ selection: FileSelection, _ files: WatchedPaths
    ) -> Bool {
        var entry: FileIndex.Entry?
        if let root = selection.root(matching: path), !isOwn(path) {
            switch files.inspect(at: path) {
            case .present(let snapshot) where selection.types.contains(snapshot.type):
                entry = self.entry(path, root, snapshot, selection, files)
            case .present, .absent: break
            case .unreadable: return false
            }
        }
        return index.set(entry, at: path)
    }

    private func entry(
        _ path: PathBytes, _ root: PathBytes, _ snapshot: Snapshot, _ selection: FileSelection,
        _ files: WatchedPaths
    ) -> FileIndex.Entry {
        var isCopying: Bool?
        if snapshot.type == .file {
            switch files.writers(of: path) {
            case .held: isCopying = true
            case .free: isCopying = false
            case .unknown: break
            }
        }
        return FileIndex.Entry(
            relative: PathBytes(path.relative(to: root) ?? path.lastComponent),
            root: selection.filter.roots.count > 1 ? root : nil, size: snapshot.size, modified: snapshot.modified,
            type: snapshot.type, isCopying: isCopying)
    }

    /// Whether the path is the list itself, through any path to its directory.
    private func isOwn(_ path: PathBytes) -> Bool {
        guard path.lastComponent.elementsEqual(self.path.lastComponent) else { return false }
        let files = KernelFileSystem()
        return path == self.path || files.resolve(path.parent) == files.resolve(self.path.parent)
    }

    // MARK: Writing

    /// Replaces the list and returns its metadata.
    ///
    /// The file is not flushed: after a power loss, the list is generated again anyway.
    private func write(_ json: [UInt8], _ invocation: Invocation) throws(FileError) -> Snapshot {
        var jail = Jail(invocation)
        let directory = try jail.open(path.parent, making: true)
        return try WholeFile.replace(PathBytes(path.lastComponent), in: directory, with: json, isFlushed: false)
    }
}

extension EventKind {
    /// Whether the whole tree has been scanned, so that a full listing is worthwhile.
    fileprivate var isOfWholeTree: Bool { self == .scanEnded || self == .rootBack }
}
