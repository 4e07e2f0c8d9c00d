import FileEvents
import Glibc
import Rules
import Synchronization
package import System

/// Makes the empty folder that each attempt works in, and removes it with all that is left there.
///
/// They lie in a folder of this Alight alone, so that the next one can tell which are abandoned.
package struct ScratchFolders: Sendable {
    /// The folder that holds them.
    package let base: PathBytes
    /// What another user has in the place of the usual folder, so that this one is used instead.
    package let passedOver: PathBytes?
    private let own: OwnFolder
    private let counter = Counter()

    private final class Counter: Sendable {
        let count = Atomic(0)
    }

    /// - Parameters:
    ///   - base: An absolute path. It is made when it is first needed, of
    ///     mode 0700; its parent has to exist.
    ///   - passedOver: What another user has in the place of the usual folder.
    package init(base: PathBytes, passedOver: PathBytes? = nil) {
        self.base = base
        self.passedOver = passedOver
        own = OwnFolder(in: base)
    }

    /// The usual place: the first of `serviceFolders`, else `$XDG_RUNTIME_DIR/alight`, as root `/run/alight`, else
    /// `alight-UID` for temporary files.
    ///
    /// - Parameters:
    ///   - serviceFolders: What a service manager has made for Alight, as `$RUNTIME_DIRECTORY` tells it: absolute
    ///     paths with colons between them.
    ///   - runtimeFolder: `$XDG_RUNTIME_DIR`.
    ///   - temporaryFolder: `$TMPDIR`.
    ///   - user: Who runs Alight.
    package init(
        serviceFolders: PathBytes? = nil, runtimeFolder: PathBytes?, temporaryFolder: PathBytes?, user: UInt32
    ) {
        let first = serviceFolders?.bytes.split(separator: UInt8(ascii: ":")).first
        if let first, first.first == UInt8(ascii: "/") {
            self.init(base: PathBytes(Array(first)))
        } else if user == 0 {
            self.init(base: "/run/alight")
        } else if let runtimeFolder, !runtimeFolder.bytes.isEmpty {
            self.init(base: runtimeFolder.appending("alight"))
        } else {
            let folder = UserFolder(in: temporaryFolder ?? "/tmp", user: user)
            self.init(base: folder.path, passedOver: folder.passedOver)
        }
    }

    /// Gives an empty folder of mode 0700, which nobody else has until ``remove(_:)``.
    ///
    /// It belongs to the user, who can then also go through the folder that it is in, but not read that.
    func make(user: ProgramUser? = nil) throws(ScratchFailure) -> PathBytes {
        let mode: mode_t = user == nil ? 0o700 : 0o711
        let folder = try makeNew(mode: mode)
        if let user {
            guard folder.withCString({ lchown($0, user.uid, user.gid) }) == 0 else {
                throw ScratchFailure(errno, "give '\(user.text)'", folder)
            }
        }
        return folder
    }

    private func makeNew(mode: mode_t) throws(ScratchFailure) -> PathBytes {
        try prepareBase(mode: mode)
        var renewals = 0
        while true {
            let parent = try own.path(mode: mode)
            // Each has another name: a process that was to end with an earlier attempt finds nothing by the old one.
            let number = counter.count.add(1, ordering: .relaxed).newValue
            let folder = parent.appending(Array("\(number)".utf8))
            if folder.withCString({ mkdir($0, 0o700) }) == 0 { return folder }
            switch errno {
            // A program may have made folders beside its own.
            case EEXIST: continue
            // Somebody has removed the folder of this Alight, as happens to `$XDG_RUNTIME_DIR` at a logout.
            case ENOENT where renewals < Self.mostRenewals:
                renewals += 1
                own.forget(parent)
                try prepareBase(mode: mode)
            case let error: throw ScratchFailure(error, "make", folder)
            }
        }
    }

    /// How often the folder of this Alight is made anew for one attempt.
    private static let mostRenewals = 8

    /// Gives the folder of this Alight up, when nothing is run any more.
    func giveUp() { own.giveUp() }

    /// Removes the folders of those who were killed.
    ///
    /// The folder is made if there is none, so that no other user can take its name later.
    package func removeAbandoned() {
        guard (try? prepareBase()) != nil, let names = try? DiskProbe.names(following: base) else { return }
        for name in names where OwnFolder.isOne(name) {
            let folder = base.appending(name.bytes)
            let lock = OwnFolder.lock(folder)
            guard lock >= 0 else { continue }
            try? FolderRemoval.remove(folder)
            close(lock)
        }
    }

    /// Removes a folder that was made in ``base``; what prevents that, if anything does.
    package func discard(folder: PathBytes) -> String? {
        do throws(ScratchFailure) {
            try FolderRemoval.remove(folder)
            return nil
        } catch {
            return error.message
        }
    }

    /// A folder such as an attempt would get.
    var example: PathBytes { (own.made ?? base).appending(Array("1".utf8)) }

    /// Removes a folder and everything below it.
    ///
    /// Links are removed, not followed. What is mounted there is left, and with it the folder.
    func remove(_ folder: PathBytes) throws(ScratchFailure) { try FolderRemoval.remove(folder) }

    /// Nobody else may own or read the folder: in `/tmp` another user could have made it first.
    ///
    /// Once others may go through it, it stays so: what is in it is closed by itself.
    private func prepareBase(mode: mode_t = 0o700) throws(ScratchFailure) {
        if base.withCString({ mkdir($0, mode) }) != 0, errno != EEXIST { throw ScratchFailure(errno, "make", base) }
        var status = stat()
        guard base.withCString({ lstat($0, &status) }) == 0 else { throw ScratchFailure(errno, "look at", base) }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw ScratchFailure(EPERM, "use", base)
        }
        let present = status.st_mode & 0o777
        let wanted = present == 0o711 ? present : mode
        if present != wanted { _ = base.withCString { chmod($0, wanted) } }
    }
}

/// A folder that could not be made or removed.
struct ScratchFailure: Error {
    var message: String

    init(_ error: Int32, _ verb: String, _ folder: PathBytes) {
        message = "cannot \(verb) the scratch folder '\(folder)': \(String(cString: strerror(error)))"
    }

    /// Something is mounted in it, or in its place.
    init(mounted place: PathBytes, in folder: PathBytes) {
        message =
            "the scratch folder '\(folder)' stays, since something is mounted at '\(place)'; "
            + "unmount it: the folder is removed when Alight ends, or starts again"
    }
}
