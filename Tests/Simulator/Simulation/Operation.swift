package import System

/// A change of the world by one process.
///
/// In the notation, paths are relative to the base directory of the world, and a directory ends with a slash.
package enum Operation: Sendable, Hashable, CustomStringConvertible {
    case create(PathBytes), write(PathBytes), append(PathBytes), replace(PathBytes), delete(PathBytes)
    case rename(PathBytes, PathBytes), swap(PathBytes, PathBytes), folder(PathBytes, PathBytes)
    case link(PathBytes, PathBytes), symlink(PathBytes, PathBytes)
    case chmod(PathBytes), touch(PathBytes)
    case open(PathBytes), close(PathBytes), read(PathBytes)
    case mkdir(PathBytes), rmdir(PathBytes)
    case mount(PathBytes), umount(PathBytes)
    case hide(PathBytes), show(PathBytes)

    /// Parses the notation, such as `rename a x/b`.
    package init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false).map { PathBytes(String($0)) }
        guard words.count >= 2, !words.contains(where: { $0.bytes.isEmpty }) else { return nil }
        let one = words.count == 2 ? words[1] : nil
        let two = words.count == 3 ? (words[1], words[2]) : nil
        let made: Operation? =
            switch words[0].description {
            case "create": one.map(Self.create)
            case "write": one.map(Self.write)
            case "append": one.map(Self.append)
            case "replace": one.map(Self.replace)
            case "delete": one.map(Self.delete)
            case "chmod": one.map(Self.chmod)
            case "touch": one.map(Self.touch)
            case "open": one.map(Self.open)
            case "close": one.map(Self.close)
            case "read": one.map(Self.read)
            case "mkdir": one.map(Self.mkdir)
            case "rmdir": one.map(Self.rmdir)
            case "mount": one.map(Self.mount)
            case "umount": one.map(Self.umount)
            case "hide": one.map(Self.hide)
            case "show": one.map(Self.show)
            case "rename": two.map(Self.rename)
            case "swap": two.map(Self.swap)
            case "folder": two.map(Self.folder)
            case "link": two.map(Self.link)
            case "symlink": two.map(Self.symlink)
            default: nil
            }
        guard let made else { return nil }
        self = made
    }

    /// The verb in the notation.
    package var verb: String {
        switch self {
        case .create: "create"
        case .write: "write"
        case .append: "append"
        case .replace: "replace"
        case .delete: "delete"
        case .rename: "rename"
        case .swap: "swap"
        case .folder: "folder"
        case .link: "link"
        case .symlink: "symlink"
        case .chmod: "chmod"
        case .touch: "touch"
        case .open: "open"
        case .close: "close"
        case .read: "read"
        case .mkdir: "mkdir"
        case .rmdir: "rmdir"
        case .mount: "mount"
        case .umount: "umount"
        case .hide: "hide"
        case .show: "show"
        }
    }

    /// The paths as written; the second path of `symlink` is the target of the link.
    package var paths: [PathBytes] {
        switch self {
        case .create(let path), .write(let path), .append(let path), .replace(let path), .delete(let path),
            .chmod(let path),
            .touch(let path), .open(let path), .close(let path), .read(let path), .mkdir(let path), .rmdir(let path),
            .mount(let path), .umount(let path), .hide(let path), .show(let path):
            [path]
        case .rename(let from, let to), .swap(let from, let to), .folder(let from, let to), .link(let from, let to),
            .symlink(let from, let to):
            [from, to]
        }
    }

    package var description: String { ([verb] + paths.map(\.description)).joined(separator: " ") }
}
