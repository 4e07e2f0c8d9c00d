import CAlightLinux
import FileEvents
import Glibc
import System

/// Removes a folder with all that is in it, by a descriptor for each level.
///
/// Links are removed, not followed. No mount is crossed: what is mounted is
/// somebody else's data, and stays.
struct FolderRemoval {
    /// Levels below the root; a deeper folder is moved up to the root and emptied in another round.
    private static let mostLevels = 32

    /// Whether the folder is Alight's own: what can't be removed is passed over, and rights that a program has taken away
    /// are given again.
    private let isOwn: Bool
    private let isStopped: () -> Bool
    private var hasMoved = false
    /// Of the first thing that could not be removed.
    private var error: Int32 = 0
    /// The first place that something is mounted at.
    private var mount: PathBytes?

    private init(isOwn: Bool, isStopped: @escaping () -> Bool) {
        self.isOwn = isOwn
        self.isStopped = isStopped
    }

    /// Removes a folder, or whatever has its name; ends at the first thing that can't be removed.
    ///
    /// - Returns: 0, or the errno: EBUSY for a mount, EINTR when it was stopped.
    static func remove(_ name: PathBytes, in folder: OpenFolder, isStopped: @escaping () -> Bool) -> Int32 {
        var removal = FolderRemoval(isOwn: false, isStopped: isStopped)
        return removal.removeFolder(name, in: folder, nil)
    }

    /// Removes a folder of Alight's own, or whatever has its name; nothing there is no error.
    ///
    /// - Throws: Why it stays; all that could be removed of it is gone.
    static func remove(_ folder: PathBytes) throws(ScratchFailure) {
        // What it occupies is freed when the descriptor is closed, which takes some file systems a millisecond: not within
        // rmdir(2), for whose duration nobody can make a folder beside it.
        let descriptor = folder.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        defer { if descriptor >= 0 { close(descriptor) } }
        if folder.withCString({ rmdir($0) }) == 0 || errno == ENOENT { return }
        var removal = FolderRemoval(isOwn: true) { false }
        let error: Int32
        switch OpenFolder.opened(folder.parent) {
        case .success(let parent): error = removal.removeFolder(PathBytes(folder.lastComponent), in: parent, nil)
        case .failure(let failure): error = failure.errno
        }
        if let mount = removal.mount { throw ScratchFailure(mounted: mount, in: folder) }
        if error != 0, error != ENOENT { throw ScratchFailure(error, "remove", folder) }
    }

    private var goesOn: Bool { error == 0 || isOwn }

    /// Removes a folder in the one that is removed, or that one itself if the root is nil.
    private mutating func removeFolder(
        _ name: PathBytes, in folder: OpenFolder, _ root: OpenFolder?, level: Int = 0
    ) -> Int32 {
        let path = folder.path(of: name)
        let opened = name.withCString { cal_open_unmounted(folder.descriptor, $0) }
        guard opened >= 0 else { return note(opened == -EXDEV ? EBUSY : folder.unlink(name), path) }
        let inner = OpenFolder(opened, path)
        if let root, level > Self.mostLevels {
            let failure = folder.rename(name, to: root, TemporaryName.staged("deep"), CAL_RENAME_NEW)
            if failure == 0 { hasMoved = true }
            return note(failure, path)
        }
        if let root {
            empty(inner, root, level: level + 1)
        } else {
            repeat {
                hasMoved = false
                empty(inner, inner, level: 1)
            } while hasMoved && goesOn
        }
        guard goesOn else { return error }
        return note(name.withCString { unlinkat(folder.descriptor, $0, AT_REMOVEDIR) } == 0 ? 0 : errno, path)
    }

    private mutating func empty(_ folder: OpenFolder, _ root: OpenFolder, level: Int) {
        if isOwn { _ = cal_change_mode(folder.descriptor, 0o700) }
        guard let names = try? folder.names() else {
            _ = note(EACCES, folder.path)
            return
        }
        for name in names where goesOn {
            if isStopped() {
                _ = note(EINTR, folder.path)
                return
            }
            let failure = folder.unlink(name)
            if failure == EISDIR || failure == EPERM {
                _ = removeFolder(name, in: folder, root, level: level)
            } else {
                _ = note(failure, folder.path(of: name))
            }
        }
    }

    /// Notes what could not be removed, if it could not.
    private mutating func note(_ failure: Int32, _ path: PathBytes) -> Int32 {
        guard failure != 0, failure != ENOENT else { return failure }
        if error == 0 { error = failure }
        if failure == EBUSY, mount == nil { mount = path }
        return error
    }
}
