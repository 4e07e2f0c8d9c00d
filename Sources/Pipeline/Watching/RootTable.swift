import FileEvents
import System

/// A root and its current state.
struct RootState {
    enum Presence {
        /// Not checked yet.
        case unknown
        case present, missing
        /// It can't be determined whether the root exists.
        case denied
    }

    let path: PathBytes
    /// Whether a rule wants it watched where the kernel reports every change.
    var wantsWatch = false
    /// Whether a rule wants it watched on any file system.
    var isWatchForced = false
    /// Whether a rule wants it polled.
    var wantsPoll = false
    /// The shortest interval that a rule asks for.
    var interval: Duration

    var presence = Presence.unknown
    /// The top of its tree, while the root is present.
    fileprivate(set) var directory: DirectoryTree.ID?
    var identity: FileIdentity?
    /// The path of the root with all symbolic links resolved.
    var physical: PathBytes?
    /// Whether the kernel removed its watch, or the directory was not found at its path.
    var isLost = false
    var isScheduled = false

    /// Returns the roots of a scope, one per path.
    static func wanted(by scope: WatchScope) -> [RootState] {
        var roots: [RootState] = []
        var indices: [PathBytes: Int] = [:]
        for root in scope.roots {
            let interval = max(root.interval, .milliseconds(10))
            let index = indices[root.path] ?? roots.count
            if index == roots.count {
                roots.append(RootState(path: root.path, interval: interval))
                indices[root.path] = index
            }
            roots[index].interval = min(roots[index].interval, interval)
            if root.backend == .poll { roots[index].wantsPoll = true } else { roots[index].wantsWatch = true }
            if root.backend == .inotify { roots[index].isWatchForced = true }
        }
        return roots
    }

    /// Whether this root's tree can be used for the other one, since both are watched in the same way.
    func isWatchedAs(_ other: RootState) -> Bool {
        wantsWatch == other.wantsWatch && isWatchForced == other.isWatchForced && wantsPoll == other.wantsPoll
            && interval == other.interval
    }
}

/// The roots of the scope, and those of the previous scope until they are dropped.
struct RootTable {
    private var states: [RootState] = []
    private var indices: [PathBytes: Int] = [:]
    private var indicesOfTops: [DirectoryTree.ID: Int] = [:]
    /// The roots to check when something happens in a directory above them.
    var ancestors = AncestorTable()
    /// The roots to check in this turn.
    var suspects: Set<Int> = []
    /// Roots that the scope no longer contains; they keep their watches until their replacement has been listed.
    private(set) var retired: Set<Int> = []

    var count: Int { states.count }

    /// The active roots, in the order in which they were added.
    var active: [Int] { states.indices.filter { !retired.contains($0) } }

    /// The active roots, inner ones first: when an outer root has been listed, so has everything in it.
    var innerFirst: [Int] { innerFirst(active) }

    func innerFirst(_ indices: some Sequence<Int>) -> [Int] {
        indices.sorted { states[$0].path.bytes.count > states[$1].path.bytes.count }
    }

    subscript(index: Int) -> RootState {
        get { states[index] }
        _modify { yield &states[index] }
    }

    /// Returns the active root with this path.
    func index(of path: PathBytes) -> Int? { indices[path] }

    /// Returns the root whose tree has this top.
    func index(ofTop directory: DirectoryTree.ID) -> Int? { indicesOfTops[directory] }

    /// Returns the longest interval of the roots that contain the path, retired ones included.
    func longestInterval(holding path: PathBytes) -> Duration? {
        states.filter { path.isInside($0.path) }.map(\.interval).max()
    }

    /// Removes and returns the roots to check, inner ones first.
    mutating func takeSuspects() -> [Int] {
        guard !suspects.isEmpty else { return [] }
        defer { suspects = [] }
        return innerFirst(suspects)
    }

    /// Sets or removes the top of a root's tree.
    mutating func setTop(_ directory: DirectoryTree.ID?, of index: Int) {
        if let old = states[index].directory { indicesOfTops[old] = nil }
        if let directory { indicesOfTops[directory] = index }
        states[index].directory = directory
    }

    /// Adds a root of the scope, or makes the one with its path active again.
    ///
    /// - Returns: The index, and whether that root has to be dropped and replaced: it was dropped already, or it is
    ///   watched in another way.
    mutating func add(_ wanted: RootState) -> (index: Int, isOutdated: Bool) {
        let known = states.firstIndex { $0.path == wanted.path }
        let index = known ?? states.count
        indices[wanted.path] = index
        guard known != nil else {
            states.append(wanted)
            return (index, false)
        }
        let wasDropped = retired.remove(index) != nil && states[index].directory == nil
        return (index, wasDropped || !states[index].isWatchedAs(wanted))
    }

    /// Replaces a dropped root.
    mutating func replace(_ index: Int, with wanted: RootState) {
        let isScheduled = states[index].isScheduled
        states[index] = wanted
        states[index].isScheduled = isScheduled
    }

    /// Retires a root that the scope no longer contains.
    ///
    /// An outer root may take over its directories, which keep their watches until then.
    ///
    /// - Returns: The watches above it that no root needs any more.
    mutating func retire(_ index: Int) -> [WatchDescriptor] {
        retired.insert(index)
        indices[states[index].path] = nil
        suspects.remove(index)
        return ancestors.set(AncestorWatch(), of: index)
    }
}
