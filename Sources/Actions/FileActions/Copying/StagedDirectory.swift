import ActionAPI
import CAlightLinux
import Glibc
import Rules
import System

/// A hidden directory beside its final location, which gets its name when it is complete, or is removed.
///
/// It is locked while it is open, which marks it as in use; see ``Leftovers``.
final class StagedDirectory {
    private let folder: DirectoryHandle
    private let name: PathBytes
    private let file: OpenFile
    /// The umask, which can be determined only by creating something.
    let mask: UInt32

    /// - Parameters:
    ///   - folder: The parent directory.
    ///   - final: The intended name.
    /// - Throws: A ``FileError`` if the directory cannot be created.
    init(in folder: DirectoryHandle, for final: PathBytes) throws(FileError) {
        let name = TemporaryName.staged(final)
        guard name.withCString({ mkdirat(folder.descriptor, $0, 0o700) }) == 0 else {
            throw FileError(errno, "cannot create '\(folder.path(of: name))'")
        }
        let file: OpenFile
        switch folder.open(name, CAL_OPEN_READING) {
        case .success(let opened): file = opened
        case .failure(let error): throw FileError(error.errno, "cannot open '\(folder.path(of: name))'")
        }
        guard TemporaryName.lock(file.descriptor) else {
            throw FileError(EAGAIN, "cannot lock '\(folder.path(of: name))'")
        }
        self.folder = folder
        self.name = name
        self.file = file
        var status = cal_stat()
        var mask: UInt32 = 0o022
        if mkdirat(file.descriptor, "mask", 0o777) == 0 {
            if cal_stat_entry(file.descriptor, "mask", 0, &status) == 0 { mask = ~status.mode & 0o777 }
            unlinkat(file.descriptor, "mask", AT_REMOVEDIR)
        }
        self.mask = mask
    }

    deinit {
        // After publishing, the hidden name is gone, or belongs to the file that was exchanged for this directory.
        if (try? folder.look(at: name)) ?? nil != nil { _ = DirectoryRemoval.remove(name, in: folder) { false } }
    }

    var descriptor: Int32 { file.descriptor }

    /// The same directory, opened again to inspect its entries.
    var content: DirectoryHandle { DirectoryHandle(dup(file.descriptor), folder.path(of: name)) }

    /// Marks the end of the work on the content.
    ///
    /// - Returns: A time by the file system's clock. Nothing in the directory has changed after it so far, and later
    ///   changes have a later time. If the clock is too coarse for that, a time before all others.
    /// - Throws: A ``FileError`` if a system call fails.
    func seal() throws(FileError) -> Timestamp {
        let sealed = try tick()
        for _ in 0..<50 {
            if try tick() > sealed { return sealed }
            usleep(1_000)
        }
        return Timestamp(seconds: 0, nanoseconds: 0)
    }

    /// Returns the current time by the file system's clock.
    private func tick() throws(FileError) -> Timestamp {
        guard fchmod(descriptor, mode_t(try file.facts().mode)) == 0 else {
            throw FileError(errno, "cannot change the mode of '\(folder.path(of: name))'")
        }
        return try file.facts().changed
    }

    /// Gives the directory its final name according to `on_conflict`; returns nil if it is skipped.
    func publish(_ placing: Placing, noting changes: inout [FileChange]) throws(FileError) -> PathBytes? {
        if placing.conflict == .overwrite {
            let error = folder.rename(name, to: folder, placing.name, CAL_RENAME_EXCHANGING)
            if error == 0 {
                // The replaced file now has the hidden name, and is removed with it.
                if let facts = try folder.look(at: placing.name) {
                    changes.append(FileChange(.overwritten(folder.path(of: placing.name)), left: FileMark(facts)))
                }
                return placing.name
            }
            guard error == ENOENT else {
                throw FileError(error, "cannot exchange '\(folder.path(of: placing.name))'")
            }
        }
        switch try placing.place(folder, name, noting: &changes) {
        case .placed(let name), .duplicate(let name): return name
        case .skipped: return nil
        }
    }
}

/// Comparison of directories with all their content.
enum DirectoryTree {
    /// Whether two directories have the same content: names, types, file contents, and targets of links.
    static func areSame(_ one: DirectoryHandle, _ other: DirectoryHandle, within limit: WorkLimit) throws(FileError)
        -> Bool
    {
        guard let names = try? one.names(), let others = try? other.names(), names.sorted() == others.sorted() else {
            return false
        }
        for name in names where try !isSame(name, one, other, within: limit) { return false }
        return true
    }

    private static func isSame(
        _ name: PathBytes, _ one: DirectoryHandle, _ other: DirectoryHandle, within limit: WorkLimit
    ) throws(FileError) -> Bool {
        guard let here = try? one.look(at: name), let there = try? other.look(at: name), here.type == there.type
        else { return false }
        if here.type == .symlink { return target(name, in: one) == target(name, in: other) }
        guard case .success(let left) = one.open(name, CAL_OPEN_READING) else { return false }
        guard here.type == .directory else { return try SameContent.holds(left, name, in: other, within: limit) }
        guard case .success(let right) = other.open(name, CAL_OPEN_READING) else { return false }
        return try areSame(
            DirectoryHandle(dup(left.descriptor), one.path(of: name)),
            DirectoryHandle(dup(right.descriptor), other.path(of: name)), within: limit)
    }

    private static func target(_ name: PathBytes, in folder: DirectoryHandle) -> [CChar]? {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = name.withCString { readlinkat(folder.descriptor, $0, &target, target.count) }
        return length < 0 ? nil : Array(target[..<length])
    }
}
