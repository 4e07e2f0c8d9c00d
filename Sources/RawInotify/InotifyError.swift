public import FileEvents

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Why the kernel did not do what an ``Inotify`` was asked for.
///
/// `description` is the sentence for people, `help` the way out.
public enum InotifyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The user has all the watches that the limit allows.
    case watchLimit(PathBytes, InotifyLimit)
    /// The user has all the instances that the limit allows.
    case instanceLimit(InotifyLimit)
    /// The path can't be watched.
    case refused(PathBytes, errno: Int32)
    /// The instance has no such watch: it was removed, or what it watched is gone.
    case unknownWatch(InotifyWatch)
    /// There is no room for another descriptor.
    case noDescriptor(errno: Int32)
    /// There is no room for another thread.
    case noThread(errno: Int32)
    /// The kernel's queue can't be read.
    case unreadable(errno: Int32)
    /// The instance was closed.
    case closed

    public var description: String {
        switch self {
        case .watchLimit(let path, let limit):
            "cannot watch '\(path)': the limit of \(limit.value) inotify watches is reached (\(limit.sysctl))"
        case .instanceLimit(let limit):
            "cannot open inotify: the limit of \(limit.value) instances is reached (\(limit.sysctl))"
        case .refused(let path, let errno): "cannot watch '\(path)': \(Self.text(errno))"
        case .unknownWatch(let watch): "there is no watch \(watch.rawValue)"
        case .noDescriptor(let errno): "cannot open a descriptor: \(Self.text(errno))"
        case .noThread(let errno): "cannot start a thread: \(Self.text(errno))"
        case .unreadable(let errno): "cannot read from inotify: \(Self.text(errno))"
        case .closed: "the inotify instance is closed"
        }
    }

    public var help: String {
        switch self {
        case .watchLimit(_, let limit):
            "raise it: sysctl \(limit.sysctl)=\(max(1, limit.value) * 2); or remove watches, of other programs too"
        case .instanceLimit(let limit):
            "raise it: sysctl \(limit.sysctl)=\(max(1, limit.value) * 2); or watch more with fewer instances"
        case .refused(_, let errno): Self.help(errno)
        case .unknownWatch: "forget a watch when an event with 'ignored' tells that it has ended"
        case .noDescriptor: "raise the limit of open files (ulimit -n)"
        case .noThread: "raise the limit of processes (ulimit -u)"
        case .unreadable: "close the instance, and look at everything with a new one"
        case .closed: "make a new one"
        }
    }

    private static func text(_ errno: Int32) -> String { String(cString: strerror(errno)) }

    private static func help(_ errno: Int32) -> String {
        switch errno {
        case ENOENT: "inotify cannot wait for a path: watch the folder above it for 'create' and 'movedTo'"
        case EACCES: "let this program's user read the path, and enter the folders above it"
        case EEXIST: "leave 'maskCreate' out, to change the watch that is there"
        case ENOTDIR: "leave 'onlyDirectory' out, or name a folder"
        case EINVAL: "ask for one event at least, and not for 'maskAdd' and 'maskCreate' together"
        default: "look at the path and its file system"
        }
    }
}

/// A limit of inotify(7) as the kernel applies it here.
public struct InotifyLimit: Sendable, Hashable {
    /// The sysctl that sets it.
    public var sysctl: String
    public var value: Int

    public init(sysctl: String, value: Int) {
        self.sysctl = sysctl
        self.value = value
    }

    static var watches: InotifyLimit { lower("fs.inotify.max_user_watches", "user.max_inotify_watches") }
    static var instances: InotifyLimit { lower("fs.inotify.max_user_instances", "user.max_inotify_instances") }

    /// The kernel has one limit for the machine and one for each user namespace; the lower one holds.
    private static func lower(_ machine: String, _ namespace: String) -> InotifyLimit {
        let limits = [machine, namespace].compactMap { name in
            value(of: name).map { InotifyLimit(sysctl: name, value: $0) }
        }
        return limits.min { $0.value < $1.value } ?? InotifyLimit(sysctl: machine, value: 0)
    }

    private static func value(of name: String) -> Int? {
        let path = "/proc/sys/" + String(name.map { $0 == "." ? "/" : $0 })
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var digits = [UInt8](repeating: 0, count: 24)
        let count = digits.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        return Int(String(decoding: digits[..<max(0, count)].filter { $0 > 32 }, as: UTF8.self))
    }
}
