import FileEvents
import Glibc
import System

/// Hidden names beside a file, which no rule sees unless it asks for everything.
///
/// They are of files that have no final name yet, or no name any more. Whoever has
/// such a file open holds a lock (flock(2)) on it: one without a lock is a dead
/// process's, see ``Leftovers``.
enum TemporaryName {
    private static let ending = Array(".alight-tmp".utf8)
    private static let takenEnding = Array(".taken.alight-tmp".utf8)
    private static let randomLength = 13
    /// The most bytes of a file's own name, so that there is room for the rest in 255.
    static let longestName = 255 - 2 - randomLength - takenEnding.count

    /// A name for what is to become `name`.
    static func staged(_ name: PathBytes) -> PathBytes { make(name, ending) }

    /// A name for what had `name`, until it is known whether it may be removed.
    static func taken(_ name: PathBytes) -> PathBytes { make(name, takenEnding) }

    private static func make(_ name: PathBytes, _ ending: [UInt8]) -> PathBytes {
        let random = String(UInt64.random(in: 0...UInt64.max), radix: 36)
        let padded = String(repeating: "0", count: randomLength - random.utf8.count) + random
        return PathBytes([.dot] + name.bytes.prefix(longestName) + [.dot] + Array(padded.utf8) + ending)
    }

    enum Kind: Equatable {
        case staged
        /// With the name that it had.
        case taken(PathBytes)
    }

    /// What kind of temporary name it is; nil when it is none.
    static func kind(of name: PathBytes) -> Kind? {
        let bytes = name.bytes
        guard bytes.first == .dot, bytes.count > randomLength + 2 + ending.count,
            bytes.suffix(ending.count).elementsEqual(ending)
        else { return nil }
        guard bytes.suffix(takenEnding.count).elementsEqual(takenEnding) else { return .staged }
        let kept = bytes.dropFirst().dropLast(takenEnding.count + randomLength + 1)
        return kept.isEmpty ? .staged : .taken(PathBytes(kept))
    }

    /// Takes the lock that tells that somebody works with the open file; false when a cleaner has it.
    @discardableResult
    static func lock(_ descriptor: Int32) -> Bool { flock(descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK }
}
