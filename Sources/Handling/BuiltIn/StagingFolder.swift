import CAlightLinux
import FileEvents
import Glibc

/// A hidden folder beside a destination, which gets its name when it is complete, or is removed.
final class StagingFolder {
    let path: PathBytes
    let descriptor: Int32
    /// The umask, which can be asked for only by making something.
    let mask: UInt32

    init(beside destination: PathBytes) throws(FileFault) {
        path = FileCopy.temporaryName(beside: destination)
        guard path.withCString({ mkdir($0, 0o700) }) == 0 else { throw FileFault(errno, "cannot make '\(path)'") }
        descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else {
            let error = errno
            path.withCString { _ = rmdir($0) }
            mask = 0
            throw FileFault(error, "cannot open '\(path)'")
        }
        var facts: OpenFile.Facts?
        if mkdirat(descriptor, "mask", 0o777) == 0 {
            facts = OpenFile.facts("mask", in: descriptor)
            unlinkat(descriptor, "mask", AT_REMOVEDIR)
        }
        mask = facts.map { ~$0.mode & 0o777 } ?? 0o022
    }

    deinit {
        // What has its final name is not there any more, and what was replaced is.
        if let here = OpenFile.facts(path, in: AT_FDCWD), here.isFolder { FolderTree.remove(path, in: AT_FDCWD) }
        close(descriptor)
    }

    /// Gives it its final name, as `on_conflict` says; nil when it is left where it is.
    func publish(_ destination: Destination) throws(FileFault) -> PathBytes? {
        if destination.conflict == .overwrite {
            let error = path.withCString { from in destination.path.withCString { cal_rename_exchange(from, $0) } }
            // What was there has the temporary name now, and is removed by it.
            if error == 0 {
                removeFile()
                return destination.path
            }
            guard error == ENOENT else { throw FileFault(error, "cannot exchange '\(destination.path)'") }
        }
        var way = destination
        if way.conflict == .overwrite { way.conflict = .fail }
        switch try way.publish(path) {
        case .done(let name): return name
        case .skipped: return nil
        }
    }

    /// Removes what was replaced, if it is no folder.
    private func removeFile() { path.withCString { _ = unlink($0) } }
}

/// Folders with all that is in them.
enum FolderTree {
    /// Removes a folder and everything below it; links are removed, not followed.
    static func remove(_ name: PathBytes, in parent: Int32) {
        let descriptor = name.withCString { openat(parent, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else {
            name.withCString { _ = unlinkat(parent, $0, 0) }
            return
        }
        // Its files may have taken away the right to write there.
        fchmod(descriptor, 0o700)
        for child in (try? OpenFile.names(in: descriptor)) ?? [] {
            if child.withCString({ unlinkat(descriptor, $0, 0) }) != 0 { remove(child, in: descriptor) }
        }
        close(descriptor)
        name.withCString { _ = unlinkat(parent, $0, AT_REMOVEDIR) }
    }

    /// Whether two folders hold the same: names, types, contents, targets of links.
    static func areSame(_ one: Int32, _ other: Int32) -> Bool {
        guard let names = try? OpenFile.names(in: one), let others = try? OpenFile.names(in: other), names == others
        else { return false }
        return names.allSatisfy { name in
            guard let here = OpenFile.facts(name, in: one), let there = OpenFile.facts(name, in: other),
                here.mode & UInt32(S_IFMT) == there.mode & UInt32(S_IFMT)
            else { return false }
            if here.isLink { return target(name, in: one) == target(name, in: other) }
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
            let left = name.withCString { openat(one, $0, flags) }
            guard left >= 0 else { return false }
            defer { close(left) }
            let right = name.withCString { openat(other, $0, flags) }
            guard right >= 0 else { return false }
            defer { close(right) }
            return here.isFolder ? areSame(left, right) : OpenFile.haveSameContent(left, right)
        }
    }

    private static func target(_ name: PathBytes, in folder: Int32) -> [CChar]? {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = name.withCString { readlinkat(folder, $0, &target, target.count) }
        return length < 0 ? nil : Array(target[..<length])
    }
}
