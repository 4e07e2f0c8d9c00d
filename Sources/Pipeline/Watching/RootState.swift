import CAlightLinux
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
    var folder: DirectoryTree.ID?
    var identity: FileIdentity?
    /// The path of the root with all symbolic links resolved.
    var physical: PathBytes?
    /// Whether the kernel removed its watch, or the directory was not found at its path.
    var isLost = false
    var isScheduled = false

    /// Returns the roots of a scope, one per path.
    static func wanted(by scope: WatchScope) -> [RootState] {
        var roots: [RootState] = []
        var places: [PathBytes: Int] = [:]
        for root in scope.roots {
            let interval = max(root.interval, .milliseconds(10))
            let index = places[root.path] ?? roots.count
            if index == roots.count {
                roots.append(RootState(path: root.path, interval: interval))
                places[root.path] = index
            }
            roots[index].interval = min(roots[index].interval, interval)
            switch root.backend {
            case .auto: roots[index].wantsWatch = true
            case .inotify:
                roots[index].wantsWatch = true
                roots[index].isWatchForced = true
            case .poll: roots[index].wantsPoll = true
            }
        }
        return roots
    }

    /// Whether this root's tree can be used for the other one, since both are watched in the same way.
    func isWatchedAs(_ other: RootState) -> Bool {
        wantsWatch == other.wantsWatch && isWatchForced == other.isWatchForced && wantsPoll == other.wantsPoll
            && interval == other.interval
    }
}

/// The directories above a root, starting at `/`.
struct AncestorWatch {
    struct Step {
        var watch: WatchDescriptor
        /// The name in the directory that leads to the root; nil when only the directory itself matters.
        var name: [UInt8]?
    }

    enum End {
        case folder(FileIdentity, PathBytes)
        /// There is no such directory; `isOther` when something that is not a directory has the root's path.
        case missing(nearest: PathBytes, isOther: Bool)
        case denied(errno: Int32)
    }

    var steps: [Step] = []
    var end = End.denied(errno: 0)
    /// Whether the kernel reports every change that may alter `end`.
    var isReliable = true
    /// The number of directories without a watch because the limit is reached.
    var shortCount = 0
}

/// The roots that depend on each watch.
struct AncestorTable {
    private struct NamedStep: Hashable {
        var watch: WatchDescriptor
        var name: [UInt8]
    }

    private var users: [WatchDescriptor: [Int]] = [:]
    private var namedUsers: [NamedStep: [Int]] = [:]
    private var steps: [Int: [AncestorWatch.Step]] = [:]
    private var shortCounts: [Int: Int] = [:]
    private(set) var shortCount = 0

    /// Returns the roots that depend on the directory itself.
    func roots(_ watch: WatchDescriptor) -> [Int] { users[watch] ?? [] }

    /// Returns the roots that depend on the name in the directory.
    func roots(_ watch: WatchDescriptor, _ name: UnsafeRawBufferPointer) -> [Int] {
        guard users[watch] != nil else { return [] }
        return namedUsers[NamedStep(watch: watch, name: Array(name))] ?? []
    }

    func contains(_ watch: WatchDescriptor) -> Bool { users[watch] != nil }

    func count(where condition: (WatchDescriptor) -> Bool) -> Int { users.keys.count(where: condition) }

    /// Sets the directories above a root.
    ///
    /// - Returns: The watches that no root needs any more.
    mutating func set(_ way: AncestorWatch, of root: Int) -> [WatchDescriptor] {
        let old = steps[root] ?? []
        for step in way.steps {
            users[step.watch, default: []].append(root)
            if let name = step.name { namedUsers[NamedStep(watch: step.watch, name: name), default: []].append(root) }
        }
        steps[root] = way.steps
        shortCount += way.shortCount - (shortCounts[root] ?? 0)
        shortCounts[root] = way.shortCount
        var freed: [WatchDescriptor] = []
        for step in old {
            if let name = step.name { remove(root, from: &namedUsers, NamedStep(watch: step.watch, name: name)) }
            if remove(root, from: &users, step.watch) { freed.append(step.watch) }
        }
        return freed
    }

    /// Removes one entry; returns true when it was the last one.
    @discardableResult
    private func remove<Key>(_ root: Int, from table: inout [Key: [Int]], _ key: Key) -> Bool {
        guard let place = table[key]?.firstIndex(of: root) else { return false }
        table[key]?.remove(at: place)
        guard table[key]?.isEmpty == true else { return false }
        table[key] = nil
        return true
    }
}

extension FileIdentity {
    init(_ status: cal_stat) {
        self.init(
            deviceMajor: status.device_major, deviceMinor: status.device_minor, inode: status.inode,
            birth: status.has_btime == 0
                ? 0 : status.btime_seconds &* 1_000_000_000 &+ Int64(status.btime_nanoseconds))
    }
}
