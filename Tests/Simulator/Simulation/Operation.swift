package import System

/// A change of the world by one process.
///
/// In the notation, paths are relative to the base directory of the world, and a directory ends with a slash.
/// `directory` renames a directory, `swap` exchanges two paths, and `hide` and `show` make a directory unreadable and
/// readable again.
package enum Operation: Sendable, Hashable, CustomStringConvertible {
    case create(PathBytes), write(PathBytes), append(PathBytes), replace(PathBytes), delete(PathBytes)
    case rename(PathBytes, PathBytes), swap(PathBytes, PathBytes), directory(PathBytes, PathBytes)
    case link(PathBytes, PathBytes), symlink(PathBytes, PathBytes)
    case chmod(PathBytes), touch(PathBytes)
    case open(PathBytes), close(PathBytes), read(PathBytes)
    case mkdir(PathBytes), rmdir(PathBytes)
    case mount(PathBytes), umount(PathBytes)
    case hide(PathBytes), show(PathBytes)

    private static let onePath: [String: @Sendable (PathBytes) -> Self] = [
        "create": create, "write": write, "append": append, "replace": replace, "delete": delete, "chmod": chmod,
        "touch": touch, "open": open, "close": close, "read": read, "mkdir": mkdir, "rmdir": rmdir, "mount": mount,
        "umount": umount, "hide": hide, "show": show,
    ]
    private static let twoPaths: [String: @Sendable (PathBytes, PathBytes) -> Self] = [
        "rename": rename, "swap": swap, "directory": directory, "link": link, "symlink": symlink,
    ]

    /// Parses the notation, such as `rename a x/b`.
    package init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let paths = words.dropFirst().map { PathBytes($0) }
        guard let verb = words.first, !paths.contains(where: \.bytes.isEmpty) else { return nil }
        let operation =
            switch paths.count {
            case 1: Self.onePath[verb]?(paths[0])
            case 2: Self.twoPaths[verb]?(paths[0], paths[1])
            default: Self?.none
            }
        guard let operation else { return nil }
        self = operation
    }

    /// The paths as written; the second path of `symlink` is the target of the link.
    package var paths: [PathBytes] {
        switch self {
        case .create(let path), .write(let path), .append(let path), .replace(let path), .delete(let path),
            .chmod(let path), .touch(let path), .open(let path), .close(let path), .read(let path), .mkdir(let path),
            .rmdir(let path), .mount(let path), .umount(let path), .hide(let path), .show(let path):
            [path]
        case .rename(let from, let to), .swap(let from, let to), .directory(let from, let to), .link(let from, let to),
            .symlink(let from, let to):
            [from, to]
        }
    }

    package var description: String {
        // The verb is the name of the case.
        let verb = Mirror(reflecting: self).children.first?.label ?? ""
        return ([verb] + paths.map(\.description)).joined(separator: " ")
    }
}
