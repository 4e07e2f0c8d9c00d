import CAlightLinux
import FileEvents
import System

/// A root, and how it is with it.
struct RootState {
    enum Presence {
        /// Not looked at yet.
        case unknown
        case present, missing
        /// It can't be told whether it is there.
        case denied
    }

    let path: PathBytes
    /// Whether a rule wants it watched where the kernel tells of everything.
    var wantsWatch = false
    /// Whether a rule wants it watched whatever the file system.
    var isWatchForced = false
    /// Whether a rule wants it polled.
    var wantsPoll = false
    /// The shortest that a rule asks for.
    var interval: Duration

    var presence = Presence.unknown
    /// The top of its tree, while it is present.
    var folder: FolderTree.ID?
    var identity: FileIdentity?
    /// Where it is when all links are followed.
    var physical: PathBytes?
    /// Its watch was ended by the kernel.
    var isLost = false
    var isScheduled = false

    /// The roots that a scope asks for, each once.
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

    /// Whether another root's tree can stand for this one's.
    func isWatchedAs(_ other: RootState) -> Bool {
        wantsWatch == other.wantsWatch && isWatchForced == other.isWatchForced && wantsPoll == other.wantsPoll
            && interval == other.interval
    }
}

/// The folders on the way to a root, from `/` on.
struct Way {
    struct Step {
        var watch: WatchDescriptor
        /// The name in the folder that decides about the root; nil when only the folder itself does.
        var name: [UInt8]?
    }

    enum End {
        case folder(FileIdentity, PathBytes)
        /// There is no such folder; `notFolder` when there is something else in the root's place.
        case missing(nearest: PathBytes, isOther: Bool)
        case denied(errno: Int32)
    }

    var steps: [Step] = []
    var end = End.denied(errno: 0)
    /// Whether the kernel will tell when the end may have become another one.
    var isReliable = true
    /// Folders that got no watch for want of one.
    var shortCount = 0
}

/// Which watches matter to which root.
struct WayTable {
    private struct NamedStep: Hashable {
        var watch: WatchDescriptor
        var name: [UInt8]
    }

    private var users: [WatchDescriptor: [Int]] = [:]
    private var namedUsers: [NamedStep: [Int]] = [:]
    private var steps: [Int: [Way.Step]] = [:]
    private var shortCounts: [Int: Int] = [:]
    private(set) var shortCount = 0

    /// The roots to which it matters that something happens to the folder itself.
    func roots(_ watch: WatchDescriptor) -> [Int] { users[watch] ?? [] }

    /// The roots to which it matters that something happens to the name in the folder.
    func roots(_ watch: WatchDescriptor, _ name: UnsafeRawBufferPointer) -> [Int] {
        guard users[watch] != nil else { return [] }
        return namedUsers[NamedStep(watch: watch, name: Array(name))] ?? []
    }

    func contains(_ watch: WatchDescriptor) -> Bool { users[watch] != nil }

    func count(where condition: (WatchDescriptor) -> Bool) -> Int { users.keys.count(where: condition) }

    /// Sets the way of a root.
    ///
    /// - Returns: Watches that no root's way needs any more.
    mutating func set(_ way: Way, of root: Int) -> [WatchDescriptor] {
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

    /// Removes one mention; true when it was the last.
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
