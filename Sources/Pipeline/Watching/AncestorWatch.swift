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
            if follow(path, inotify) { return }
        }
        // A process keeps moving directories; the root is checked again later.
        self.init()
        isReliable = false
    }

    /// Resolves the path once; returns false when a directory vanished meanwhile.
    private mutating func follow(_ path: PathBytes, _ inotify: InotifyInstance?) -> Bool {
        var directory = PathBytes("/")
        var rest = Array(path.bytes.split(separator: .slash).reversed())
        var links = 0
        while let name = rest.popLast() {
            if name.elementsEqual([.dot]) { continue }
            if name.elementsEqual([.dot, .dot]) {
                directory = directory.parent
                continue
            }
            let next = directory.appending(name)
            var error: Int32 = 0
            var isWatched = step(into: directory, name: rest.isEmpty ? name : nil, inotify, error: &error)
            if error == ENOENT || error == ENOTDIR || error == ELOOP { return false }
            var found = KernelFileSystem().stat(next)
            if found.snapshot?.type != .directory {
                // It may have changed before the name was watched.
                if !rest.isEmpty { isWatched = step(into: directory, name: name, inotify, error: &error) }
                found = KernelFileSystem().stat(next)
                if !isWatched || FileSystemType.unreliable(at: directory) != nil { isReliable = false }
            }
            switch found {
            case .present(let snapshot) where snapshot.type == .directory: directory = next
            case .present(let snapshot):
                links += 1
                guard LinkTrust.others(replacing: next, snapshot) == nil else {
                    // The owner of a link may change without an event for the root.
                    isReliable = false
                    end = .denied(errno: ELOOP)
                    return true
                }
                guard snapshot.type == .symlink, links <= 40, let target = KernelFileSystem().target(of: next)?.bytes
                else {
                    end = .missing(nearest: directory, isOther: rest.isEmpty)
                    return true
                }
                if target.first == .slash { directory = "/" }
                rest += target.split(separator: .slash).reversed()
            case .absent:
                end = .missing(nearest: directory, isOther: false)
                return true
            case .unreadable(let errno):
                end = .denied(errno: errno)
                return true
            }
        }
        guard let identity = KernelFileSystem().identity(of: directory) else { return false }
        end = .directory(identity, directory)
        return true
    }

    /// Watches a directory above a root; returns false on failure.
    private mutating func step(
        into directory: PathBytes, name: ArraySlice<UInt8>?, _ inotify: InotifyInstance?, error: inout Int32
    ) -> Bool {
        guard let inotify else {
            isReliable = false
            return false
        }
        let watch = inotify.add(directory, name == nil ? .itself : .names)
        if watch >= 0 {
            steps.append(Step(watch: watch, name: name.map { Array($0) }))
            return true
        }
        error = -watch
        if error == ENOSPC {
            shortCount += 1
            isReliable = false
        }
        return false
    }
}

/// The roots that depend on each watch.
struct AncestorTable {
    /// The roots by the name in the directory that leads to them; nil if only the directory itself matters.
    private var users: [WatchDescriptor: [[UInt8]?: [Int]]] = [:]
    private var steps: [Int: [AncestorWatch.Step]] = [:]
    private var shortCounts: [Int: Int] = [:]
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
        let old = steps.updateValue(ancestors.steps, forKey: root) ?? []
        for step in ancestors.steps { users[step.watch, default: [:]][step.name, default: []].append(root) }
        shortCount += ancestors.shortCount - (shortCounts.updateValue(ancestors.shortCount, forKey: root) ?? 0)
        for step in old {
            guard let index = users[step.watch]?[step.name]?.firstIndex(of: root) else { continue }
            users[step.watch]?[step.name]?.remove(at: index)
            if users[step.watch]?[step.name]?.isEmpty == true { users[step.watch]?[step.name] = nil }
        }
        return Set(old.map(\.watch)).filter { watch in
            guard users[watch]?.isEmpty == true else { return false }
            users[watch] = nil
            return true
        }
    }
}
