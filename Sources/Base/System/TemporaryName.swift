import Glibc

/// Hidden names beside a file, which a rule does not match unless it includes everything.
///
/// They belong to files that have no final name yet, or no longer have one. A process that has such a file open holds a
/// lock (flock(2)) on it. A file without a lock was left by a process that has died; see ``Leftovers``.
package enum TemporaryName {
    private static let ending = Array(".alight-tmp".utf8)
    private static let takenEnding = Array(".taken.alight-tmp".utf8)
    private static let randomLength = 13
    /// The maximum length of a file's own name in bytes, so that the result does not exceed 255.
    package static let longestName = 255 - 2 - randomLength - takenEnding.count

    /// Returns a temporary name for a file that will be named `name`.
    package static func staged(_ name: PathBytes) -> PathBytes { make(name, ending) }

    /// Returns a temporary name for a file that was named `name`, until it is known whether it may be removed.
    package static func taken(_ name: PathBytes) -> PathBytes { make(name, takenEnding) }

    private static func make(_ name: PathBytes, _ ending: [UInt8]) -> PathBytes {
        let random = String(UInt64.random(in: 0...UInt64.max), radix: 36, width: randomLength).lowercased()
        return PathBytes([.dot] + name.bytes.prefix(longestName) + [.dot] + Array(random.utf8) + ending)
    }

    package enum Kind: Equatable {
        case staged
        /// A file that was renamed away, with its former name.
        case taken(PathBytes)
    }

    /// Returns the kind of a temporary name; nil for any other name.
    package static func kind(of name: PathBytes) -> Kind? {
        let bytes = name.bytes
        guard bytes.first == .dot, bytes.count > randomLength + 2 + ending.count,
            bytes.suffix(ending.count).elementsEqual(ending)
        else { return nil }
        guard bytes.suffix(takenEnding.count).elementsEqual(takenEnding) else { return .staged }
        let former = bytes.dropFirst().dropLast(takenEnding.count + randomLength + 1)
        return former.isEmpty ? .staged : .taken(PathBytes(former))
    }

    /// Takes the lock that marks an open file as in use; returns false if a cleanup holds it.
    @discardableResult
    package static func lock(_ descriptor: Int32) -> Bool {
        flock(descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK
    }
}
