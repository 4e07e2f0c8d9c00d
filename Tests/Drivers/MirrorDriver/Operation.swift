import System

/// An operation of a worker on files.
///
/// Paths are relative to the tree. An operation may fail because of another worker;
/// that is part of the test.
enum Operation: Hashable, Sendable {
    /// Opens with O_CREAT and O_TRUNC, writes and closes.
    case create(PathBytes, size: Int)
    case append(PathBytes, size: Int)
    case truncate(PathBytes, size: Int)
    /// Writes from the start without truncating.
    case rewrite(PathBytes, size: Int)
    /// Writes through a shared mapping; `closesFirst` closes the descriptor before the write.
    case map(PathBytes, closesFirst: Bool)
    /// Opens, writes one half, pauses, writes the other half and closes.
    case hold(PathBytes, size: Int, milliseconds: Int)
    /// Writes another file and renames it over the path.
    case replace(PathBytes, size: Int, by: PathBytes)
    case rename(PathBytes, to: PathBytes)
    /// Exchanges two paths of any type.
    case exchange(PathBytes, PathBytes)
    case link(PathBytes, to: PathBytes)
    case symlink(target: PathBytes, PathBytes)
    /// Writes an unnamed file (O_TMPFILE) and links it to a path.
    case linkUnnamed(PathBytes, size: Int)
    case pipe(PathBytes)
    case unlink(PathBytes)
    /// Unlinks and immediately creates, so that the inode is likely to be reused.
    case recreate(PathBytes, size: Int)
    case makeDirectory(PathBytes)
    /// Runs `mkdir -p` and immediately creates files inside.
    case makeTree(PathBytes, names: [PathBytes], size: Int)
    case removeTree(PathBytes)
    /// Removes a directory tree and immediately creates the directory and a file again.
    case remakeTree(PathBytes, name: PathBytes, size: Int)
    /// Renames a directory and immediately creates an empty one in its place.
    case moveAndMake(PathBytes, to: PathBytes)
    case chmod(PathBytes, mode: UInt16)
    /// Sets the times, of a link itself; nil for now.
    case touch(PathBytes, Timestamp?)
    case pause(milliseconds: Int)

    /// The paths of the operation.
    var paths: [PathBytes] {
        switch self {
        case .create(let path, _), .append(let path, _), .truncate(let path, _), .rewrite(let path, _),
            .map(let path, _), .hold(let path, _, _), .symlink(_, let path), .linkUnnamed(let path, _),
            .pipe(let path), .unlink(let path), .recreate(let path, _), .makeDirectory(let path),
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
        case .makeDirectory: "mkdir"
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
    /// The path in printable ASCII, with long names shortened; unique among the names of a universe.
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
