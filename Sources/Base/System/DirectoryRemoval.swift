import CAlightLinux
import Glibc

/// Removes a directory with all its contents, using one descriptor for each level.
///
/// Links are removed, not followed. Mount points are not crossed: a mounted file system belongs to others, and stays.
package struct DirectoryRemoval {
    /// The maximum number of levels below the root; a deeper directory is moved up to the root and emptied in another
    /// round.
    private static let mostLevels = 32

    /// Whether the directory is Alight's own: then entries that cannot be removed are skipped, and permissions that a
    /// program has removed are restored.
    private let isOwn: Bool
    private let isStopped: () -> Bool
    private var hasMoved = false
    /// The errno of the first entry that could not be removed.
    private var error: Int32 = 0
    /// The first mount point.
    private var mount: PathBytes?

    private init(isOwn: Bool, isStopped: @escaping () -> Bool) {
        self.isOwn = isOwn
        self.isStopped = isStopped
    }

    /// Removes a directory, or any other entry of that name; stops at the first entry that cannot be removed.
    ///
    /// - Returns: 0, or the errno: EBUSY for a mount point, EINTR when it was stopped.
    package static func remove(_ name: PathBytes, in directory: DirectoryHandle, isStopped: @escaping () -> Bool)
        -> Int32
    {
        var removal = DirectoryRemoval(isOwn: false, isStopped: isStopped)
        return removal.removeDirectory(name, in: directory, nil)
    }

    /// Removes a directory of Alight's own, or any other entry of that name; a missing one is not an error.
    ///
    /// - Returns: 0, or the errno, and the mount point because of which it stays, if that is the reason; everything in
    ///   it that could be removed is gone.
    package static func removeOwn(_ directory: PathBytes) -> (error: Int32, mount: PathBytes?) {
        let descriptor = openToFree(directory)
        defer { if descriptor >= 0 { close(descriptor) } }
        if directory.withCString({ rmdir($0) }) == 0 || errno == ENOENT { return (0, nil) }
        var removal = DirectoryRemoval(isOwn: true) { false }
        do throws(SystemError) {
            let parent = try DirectoryHandle(opening: directory.parent)
            let error = removal.removeDirectory(PathBytes(directory.lastComponent), in: parent, nil)
            return (error == ENOENT ? 0 : error, removal.mount)
        } catch {
            return (error.errno == ENOENT ? 0 : error.errno, nil)
        }
    }

    /// Whether a directory of Alight's own is empty, with the permissions that it was created with, and no mount point.
    package static func isUnchanged(_ directory: PathBytes) -> Bool {
        guard let reader = try? DirectoryReader(opened: openToFree(directory)), let own = try? reader.file.snapshot(),
            own.uid == geteuid(), own.mode == 0o700,
            own.mount == KernelFileSystem().stat(directory.parent).snapshot?.mount
        else { return false }
        var isEmpty = true
        // After each program: a small buffer, and no entry after the first. A directory that is removed meanwhile fails.
        let end = withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8) { buffer in
            var end: Int64 = 1
            while isEmpty, end > 0 { end = reader.next(into: buffer) { _ in isEmpty = false } }
            return end
        }
        return isEmpty && end == 0
    }

    /// Removes an empty directory of Alight's own; returns whether it no longer exists.
    package static func removeEmpty(_ directory: PathBytes) -> Bool {
        let descriptor = openToFree(directory)
        defer { if descriptor >= 0 { close(descriptor) } }
        return directory.withCString { rmdir($0) } == 0 || errno == ENOENT
    }

    /// Opens a directory before it is removed.
    ///
    /// Its space is freed when the descriptor is closed, which takes a millisecond on some file systems. That must not
    /// happen within rmdir(2), during which no directory can be created next to it.
    private static func openToFree(_ directory: PathBytes) -> Int32 {
        directory.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    }

    private var goesOn: Bool { error == 0 || isOwn }

    /// Removes a directory inside the root, or the root itself if `root` is nil.
    private mutating func removeDirectory(
        _ name: PathBytes, in directory: DirectoryHandle, _ root: DirectoryHandle?, level: Int = 0
    ) -> Int32 {
        let path = directory.path(of: name)
        let opened = name.withCString { cal_open_unmounted(directory.descriptor, $0) }
        guard opened >= 0 else { return record(opened == -EXDEV ? EBUSY : directory.unlink(name), path) }
        let inner = DirectoryHandle(opened, path)
        if let root, level > Self.mostLevels {
            let failure = directory.rename(name, to: root, TemporaryName.staged("deep"), CAL_RENAME_NEW)
            if failure == 0 { hasMoved = true }
            return record(failure, path)
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
        return record(name.withCString { unlinkat(directory.descriptor, $0, AT_REMOVEDIR) } == 0 ? 0 : errno, path)
    }

    private mutating func empty(_ directory: DirectoryHandle, _ root: DirectoryHandle, level: Int) {
        if isOwn { _ = cal_change_mode(directory.descriptor, 0o700) }
        guard let names = try? KernelFileSystem().names(following: ".", in: directory.descriptor) else {
            _ = record(EACCES, directory.path)
            return
        }
        for name in names where goesOn {
            if isStopped() {
                _ = record(EINTR, directory.path)
                return
            }
            let failure = directory.unlink(name)
            if failure == EISDIR || failure == EPERM {
                _ = removeDirectory(name, in: directory, root, level: level)
            } else {
                _ = record(failure, directory.path(of: name))
            }
        }
    }

    /// Records an entry that could not be removed, and ignores one that was.
    private mutating func record(_ failure: Int32, _ path: PathBytes) -> Int32 {
        guard failure != 0, failure != ENOENT else { return failure }
        if error == 0 { error = failure }
        if failure == EBUSY, mount == nil { mount = path }
        return error
    }
}
