package import FileEvents
import Glibc

/// Why a folder can't be watched.
///
/// `description` is the sentence for people, `help` the way out.
package enum WatchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The user's inotify instances are used up.
    case instanceLimit
    /// The user's inotify watches are used up.
    case watchLimit(PathBytes, used: Int, limit: String)
    /// The root is something else than a folder.
    case notFolder(PathBytes)
    /// The kernel said no.
    case refused(PathBytes, errno: Int32)

    package var description: String {
        switch self {
        case .instanceLimit:
            "cannot watch: the user's limit of inotify instances is reached"
        case .watchLimit(let path, let used, let limit):
            "cannot watch '\(path)': the user's limit of \(limit) inotify watches is reached (\(used) are in use here)"
        case .notFolder(let path):
            "cannot watch '\(path)': it is not a folder"
        case .refused(let path, let errno):
            "cannot watch '\(path)': \(String(cString: strerror(errno)))"
        }
    }

    package var help: String {
        switch self {
        case .instanceLimit: "raise fs.inotify.max_user_instances with sysctl"
        case .watchLimit: "raise fs.inotify.max_user_watches with sysctl, or narrow the rules' 'path:'"
        case .notFolder: "a rule for one file names the file itself; its folder is what is watched"
        case .refused(_, let errno):
            errno == EACCES ? "let Alight's user read and enter the folder" : "look at the folder and its file system"
        }
    }
}
