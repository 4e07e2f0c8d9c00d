import Glibc

/// The mounts of this process, see proc_pid_mountinfo(5).
///
/// The descriptor reports an exceptional condition to poll(2) when a mount was added or removed. The removal of a bind
/// mount has no other sign.
package final class MountTable {
    package struct Mount: Hashable {
        var number: Int
        package var point: PathBytes
    }

    package let descriptor: Int32
    private var mounts: Set<Mount>

    /// Opens the table; nil if it cannot be opened.
    package init?() {
        descriptor = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        mounts = Self.read(descriptor) ?? []
    }

    deinit { close(descriptor) }

    /// Whether the mount with this id of statx(2) still exists, even if another mount covers it.
    package static func isMounted(_ number: UInt64) -> Bool {
        MountTable()?.mounts.contains { UInt64($0.number) == number } ?? false
    }

    /// The current mount points.
    package static var points: Set<PathBytes> { Set(MountTable()?.mounts.map(\.point) ?? []) }

    /// Returns the mounts added and removed since the last call, outer mounts first.
    package func changes() -> (came: [PathBytes], went: [PathBytes]) {
        guard let present = Self.read(descriptor) else { return ([], []) }
        let came = present.subtracting(mounts).map(\.point).sorted()
        let went = mounts.subtracting(present).map(\.point).sorted()
        mounts = present
        return (came, went)
    }

    private static func read(_ descriptor: Int32) -> Set<Mount>? {
        lseek(descriptor, 0, SEEK_SET) == 0 ? ProcFile.bytes(of: descriptor).map(parse) : nil
    }

    /// Parses the lines of the table: id, parent, device, root, mount point, and more.
    package static func parse(_ bytes: [UInt8]) -> Set<Mount> {
        var mounts: Set<Mount> = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard fields.count > 4, let number = Int(String(decoding: fields[0], as: UTF8.self)) else { continue }
            mounts.insert(Mount(number: number, point: PathBytes(unescaped(fields[4]))))
        }
        return mounts
    }

    /// Replaces escapes such as `\040`, which the kernel writes for spaces, tabs, newlines and backslashes.
    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            {
                result.append(value)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
