import Glibc

/// The user accounts of the machine.
package struct Accounts: Sendable {
    package typealias Account = (name: String, uid: UInt32, gid: UInt32, home: PathBytes)

    package var named: @Sendable (String) -> Account? = { name in read { getpwnam_r(name, $0, $1, $2, $3) } }
    package var numbered: @Sendable (UInt32) -> Account? = { number in read { getpwuid_r(number, $0, $1, $2, $3) } }
    /// All groups of the named user, including the given group.
    package var groups: @Sendable (String, UInt32) -> [UInt32] = { Self.groups(of: $0, $1) }

    package init() {}

    private static func read(
        _ call: (
            UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
        ) -> Int32
    ) -> Account? {
        var record = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 1 << 16)
        let size = buffer.count
        return buffer.withUnsafeMutableBufferPointer { buffer -> Account? in
            guard let start = buffer.baseAddress, call(&record, start, size, &found) == 0, found != nil,
                let name = record.pw_name
            else { return nil }
            let home = record.pw_dir.map { PathBytes(String(cString: $0)) } ?? "/"
            return (String(cString: name), record.pw_uid, record.pw_gid, home.bytes.first == .slash ? home : "/")
        }
    }

    /// Returns the gid of a group of this machine.
    package static func group(named name: String) -> UInt32? {
        var record = Glibc.group()
        var found: UnsafeMutablePointer<Glibc.group>?
        // All members of a group go into the buffer, and there may be many.
        var buffer = [CChar](repeating: 0, count: 1 << 20)
        guard getgrnam_r(name, &record, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return record.gr_gid
    }

    private static func groups(of name: String, _ gid: UInt32) -> [UInt32] {
        // No user has more: NGROUPS_MAX.
        var count: Int32 = 1 << 16
        var groups = [gid_t](repeating: 0, count: Int(count))
        return getgrouplist(name, gid, &groups, &count) >= 0 ? Array(groups.prefix(Int(count))) : [gid]
    }
}
