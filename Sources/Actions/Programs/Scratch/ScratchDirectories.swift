import Glibc
package import Rules
import Synchronization
package import System

/// Creates the empty directory that each attempt works in, and removes it with everything that is left there.
///
/// The directories are located in one of this Alight process alone, so that the next process can detect abandoned ones.
package struct ScratchDirectories: Sendable {
    /// The directory that contains them.
    package let base: PathBytes
    /// The entry of another user at the default path, because of which this directory is used instead.
    package let passedOver: PathBytes?
    private let own: InstanceDirectory

    /// - Parameters:
    ///   - base: An absolute path. It is created when it is first needed, with mode 0700; its parent has to exist.
    ///   - passedOver: The entry of another user at the default path.
    package init(base: PathBytes, passedOver: PathBytes? = nil) {
        self.base = base
        self.passedOver = passedOver
        own = InstanceDirectory(in: base)
    }

    /// Selects the default path: the first of `serviceDirectories`, else `/run/alight` for root, else
    /// `$XDG_RUNTIME_DIR/alight`, else `alight-UID` in the directory for temporary files.
    ///
    /// - Parameters:
    ///   - serviceDirectories: The directories that a service manager has created for Alight, as in `$RUNTIME_DIRECTORY`:
    ///     absolute paths, separated by colons.
    ///   - runtimeDirectory: `$XDG_RUNTIME_DIR`.
    ///   - temporaryDirectory: `$TMPDIR`.
    ///   - user: The user that Alight runs as.
    package init(
        serviceDirectories: PathBytes? = nil, runtimeDirectory: PathBytes?, temporaryDirectory: PathBytes?, user: UInt32
    ) {
        let first = serviceDirectories?.bytes.split(separator: UInt8(ascii: ":")).first
        if let first, first.first == UInt8(ascii: "/") {
            self.init(base: PathBytes(first))
        } else if user == 0 {
            self.init(base: "/run/alight")
        } else if let runtimeDirectory, !runtimeDirectory.bytes.isEmpty {
            self.init(base: runtimeDirectory.appending("alight"))
        } else {
            let directory = UserDirectory(in: temporaryDirectory ?? "/tmp", user: user)
            self.init(base: directory.path, passedOver: directory.passedOver)
        }
    }

    /// Creates an empty directory with mode 0700, which no other attempt gets until ``remove(_:)``.
    ///
    /// It belongs to the user, who can then also traverse the directory that contains it, but not read that.
    package func make(user: ProgramUser? = nil) throws(ScratchFailure) -> PathBytes {
        let directory = try makeNew(mode: user == nil ? 0o700 : 0o711)
        if let user, directory.withCString({ lchown($0, user.uid, user.gid) }) != 0 {
            throw ScratchFailure(errno, "give '\(user.text)'", directory)
        }
        return directory
    }

    private func makeNew(mode: mode_t) throws(ScratchFailure) -> PathBytes {
        try prepareBase(mode: mode)
        var renewals = 0
        while true {
            let parent = try own.path(mode: mode)
            // Each has another name: a process left from an earlier attempt finds nothing by the old one.
            let directory = parent.appending("\(own.count.add(1, ordering: .relaxed).newValue)")
            if directory.withCString({ mkdir($0, 0o700) }) == 0 { return directory }
            switch errno {
            // A program may have created directories next to its own.
            case EEXIST: continue
            // The directory of this process has been removed, as happens to `$XDG_RUNTIME_DIR` at logout.
            case ENOENT where renewals < Self.mostRenewals:
                renewals += 1
                own.forget(parent)
                try prepareBase(mode: mode)
            case let error: throw ScratchFailure(error, "create", directory)
            }
        }
    }

    /// How often the directory of this process is created again for one attempt.
    private static let mostRenewals = 8

    /// Removes the directory of this process, when nothing is run any more.
    package func removeInstanceDirectory() { own.remove() }

    /// Removes the directories of processes that were killed.
    ///
    /// The base directory is created if it does not exist, so that no other user can take its name later.
    package func removeAbandoned() {
        guard (try? prepareBase()) != nil, let names = try? KernelFileSystem().names(following: base) else { return }
        for name in names where InstanceDirectory.isOne(name) {
            let directory = base.appending(name.bytes)
            let lock = InstanceDirectory.lock(directory)
            guard lock >= 0 else { continue }
            try? Self.remove(directory)
            close(lock)
        }
    }

    /// The path of a directory such as an attempt would get.
    package var example: PathBytes { (own.made ?? base).appending("1") }

    /// Removes a scratch directory, or a directory with scratch directories.
    ///
    /// Links are removed, not followed. A mounted file system stays, and with it the directory.
    ///
    /// - Throws: The reason why it stays; all that could be removed of it is gone.
    package static func remove(_ directory: PathBytes) throws(ScratchFailure) {
        let (error, mount) = DirectoryRemoval.removeOwn(directory)
        if let mount { throw ScratchFailure(mounted: mount, in: directory) }
        if error != 0 { throw ScratchFailure(error, "remove", directory) }
    }

    /// Creates the base directory if needed, and makes sure that no other user owns or can read it: in `/tmp` another
    /// user could have created it first.
    ///
    /// Once other users may traverse it, it stays so: each directory in it protects itself.
    private func prepareBase(mode: mode_t = 0o700) throws(ScratchFailure) {
        if base.withCString({ mkdir($0, mode) }) != 0, errno != EEXIST { throw ScratchFailure(errno, "create", base) }
        var status = stat()
        guard base.withCString({ lstat($0, &status) }) == 0 else { throw ScratchFailure(errno, "stat", base) }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw ScratchFailure(EPERM, "use", base)
        }
        let present = status.st_mode & 0o777
        let wanted = present == 0o711 ? present : mode
        if present != wanted { _ = base.withCString { chmod($0, wanted) } }
    }
}

/// The error for a scratch directory that could not be created or removed.
package struct ScratchFailure: Error {
    package var message: String

    init(_ error: Int32, _ verb: String, _ directory: PathBytes) {
        message = "cannot \(verb) the scratch directory '\(directory)': \(SystemError(errno: error))"
    }

    /// Creates the error for a directory in which, or at which, a file system is mounted.
    init(mounted location: PathBytes, in directory: PathBytes) {
        message =
            "the scratch directory '\(directory)' is left in place, because something is mounted at '\(location)'; "
            + "unmount it: the directory is removed when Alight stops or starts again"
    }
}
