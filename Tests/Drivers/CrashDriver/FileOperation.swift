import System
import TestKit

/// An operation of a worker on files; paths are relative to the tree.
enum FileOperation {
    case write(PathBytes, size: Int)
    /// Writes another file, which no rule matches, and renames it over the path.
    case replace(PathBytes, size: Int)
    /// Opens, writes one half, pauses, writes the other half and closes.
    case writeInParts(PathBytes, size: Int, milliseconds: Int)
    case append(PathBytes, size: Int)
    /// Writes a file outside the tree, links it into place and removes its first name.
    case link(PathBytes, size: Int)
    /// Writes a file outside the tree and renames it into place.
    case moveIn(PathBytes, size: Int)
    case moveOut(PathBytes)
    case rename(PathBytes, to: PathBytes)
    case remove(PathBytes)
    case renameDirectory(PathBytes, to: PathBytes)
    case removeDirectory(PathBytes)
    case pause(milliseconds: Int)

    var paths: [PathBytes] {
        switch self {
        case .write(let path, _), .replace(let path, _), .writeInParts(let path, _, _), .append(let path, _),
            .link(let path, _), .moveIn(let path, _), .moveOut(let path), .remove(let path), .removeDirectory(let path):
            [path]
        case .rename(let path, let other), .renameDirectory(let path, let other): [path, other]
        case .pause: []
        }
    }

    var summary: String {
        switch self {
        case .write(_, let size): "write, \(size) bytes"
        case .replace(_, let size): "replace, \(size) bytes"
        case .writeInParts(_, let size, let pause): "write, \(size) bytes with a pause of \(pause) ms"
        case .append(_, let size): "append, \(size) bytes"
        case .link(_, let size): "link in, \(size) bytes"
        case .moveIn(_, let size): "move in, \(size) bytes"
        case .moveOut: "move out"
        case .rename: "rename"
        case .remove: "remove"
        case .renameDirectory: "rename the directory"
        case .removeDirectory: "remove the directory"
        case .pause(let pause): "pause of \(pause) ms"
        }
    }
}

/// The operations of one worker in one life of the program, determined by the seed only.
struct FileOperationGenerator {
    private var random: SeededGenerator

    static let directories: [PathBytes] = ["a", "a/b", "d", "slow"]
    private static let fileNames = (0..<10).map { "f\($0)" }

    init(seed: UInt64, life: Int, worker: Int) {
        random = SeededGenerator(seed: seed, parts: 11, UInt64(life), UInt64(worker))
    }

    private static let weights: [(Int, @Sendable (inout FileOperationGenerator) -> FileOperation)] = [
        (10, { .write($0.file(), size: $0.size()) }),
        (6, { .replace($0.file(), size: $0.size()) }),
        (4, { .writeInParts($0.file(), size: $0.size(), milliseconds: $0.random.below(150)) }),
        (8, { .append($0.file(), size: 20 + $0.random.below(300)) }),
        (3, { .link($0.file(), size: $0.size()) }),
        (6, { .moveIn($0.file(), size: $0.size()) }),
        (3, { .moveOut($0.file()) }),
        (8, { .rename($0.file(), to: $0.file()) }),
        (7, { .remove($0.file()) }),
        (1, { .renameDirectory($0.random.pick(directories), to: $0.random.pick(directories)) }),
        (1, { .removeDirectory($0.random.pick(directories)) }),
        (14, { .pause(milliseconds: $0.random.isOne(in: 4) ? 60 + $0.random.below(150) : $0.random.below(25)) }),
    ]

    mutating func next() -> FileOperation {
        let make = random.pick(weighted: Self.weights)
        return make(&self)
    }

    private mutating func file() -> PathBytes {
        let name = random.pick(Self.fileNames)
        return random.isOne(in: 4) ? PathBytes(name) : random.pick(Self.directories).appending(name)
    }

    /// Returns a size that is mostly small and sometimes so large that a kill interrupts its copy.
    private mutating func size() -> Int {
        switch random.below(30) {
        case 0: 0
        case 1..<22: 20 + random.below(400)
        case 22..<29: 1000 + random.below(100_000)
        default: 1_000_000 + random.below(5_000_000)
        }
    }
}
