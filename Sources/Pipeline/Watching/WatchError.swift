import Glibc
package import System

/// An error that prevents a directory from being watched.
///
/// `description` is the message for users, `help` the remedy.
package enum WatchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The root is not a directory.
    case notDirectory(PathBytes)
    /// The kernel refused the request.
    case refused(PathBytes, errno: Int32)

    /// Opens a resource; throws an error with its name.
    static func opening<Resource>(
        _ name: PathBytes, _ body: () throws(SystemError) -> Resource
    ) throws(WatchError) -> Resource {
        do throws(SystemError) {
            return try body()
        } catch {
            throw .refused(name, errno: error.errno)
        }
    }

    /// The root, or the name of the resource that was not available.
    package var path: PathBytes {
        switch self {
        case .notDirectory(let path), .refused(let path, _): path
        }
    }

    /// Returns the reason why the path cannot be watched as a root now; nil if it can, or does not exist.
    package static func obstacle(at root: PathBytes) -> WatchError? {
        do throws(SystemError) {
            _ = try DirectoryReader(root, below: root)
            return nil
        } catch {
            switch error.errno {
            case ENOENT: return nil
            // Something that is not a directory may also be above the root, which then does not exist.
            case ENOTDIR: return KernelFileSystem().exists(root) ? .notDirectory(root) : nil
            default: return .refused(root, errno: error.errno)
            }
        }
    }

    package var description: String {
        switch self {
        case .notDirectory: "cannot watch '\(path)': it is not a directory"
        case .refused(_, let errno):
            "cannot watch '\(path)': "
                + ((errno == ELOOP ? LinkTrust.refusal(on: path) : nil) ?? SystemError(errno: errno).description)
        }
    }

    package var help: String {
        switch self {
        case .notDirectory: "a rule for one file names the file itself; Alight watches its directory"
        case .refused(_, ELOOP): "write the path that the link leads to, or give the link and its directory to root"
        case .refused(_, EACCES): "let Alight's user read and enter the directory"
        case .refused(_, ENAMETOOLONG):
            "shorten the path: it has \(path.bytes.count) bytes, the limit is \(PATH_MAX - 1)"
        case .refused: "check the directory and its file system"
        }
    }
}

/// A limit of inotify(7) as the kernel applies it here.
package struct InotifyLimit: Sendable, Hashable {
    /// The sysctl that sets it.
    package var name: String
    package var value: Int

    package init(name: String, value: Int) { (self.name, self.value) = (name, value) }

    /// The limit of watches, for all processes of a user together.
    static var watches: InotifyLimit { lower("fs.inotify.max_user_watches", "user.max_inotify_watches") }

    /// The limit of instances, for all processes of a user together.
    static var instances: InotifyLimit { lower("fs.inotify.max_user_instances", "user.max_inotify_instances") }

    /// Returns the lower of the two limits, one for the machine and one for each user namespace.
    private static func lower(_ machine: String, _ namespace: String) -> InotifyLimit {
        let limits = [machine, namespace].compactMap { name in
            value(of: name).map { InotifyLimit(name: name, value: $0) }
        }
        return limits.min { $0.value < $1.value } ?? InotifyLimit(name: machine, value: 0)
    }

    private static func value(of name: String) -> Int? {
        let path = "/proc/sys/" + name.map { $0 == "." ? "/" : String($0) }.joined()
        return Int(ProcFile.text(of: path).filter { !$0.isWhitespace })
    }
}
