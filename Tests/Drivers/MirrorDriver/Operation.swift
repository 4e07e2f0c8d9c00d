import FileEvents
import System

/// One thing that a worker does to files.
///
/// Paths are relative to the tree. An operation may fail, because another worker
/// was there before: that is part of the play.
enum Operation: Hashable, Sendable {
    /// Opens with O_CREAT and O_TRUNC, writes, closes.
    case create(PathBytes, size: Int)
    case append(PathBytes, size: Int)
    case truncate(PathBytes, size: Int)
    /// Writes from the start without truncating.
    case rewrite(PathBytes, size: Int)
    /// Writes through a shared mapping; `closesFirst` closes the descriptor before the write.
    case map(PathBytes, closesFirst: Bool)
    /// Opens, writes one half, rests, writes the other, closes.
    case hold(PathBytes, size: Int, milliseconds: Int)
    /// Writes another file and renames it over the path.
    case replace(PathBytes, size: Int, by: PathBytes)
    case rename(PathBytes, to: PathBytes)
    /// Lets two paths change places, whatever they are.
    case exchange(PathBytes, PathBytes)
    case link(PathBytes, to: PathBytes)
    case symlink(target: PathBytes, PathBytes)
    /// Writes a file without a name (O_TMPFILE) and gives it one.
    case linkUnnamed(PathBytes, size: Int)
    case pipe(PathBytes)
    case unlink(PathBytes)
    /// Unlinks and creates at once, so that the inode is likely to be used again.
    case recreate(PathBytes, size: Int)
    case makeFolder(PathBytes)
    /// `mkdir -p`, and files into it at once.
    case makeTree(PathBytes, names: [PathBytes], size: Int)
    case removeTree(PathBytes)
    /// Removes a folder with all in it, and makes it and a file anew at once.
    case remakeTree(PathBytes, name: PathBytes, size: Int)
    /// Renames a folder, and makes an empty one in its place at once.
    case moveAndMake(PathBytes, to: PathBytes)
    case chmod(PathBytes, mode: UInt16)
    /// Sets the times, of a link itself; nil is now.
    case touch(PathBytes, Timestamp?)
    case pause(milliseconds: Int)

    /// The paths that it is about.
    var paths: [PathBytes] {
        switch self {
        case .create(let path, _), .append(let path, _), .truncate(let path, _), .rewrite(let path, _),
            .map(let path, _), .hold(let path, _, _), .symlink(_, let path), .linkUnnamed(let path, _),
            .pipe(let path), .unlink(let path), .recreate(let path, _), .makeFolder(let path),
            .makeTree(let path, _, _), .removeTree(let path), .remakeTree(let path, _, _), .chmod(let path, _),
            .touch(let path, _):
            [path]
        case .replace(let other, _, let path), .rename(let path, let other), .exchange(let path, let other),
            .link(let path, let other), .moveAndMake(let path, let other):
            [path, other]
        case .pause: []
        }
    }

    /// The word by which operations of this kind are left out.
    var word: String { summary.prefix(while: \.isLetter).description }

    /// The operation without its paths.
    var summary: String {
        switch self {
        case .create(_, let size): "create, \(size) bytes"
        case .append(_, let size): "append, \(size) bytes"
        case .truncate(_, let size): "truncate to \(size) bytes"
        case .rewrite(_, let size): "rewrite, \(size) bytes"
        case .map(_, let closesFirst): closesFirst ? "mmap, write after the close" : "mmap, write"
        case .hold(_, let size, let pause): "hold, \(size) bytes with a pause of \(pause) ms"
        case .replace(_, let size, _): "replace, \(size) bytes"
        case .rename: "rename"
        case .exchange: "exchange"
        case .link: "link"
        case .symlink(let target, _): "symlink to \(target.shown)"
        case .linkUnnamed(_, let size): "tmpfile, linked, \(size) bytes"
        case .pipe: "mkfifo"
        case .unlink: "unlink"
        case .recreate(_, let size): "recreate, \(size) bytes"
        case .makeFolder: "mkdir"
        case .makeTree(_, let names, let size):
            "mkdirs with \(names.map(\.shown).joined(separator: " ")), \(size) bytes"
        case .removeTree: "rmtree"
        case .remakeTree(_, let name, let size): "remake with \(name.shown), \(size) bytes"
        case .moveAndMake: "supplant"
        case .chmod(_, let mode): "chmod \(String(mode, radix: 8))"
        case .touch(_, let time): "touch \(time.map(\.description) ?? "now")"
        case .pause(let pause): "pause of \(pause) ms"
        }
    }
}

extension PathBytes {
    /// The path in printable ASCII, long names cut; in a universe of names it stands for these bytes alone.
    var shown: String {
        let parts = bytes.split(separator: .slash, omittingEmptySubsequences: false)
        return parts.map { part in
            part.count > 100 ? "\(Self.escaped(part.prefix(4)))...(\(part.count) bytes)" : Self.escaped(part)
        }.joined(separator: "/")
    }

    private static func escaped(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.reduce(into: "") { text, byte in
            if (0x21...0x7E).contains(byte), byte != UInt8(ascii: "\\") {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16)
                text += "\\x" + (digits.count == 1 ? "0" : "") + digits
            }
        }
    }
}
