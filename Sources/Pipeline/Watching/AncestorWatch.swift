import Glibc
import System

/// The watches on the directories above a root, starting at `/`, and what the path of the root leads to.
struct AncestorWatch {
    struct Step {
        var watch: WatchDescriptor
        /// The name in the directory that leads to the root; nil when only the directory itself matters.
        var name: [UInt8]?
    }

    enum End {
        case directory(FileIdentity, PathBytes)
        /// There is no such directory; `isOther` when something that is not a directory has the root's path.
        case missing(nearest: PathBytes, isOther: Bool)
        case denied(errno: Int32)
    }

    private(set) var steps: [Step] = []
    private(set) var end = End.missing(nearest: "/", isOther: false)
    /// Whether the kernel reports every change that may alter `end`.
    private(set) var isReliable = true
    /// The number of directories without a watch because the limit is reached.
    private(set) var shortCount = 0

    /// Creates the value for a root that needs no watches.
    init() {}

    /// Resolves the path from `/` on, and watches each directory before it accesses the next one.
    init(following path: PathBytes, _ inotify: InotifyInstance?) {
        for _ in 0..<8 {
            self.init()
            if (try? follow(path, inotify)) != nil { return }
        }
        // A process keeps moving directories; the root is checked again later.
        self.init()
        isReliable = false
    }

    /// Resolves the path once; throws when a directory vanished meanwhile.
    private mutating func follow(_ path: PathBytes, _ inotify: InotifyInstance?) throws(SystemError) {
        var walk = PathWalk(path)
        while let (location, found) = try walk.next({ (location, isLast) throws(SystemError) in
            try inspect(location, isLast: isLast, inotify)
        }) {
            switch found {
            case .present(let snapshot) where snapshot.type == .directory: continue
            case .present(let snapshot):
                if LinkTrust.others(replacing: location, snapshot) != nil {
                    // The owner of a link may change without an event for the root.
                    isReliable = false
                    end = .denied(errno: ELOOP)
                } else if snapshot.type == .symlink, !walk.isFinished {
                    continue
                } else {
                    end = .missing(nearest: location.parent, isOther: walk.end == location)
                }
            case .absent: end = .missing(nearest: location.parent, isOther: false)
            case .unreadable(let errno): end = .denied(errno: errno)
            }
            return
        }
        guard let identity = KernelFileSystem().identity(of: walk.end) else { throw SystemError(errno: ENOENT) }
        end = .directory(identity, walk.end)
    }

    /// Watches the directory of a name, and returns what has the name.
    private mutating func inspect(
        _ location: PathBytes, isLast: Bool, _ inotify: InotifyInstance?
    ) throws(SystemError) -> DiskProbe.StatResult {
        let (directory, name) = (location.parent, Array(location.lastComponent))
        var error = step(into: directory, name: isLast ? name : nil, inotify)
        if [ENOENT, ENOTDIR, ELOOP].contains(error) { throw SystemError(errno: error) }
        let found = KernelFileSystem().stat(location)
        if found.snapshot?.type == .directory { return found }
        // It may have changed before the name was watched.
        if !isLast { error = step(into: directory, name: name, inotify) }
        if error != 0 || FileSystemType.unreliable(at: directory) != nil { isReliable = false }
        return KernelFileSystem().stat(location)
    }

    /// Watches a directory above a root; returns 0 or the errno.
    private mutating func step(into directory: PathBytes, name: [UInt8]?, _ inotify: InotifyInstance?) -> Int32 {
        guard let inotify else {
            isReliable = false
            return EMFILE
        }
        let watch = inotify.add(directory, name == nil ? WatchMask.itself : WatchMask.names)
        guard watch < 0 else {
            steps.append(Step(watch: watch, name: name))
            return 0
        }
        if watch == -ENOSPC {
            shortCount += 1
            isReliable = false
        }
        return -watch
    }
}

/// The roots that depend on each watch.
struct AncestorTable {
    /// The roots by the name in the directory that leads to them; nil if only the directory itself matters.
    private var users: [WatchDescriptor: [[UInt8]?: [Int]]] = [:]
    private var watched: [Int: AncestorWatch] = [:]
    private(set) var shortCount = 0

    /// Returns the roots that depend on the directory itself.
    func roots(_ watch: WatchDescriptor) -> [Int] { users[watch]?.values.flatMap(\.self) ?? [] }

    /// Returns the roots that depend on the name in the directory.
    func roots(_ watch: WatchDescriptor, _ name: UnsafeRawBufferPointer) -> [Int] {
        users[watch]?[Array(name)] ?? []
    }

    func contains(_ watch: WatchDescriptor) -> Bool { users[watch] != nil }

    func count(where condition: (WatchDescriptor) -> Bool) -> Int { users.keys.count(where: condition) }

    /// Sets the directories above a root.
    ///
    /// - Returns: The watches that no root needs any more.
    mutating func set(_ ancestors: AncestorWatch, of root: Int) -> [WatchDescriptor] {
        let old = watched.updateValue(ancestors, forKey: root) ?? AncestorWatch()
        for step in ancestors.steps { users[step.watch, default: [:]][step.name, default: []].append(root) }
        shortCount += ancestors.shortCount - old.shortCount
        for step in old.steps {
            guard let index = users[step.watch]?[step.name]?.firstIndex(of: root) else { continue }
            users[step.watch]?[step.name]?.remove(at: index)
            if users[step.watch]?[step.name]?.isEmpty == true { users[step.watch]?[step.name] = nil }
        }
        return Set(old.steps.map(\.watch)).filter { watch in
            guard users[watch]?.isEmpty == true else { return false }
            users[watch] = nil
            return true
        }
    }
}
