import CAlightLinux
import FileEvents
import Glibc

/// Removes a folder with all that is in it, by a descriptor for each level.
///
/// Links are removed, not followed. No mount is crossed: what a program has mounted
/// is somebody else's data, and stays.
struct FolderRemoval {
    /// Levels below the root; a deeper folder is moved up to the root and emptied in another round.
    private static let mostLevels = 32

    private let root: Int32
    private var hasMore = true
    private var moved = 0
    /// The first place that something is mounted at.
    private var mount: PathBytes?

    private init(root: Int32) { self.root = root }

    /// Removes a folder, or whatever has its name; nothing there is no error.
    ///
    /// - Throws: Why it stays; all that could be removed of it is gone.
    static func remove(_ folder: PathBytes) throws(ScratchFailure) {
        if folder.withCString({ rmdir($0) }) == 0 || errno == ENOENT { return }
        let parent = folder.parent.withCString { cal_open_root($0) }
        guard parent >= 0 else { throw ScratchFailure(-parent, "remove", folder) }
        defer { close(parent) }
        let name = PathBytes(folder.lastComponent)
        let opened = open(name, in: parent)
        if opened == -EXDEV { throw ScratchFailure(mounted: folder, in: folder) }
        var mount: PathBytes?
        if opened >= 0 {
            var removal = FolderRemoval(root: opened)
            while removal.hasMore {
                removal.hasMore = false
                removal.empty(opened, folder, level: 0)
            }
            mount = removal.mount
            close(opened)
        }
        guard name.withCString({ unlinkat(parent, $0, opened >= 0 ? AT_REMOVEDIR : 0) }) != 0, errno != ENOENT else {
            return
        }
        let error = errno
        if let mount { throw ScratchFailure(mounted: mount, in: folder) }
        throw ScratchFailure(error, "remove", folder)
    }

    private mutating func empty(_ folder: Int32, _ path: PathBytes, level: Int) {
        // A program may have taken away its own right to write here.
        fchmod(folder, 0o700)
        for name in OpenFolder.names(in: folder) ?? [] {
            if name.withCString({ unlinkat(folder, $0, 0) }) == 0 { continue }
            let place = path.appending(name.bytes)
            if errno == EBUSY { note(place) }
            guard errno == EISDIR || errno == EPERM else { continue }
            if level >= Self.mostLevels {
                moved += 1
                let above = PathBytes(".moved-\(moved)")
                if name.withCString({ from in above.withCString { renameat(folder, from, root, $0) } }) == 0 {
                    hasMore = true
                } else if errno == EBUSY {
                    note(place)
                }
                continue
            }
            let inner = Self.open(name, in: folder)
            if inner == -EXDEV { note(place) }
            guard inner >= 0 else { continue }
            empty(inner, place, level: level + 1)
            close(inner)
            _ = name.withCString { unlinkat(folder, $0, AT_REMOVEDIR) }
        }
    }

    private mutating func note(_ place: PathBytes) { if mount == nil { mount = place } }

    /// Opens a folder for reading; a negative errno when that can't be done, EXDEV when something is mounted there.
    private static func open(_ name: PathBytes, in folder: Int32) -> Int32 {
        let place = name.withCString { cal_open_unmounted(folder, $0) }
        guard place >= 0 else { return place }
        defer { close(place) }
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        var opened = openat(place, ".", flags)
        if opened < 0, errno == EACCES, cal_change_mode(place, 0o700) == 0 { opened = openat(place, ".", flags) }
        return opened >= 0 ? opened : -errno
    }
}
