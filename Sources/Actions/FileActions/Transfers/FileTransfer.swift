import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// The transfer of a file to its destination: a copy, or a move.
///
/// A move is a rename, or between file systems a copy followed by the removal of the source.
final class FileTransfer {
    /// The kind of transfer, as the verb of its messages.
    enum Verb: String {
        case copied, moved, renamed

        /// The attributes that a copy preserves by default.
        var retained: [CopyOptions.Attribute] {
            self == .copied ? [.mode, .times, .xattrs] : CopyOptions.Attribute.allCases
        }
    }

    /// The state of a transfer.
    enum Stage {
        case over(Outcome)
        /// The copy is complete, without its name.
        case staged(Copy)
        /// The copy has this name; its directory must be flushed before the source may be removed.
        case placed(Copy, PathBytes)
    }

    /// A file and its copy at the destination.
    struct Copy {
        /// The path of the file.
        let path: PathBytes
        /// The file, which a move removes; nil for a copy, so that it holds no descriptors of the source.
        let source: SourceFile?
        let location: FileLocation
        let file: StagedFile
        /// The metadata of the copy when it was complete.
        let made: Snapshot
        /// The copy, opened for reading; nil if that is not needed.
        let reading: OpenFile?
    }

    let invocation: Invocation
    let verb: Verb
    /// The options of the copy, if one is needed.
    let options: CopyOptions
    /// The name that `rename` gives the file in its directory; nil for the destination that `to` names.
    private let newName: PathBytes?
    private let trash: Trash
    private let directories: OpenDirectories

    /// - Parameters:
    ///   - invocation: The invocation with the parameters of the transfer.
    ///   - verb: The kind of transfer.
    ///   - trash: The trash for files that `on_conflict: trash` replaces.
    ///   - directories: The directories of all files that are transferred together.
    init(_ invocation: Invocation, _ verb: Verb, trash: Trash, among directories: OpenDirectories) {
        self.invocation = invocation
        self.verb = verb
        self.directories = directories
        newName = verb == .renamed ? PathBytes(invocation.parameters["name"]?.bytes ?? []) : nil
        self.trash = trash
        var options = CopyOptions(invocation, default: verb.retained)
        // A move removes the source, so its copy is always flushed.
        if verb != .copied { options.isDurable = true }
        self.options = options
    }

    /// Whether an interrupted attempt finished the move.
    var isDone: Bool { (try? destination(nil, making: false).earlierMove()) != nil }

    private func destination(_ source: SourceFile?, making: Bool = true) throws(FileError) -> FileLocation {
        guard let newName else {
            return try FileLocation(invocation, trash: trash, making: making, among: directories)
        }
        if let source { return FileLocation(invocation, source.directory, newName, trash: trash) }
        let event = invocation.job.event
        let directory = try SourceFile.openDirectory(of: event.path, root: event.root)
        return FileLocation(invocation, directory, newName, trash: trash)
    }

    // MARK: - Start

    /// Renames or copies the file, unless an interrupted attempt has done so.
    ///
    /// - Parameter isFlushed: Whether a copy is on the disk on return, if it is to be durable; otherwise, the caller
    ///   flushes it before publishing it.
    /// - Returns: The outcome, or the copy to publish.
    /// - Throws: A ``FileError`` if the file can be neither renamed nor copied.
    func start(isFlushed: Bool) throws(FileError) -> Stage {
        if let name = newName,
            name.bytes.isEmpty || name.bytes.contains(.slash) || name.bytes.contains(0) || name == "." || name == ".."
        {
            throw .failed(
                "'\(name)' is not a file name; to put the file into another directory, use 'move'", code: "bad-name")
        }
        return verb == .copied ? try startCopy(isFlushed: isFlushed) : try startMove(isFlushed: isFlushed)
    }

    private func startCopy(isFlushed: Bool) throws(FileError) -> Stage {
        let location = try destination(nil)
        let source: SourceFile
        do throws(FileError) {
            source = try SourceFile(invocation, isRead: true, among: directories)
        } catch {
            guard error.isGone, let earlier = try location.earlierResult(nil) else { throw error }
            return .over(location.finished(earlier))
        }
        guard !location.isSame(as: source, among: directories) else {
            throw .failed("the file would be copied onto itself", code: "same-path")
        }
        let content = try source.openForReading()
        if let earlier = try location.earlierResult(content, hasTimes: options.retained.contains(.times)) {
            return .over(location.finished(earlier))
        }
        return .staged(try copy(source, content, to: location, isFlushed: isFlushed))
    }

    private func startMove(isFlushed: Bool) throws(FileError) -> Stage {
        let source: SourceFile
        do throws(FileError) {
            source = try SourceFile(invocation, among: directories)
        } catch {
            // An interrupted attempt may have moved the file.
            guard error.isOfAnotherFile, invocation.hasStartedBefore else { throw error }
            let location = try destination(nil)
            if let name = try location.earlierMove() { return .over(location.finished(name)) }
            guard error.isGone, let name = try location.earlierResult(nil) else { throw error }
            return .over(location.finished(name))
        }
        let location = try destination(source)
        // An interrupted attempt has moved the file, and another one is now at its path.
        if source.metadata.identity != invocation.job.event.snapshot.identity, let name = try location.earlierMove() {
            return .over(location.finished(name))
        }
        guard !location.isSame(as: source, among: directories) else {
            return .over(Outcome(.skipped, "it is already there", code: "same-path"))
        }
        if let outcome = try finishEarlier(source, location) { return .over(outcome) }
        if directories.mayShareDevice(source.directory, location.directory) {
            do throws(FileError) {
                return .over(try rename(source, location))
            } catch {
                if error.errno == ENOENT, try source.directory.metadata(of: source.name) == nil { throw .gone }
                guard error.errno == EXDEV else { throw error }
            }
        }
        guard source.metadata.type == .file else {
            let message = "'\(location.path)' is on another file system, to which only regular files are moved"
            return .over(Outcome(.failed, message, code: "cross-device"))
        }
        // Fail now rather than when the copy is complete.
        guard faccessat(source.directory.descriptor, ".", W_OK | X_OK, Int32(AT_EACCESS)) == 0 else {
            throw FileError(errno, "cannot remove '\(source.path)'")
        }
        return .staged(try copy(source, source.openForReading(), to: location, isFlushed: isFlushed))
    }

    private func copy(
        _ source: SourceFile, _ content: OpenFile, to location: FileLocation, isFlushed: Bool
    ) throws(FileError) -> Copy {
        let copying = FileCopy(
            source: source, content: content, options: options, isFlushed: isFlushed && options.isDurable,
            limit: invocation.limit)
        let (file, made) = try copying.run(to: location)
        let isMove = verb != .copied
        return Copy(
            path: source.path, source: isMove ? source : nil, location: location, file: file, made: made,
            reading: isMove || location.conflict == .deduplicate ? try OpenFile.reading(file) : nil)
    }

    /// Removes the source of a move whose copy exists, if an attempt was interrupted between the two.
    private func finishEarlier(_ source: SourceFile, _ location: FileLocation) throws(FileError) -> Outcome? {
        guard invocation.hasStartedBefore, source.metadata.type == .file, let content = try? source.openForReading(),
            let name = try location.earlierResult(content, hasTimes: options.retained.contains(.times)),
            // Another name of the same file is not a copy.
            try location.directory.metadata(of: name)?.identity != source.metadata.identity
        else { return nil }
        try Self.remove(source, excluding: name, in: location)
        return location.finished(name)
    }

    // MARK: - Within one file system

    private func rename(_ source: SourceFile, _ location: FileLocation) throws(FileError) -> Outcome {
        let directory = location.directory
        let candidate = FileLocation.Candidate(
            put: { source.directory.rename(source.name, to: directory, $0, CAL_RENAME_NEW) },
            replace: { name in
                // rename(2) does nothing between two names of one file. If the file has a single link, the names differ
                // only in spelling, which rename(2) changes.
                if let there = try? directory.metadata(of: name), there.identity == source.metadata.identity,
                    there.links > 1
                {
                    return Self.removeLink(source, excluding: name, in: directory)
                }
                return source.directory.rename(source.name, to: directory, name, CAL_RENAME_REPLACING)
            },
            content: location.conflict == .deduplicate ? try? source.openForReading() : nil)
        switch try location.location(candidate) {
        case .skipped: return location.skipped
        case .duplicate(let name): return try removeDuplicate(source, name, location)
        case .placed(let name):
            guard let there = try directory.metadata(of: name), there.identity == source.metadata.identity else {
                // Another process put a different file there just before the rename; that file has not settled.
                try Removal.restore(name, source.name, from: directory, to: source.directory)
                throw .changed
            }
            location.record(.moved(from: source.path, to: directory.path(of: name)), left: there)
            return succeeded(name, location)
        }
    }

    /// Removes one of two links to a file, and returns 0 or the errno.
    private static func removeLink(
        _ source: SourceFile, excluding name: PathBytes, in directory: DirectoryHandle
    ) -> Int32 {
        do throws(FileError) {
            switch try source.remove(excluding: name, in: directory) {
            case .removed: return 0
            case .gone: return ENOENT
            case .changed: return EBUSY
            case .isTwin: return source.directory.rename(source.name, to: directory, name, CAL_RENAME_REPLACING)
            }
        } catch {
            return error.errno
        }
    }

    /// Removes the source of a move, because a file with the same content exists.
    private func removeDuplicate(
        _ source: SourceFile, _ name: PathBytes, _ location: FileLocation
    ) throws(FileError) -> Outcome {
        try Self.remove(source, excluding: name, in: location)
        try location.record(name) { .removed(source.path, twin: $0) }
        return location.succeeded(name, code: "same-content") { "removed, because '\($0)' has the same content" }
    }

    /// Flushes the file whose content is that of the source, and then removes the source.
    private static func remove(_ source: SourceFile, excluding name: PathBytes, in location: FileLocation)
        throws(FileError)
    {
        guard let file = try? location.directory.open(name, CAL_OPEN_READING), fsync(file.descriptor) == 0
        else {
            throw FileError(errno, "cannot flush '\(location.directory.path(of: name))'")
        }
        location.directory.flush()
        switch try source.remove(excluding: name, in: location.directory) {
        case .removed, .gone: return
        case .changed: throw .changed
        case .isTwin: throw oneFile(source, name, location)
        }
    }

    private static func oneFile(_ source: SourceFile, _ name: PathBytes, _ location: FileLocation) -> FileError {
        .failed(
            "'\(source.path)' and '\(location.directory.path(of: name))' are the same file, by another mount of "
                + "its directory or another spelling of its name; nothing was removed", code: "same-path")
    }

    // MARK: - Completion of a copy

    /// Gives the copy its name.
    func publish(_ copy: Copy) throws(FileError) -> Stage {
        defer { copy.file.discard() }
        let location = copy.location
        // One directory through two mounts with different device numbers: a file created in one appears in the other.
        if let source = copy.source, try source.directory.metadata(of: copy.file.name()) != nil {
            throw Self.oneFile(source, location.name, location)
        }
        switch try location.location(copy.file, content: copy.reading) {
        case .skipped: return .over(location.skipped)
        case .duplicate(let name):
            if let source = copy.source { return .over(try removeDuplicate(source, name, location)) }
            return .over(location.succeeded(name, code: "same-content") { "'\($0)' has the same content" })
        case .placed(let name):
            let path = location.directory.path(of: name)
            location.record(
                copy.source == nil ? .made(path, source: copy.path) : .moved(from: copy.path, to: path),
                left: copy.made)
            return .placed(copy, name)
        }
    }

    /// Removes the source of a move, since the copy is durable under its final name; the caller then flushes its
    /// directory.
    func finish(_ copy: Copy, _ name: PathBytes) throws(FileError) -> Outcome {
        let location = copy.location
        guard let source = copy.source else { return succeeded(name, location) }
        let result: Removal.Result
        do throws(FileError) {
            result = try source.remove(excluding: name, in: location.directory)
        } catch {
            throw FileError(error.errno, "the copy is at '\(location.directory.path(of: name))', but \(error.what)")
        }
        switch result {
        case .removed, .gone: return succeeded(name, location)
        case .isTwin: throw Self.oneFile(source, name, location)
        case .changed: break
        }
        location.forget(.moved(from: source.path, to: location.directory.path(of: name)))
        let changed = location.outcome(FileError.changed.outcome)
        let made = copy.made
        // A copy that has replaced another file stays: without it, no file would have the name. A deduplicated copy
        // also stays, because other files with the same content may have been removed.
        if location.conflict == .overwrite || location.conflict == .deduplicate {
            // Through another mount, the copy has replaced the source itself.
            if let there = try source.directory.metadata(of: source.name), there.identity != source.metadata.identity,
                there.size == made.size, there.modified == made.modified
            {
                throw Self.oneFile(source, name, location)
            }
            return changed
        }
        // The file at the source's name may be the copy itself, which must not be removed.
        let original = Removal.Twin(directory: source.directory, name: source.name)
        guard try Removal.remove(name, in: location.directory, if: made, excluding: original) != .isTwin else {
            throw Self.oneFile(source, name, location)
        }
        return changed
    }

    private func succeeded(_ name: PathBytes, _ location: FileLocation) -> Outcome {
        location.succeeded(name) { "\(verb.rawValue) to \($0)" }
    }
}

extension SourceFile {
    /// Removes the file, whose content exists under another name.
    fileprivate func remove(excluding name: PathBytes, in other: DirectoryHandle) throws(FileError) -> Removal.Result {
        let twin = Removal.Twin(directory: other, name: name)
        return try Removal.remove(self.name, in: directory, if: metadata, excluding: twin)
    }
}
