import Glibc
package import System

/// The directory of a user in one that all users may write to: `alight-UID`, or one with a number after that.
///
/// A name that another user has taken first is skipped. All processes of the user find the same directory.
package struct UserDirectory: Sendable, Hashable {
    package let path: PathBytes
    /// The directory, link or file of another user that has the first name.
    package let passedOver: PathBytes?

    package init(in parent: PathBytes, user: UInt32) {
        let first = parent.appending("alight-\(user)")
        let state = Self.state(of: first, user)
        passedOver = state == .foreign ? first : nil
        // Another user may have removed an entry that was in the way when the directory was created.
        var path = state == .own ? first : Self.made(in: parent, user) ?? first
        var number = 2
        while Self.state(of: path, user) == .foreign {
            path = parent.appending("alight-\(user)-\(number)")
            number += 1
        }
        self.path = path
    }

    /// Returns whether the path is a directory of the user, not a link, to which no other user may write.
    package static func isOwn(_ path: PathBytes, user: UInt32) -> Bool { state(of: path, user) == .own }

    enum State { case absent, own, foreign }

    static func state(of path: PathBytes, _ user: UInt32) -> State {
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else { return errno == ENOENT ? .absent : .foreign }
        let isOwn = status.st_mode & S_IFMT == S_IFDIR && status.st_uid == user && status.st_mode & 0o022 == 0
        return isOwn ? .own : .foreign
    }

    private static func made(in parent: PathBytes, _ user: UInt32) -> PathBytes? {
        let prefix = Array("alight-\(user)-".utf8)
        let names = ((try? KernelFileSystem().names(following: parent)) ?? []).filter { name in
            name.bytes.starts(with: prefix)
                && name.bytes.dropFirst(prefix.count).allSatisfy(\.isDigit)
        }
        return names.sorted().map { parent.appending($0.bytes) }.first { state(of: $0, user) == .own }
    }
}
