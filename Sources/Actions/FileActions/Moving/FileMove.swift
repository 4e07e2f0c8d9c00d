import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// The move of a file: a rename, or between file systems a copy followed by the removal of the source.
struct FileMove {
    let invocation: Invocation
    /// The options of the copy, if one is needed.
    let options: CopyOptions
    /// The verb for messages: `moved`, `renamed`.
    let done: String

    static let kept = CopyOptions.Fact.allCases

    init(_ invocation: Invocation, done: String) {
        self.invocation = invocation
        self.done = done
        options = CopyOptions(invocation, default: Self.kept)
    }

    /// Returns the outcome for a file that is gone or replaced, which an interrupted attempt may have moved.
    func afterwards(_ place: FilePlace, _ fault: FileError) throws(FileError) -> Outcome {
        if let name = try place.earlierMove() { return told(name, place) }
        guard fault.outcome.code == "gone", let name = try place.earlierResult(nil) else { throw fault }
        return told(name, place)
    }

    /// Returns the outcome if an interrupted attempt moved the file and another one is now at its path; nil otherwise.
    func earlier(_ place: FilePlace, than source: SourceFile) throws(FileError) -> Outcome? {
        guard source.facts.identity != invocation.job.event.snapshot.identity else { return nil }
        return try place.earlierMove().map { told($0, place) }
    }

    func run(_ source: SourceFile, to place: FilePlace) throws(FileError) -> Outcome {
        switch try begin(source, to: place, isFlushed: true) {
        case .over(let outcome): return outcome
        case .carried(var carried):
            defer { carried.staged.discard() }
            switch try publish(&carried) {
            case .over(let outcome): return outcome
            case .placed(let name):
                carried.place.folder.flush()
                let outcome = try removeSource(of: &carried, name)
                carried.source.folder.flush()
                return outcome
            }
        }
    }

    /// Renames the file, or copies it if it cannot be renamed.
    ///
    /// - Parameters:
    ///   - source: The file.
    ///   - place: The destination.
    ///   - isFlushed: Whether a copy is on the disk on return; otherwise, the caller flushes it before publishing it.
    /// - Returns: The outcome, or the copy to publish.
    /// - Throws: A ``FileError`` if the file can be neither renamed nor copied.
    func begin(_ source: SourceFile, to place: FilePlace, isFlushed: Bool) throws(FileError) -> Beginning {
        guard !place.isSame(as: source) else {
            return .over(Outcome(.skipped, "it is already there", code: "same-path"))
        }
        if let outcome = try finishEarlier(source, place) { return .over(outcome) }
        var place = place
        do throws(FileError) {
            return .over(try rename(source, &place))
        } catch {
            if error.errno == ENOENT, try source.folder.look(at: source.name) == nil { throw .gone }
            guard error.errno == EXDEV else { throw error }
        }
        return try copyAcross(source, place, isFlushed: isFlushed)
    }

    /// Removes the source of a move whose copy exists, if an attempt was interrupted between the two.
    private func finishEarlier(_ source: SourceFile, _ place: FilePlace) throws(FileError) -> Outcome? {
        guard invocation.job.attempt > 1 || invocation.job.isInterrupted, source.facts.type == .file,
            let content = try? source.openForReading(),
            let name = try place.earlierResult(content, hasTimes: options.kept.contains(.times)),
            // Another name of the same file is not a copy.
            try place.folder.look(at: name)?.identity != source.facts.identity
        else { return nil }
        try Self.flush(name, in: place.folder)
        try Self.remove(source, besides: name, in: place)
        return told(name, place)
    }

    /// Removes the source, whose content exists under another name.
    private static func remove(
        _ source: SourceFile, besides name: PathBytes, in place: FilePlace
    ) throws(FileError) {
        let twin = Removal.Twin(folder: place.folder, name: name)
        switch try Removal.remove(source.name, in: source.folder, if: source.facts, besides: twin) {
        case .removed, .gone: return
        case .changed: throw .changed
        case .isTwin: throw Self.oneFile(source, name, place)
        }
    }

    private static func oneFile(_ source: SourceFile, _ name: PathBytes, _ place: FilePlace) -> FileError {
        FileError(
            Outcome(
                .failed,
                "'\(source.path)' and '\(place.folder.path(of: name))' are the same file, by another mount of "
                    + "its directory or another spelling of its name; nothing was removed", code: "same-path"))
    }

    // MARK: - Within one file system

    private func rename(_ source: SourceFile, _ place: inout FilePlace) throws(FileError) -> Outcome {
        let folder = place.folder
        let candidate = Placing.Candidate(
            put: { source.folder.rename(source.name, to: folder, $0, CAL_RENAME_NEW) },
            replace: { name in
                // rename(2) does nothing between two names of one file. If the file has a single link, the names differ
                // only in spelling, which rename(2) changes.
                if let there = try? folder.look(at: name), there.identity == source.facts.identity, there.links > 1 {
                    return Self.removeLink(source, besides: name, in: folder)
                }
                return source.folder.rename(source.name, to: folder, name, CAL_RENAME_REPLACING)
            },
            content: place.conflict == .deduplicate ? try? source.openForReading() : nil)
        switch try place.placing.place(candidate, noting: &place.changes) {
        case .skipped: return place.outcome(place.skipped)
        case .duplicate(let name): return try removeDuplicate(source, name, &place)
        case .placed(let name):
            guard let there = try folder.look(at: name), there.identity == source.facts.identity else {
                // Another process put a different file there just before the rename; that file has not settled.
                try Removal.giveBack(name, source.name, from: folder, to: source.folder)
                throw .changed
            }
            return try report(source, name, &place)
        }
    }

    /// Removes one of two links to a file, and returns 0 or the errno.
    private static func removeLink(_ source: SourceFile, besides name: PathBytes, in folder: DirectoryHandle) -> Int32 {
        let twin = Removal.Twin(folder: folder, name: name)
        do throws(FileError) {
            switch try Removal.remove(source.name, in: source.folder, if: source.facts, besides: twin) {
            case .removed: return 0
            case .gone: return ENOENT
            case .changed: return EBUSY
            case .isTwin: return source.folder.rename(source.name, to: folder, name, CAL_RENAME_REPLACING)
            }
        } catch {
            return error.errno
        }
    }

    /// Flushes the file with the same content, and then removes the source.
    private func removeDuplicate(
        _ source: SourceFile, _ name: PathBytes, _ place: inout FilePlace
    ) throws(FileError) -> Outcome {
        try Self.flush(name, in: place.folder)
        try Self.remove(source, besides: name, in: place)
        try place.note(name) { .removed(source.path, twin: $0) }
        let path = place.folder.path(of: name)
        return place.outcome(
            Outcome(
                .succeeded, "removed, because '\(path)' has the same content", code: "same-content", outputs: [path]))
    }

    private static func flush(_ name: PathBytes, in folder: DirectoryHandle) throws(FileError) {
        guard case .success(let file) = folder.open(name, CAL_OPEN_READING), fsync(file.descriptor) == 0 else {
            throw FileError(errno, "cannot flush '\(folder.path(of: name))'")
        }
        folder.flush()
    }

    // MARK: - Between file systems

    enum Beginning {
        case over(Outcome)
        case carried(Carried)
    }

    /// A file that is being moved to another file system, and its copy there.
    struct Carried {
        var source: SourceFile
        var place: FilePlace
        var staged: StagedFile
        /// The copy, opened for reading.
        var copy: OpenFile
        /// The metadata of the complete copy.
        var made: Snapshot
    }

    enum Publishing {
        case over(Outcome)
        /// The copy has this name; its directory must be flushed before the source may be removed.
        case placed(PathBytes)
    }

    private func copyAcross(
        _ source: SourceFile, _ place: FilePlace, isFlushed: Bool
    ) throws(FileError) -> Beginning {
        guard source.facts.type == .file else {
            return .over(
                Outcome(
                    .failed, "'\(place.path)' is on another file system, to which only regular files are moved",
                    code: "cross-device"))
        }
        // Fail now rather than when the copy is complete.
        guard faccessat(source.folder.descriptor, ".", W_OK | X_OK, Int32(AT_EACCESS)) == 0 else {
            throw FileError(errno, "cannot remove '\(source.path)'")
        }
        let content = try source.openForReading()
        var options = options
        options.isDurable = isFlushed
        let staged = try FileCopy(source, content, options, invocation).run(in: place.folder, for: place.name)
        let copy = try OpenFile.reading(staged)
        return .carried(
            Carried(source: source, place: place, staged: staged, copy: copy, made: try copy.facts()))
    }

    /// Gives the copy its name.
    func publish(_ carried: inout Carried) throws(FileError) -> Publishing {
        let source = carried.source
        let folder = carried.place.folder
        let temporary = try carried.staged.name()
        // One directory through two mounts with different device numbers: a file created in one appears in the other.
        if try source.folder.look(at: temporary) != nil {
            throw Self.oneFile(source, carried.place.name, carried.place)
        }
        let ending = try carried.place.placing.place(
            folder, temporary, content: carried.copy, noting: &carried.place.changes)
        switch ending {
        case .skipped: return .over(carried.place.outcome(carried.place.skipped))
        case .duplicate(let name): return .over(try removeDuplicate(source, name, &carried.place))
        case .placed(let name):
            // Recorded now, since other processes may take the name before the source is removed.
            try carried.place.note(name) { .moved(from: source.path, to: $0) }
            return .placed(name)
        }
    }

    /// Removes the source, since the copy is durable under its final name; the caller then flushes its directory.
    func removeSource(of carried: inout Carried, _ name: PathBytes) throws(FileError) -> Outcome {
        let source = carried.source
        var place = carried.place
        let made = carried.made
        let ending: Removal.Ending
        do throws(FileError) {
            ending = try Removal.remove(
                source.name, in: source.folder, if: source.facts,
                besides: Removal.Twin(folder: place.folder, name: name))
        } catch {
            throw FileError(error.errno, "the copy is at '\(place.folder.path(of: name))', but \(error.what)")
        }
        switch ending {
        case .removed, .gone: break
        case .isTwin: throw Self.oneFile(source, name, place)
        case .changed:
            let move = FileChange.Kind.moved(from: source.path, to: place.folder.path(of: name))
            place.changes.removeAll { $0.kind == move }
            // A copy that has replaced another file stays: without it, no file would have the name. A deduplicated copy
            // also stays, because other files with the same content may have been removed.
            if place.conflict == .overwrite || place.conflict == .deduplicate {
                let present = try source.folder.look(at: source.name)
                // Through another mount, the copy has replaced the source itself.
                if let present, present.identity != source.facts.identity, present.size == made.size,
                    present.modified == made.modified
                {
                    throw Self.oneFile(source, name, place)
                }
                return place.outcome(FileError.changed.outcome)
            }
            // The file at the source's name may be the copy itself, which must not be removed.
            let original = Removal.Twin(folder: source.folder, name: source.name)
            guard try Removal.remove(name, in: place.folder, if: made, besides: original) != .isTwin else {
                throw Self.oneFile(source, name, place)
            }
            return place.outcome(FileError.changed.outcome)
        }
        return told(done, name, place)
    }

    // MARK: - Outcomes

    private func report(_ source: SourceFile, _ name: PathBytes, _ place: inout FilePlace) throws(FileError) -> Outcome
    {
        try place.note(name) { .moved(from: source.path, to: $0) }
        return told(done, name, place)
    }

    private func told(_ done: String, _ name: PathBytes, _ place: FilePlace) -> Outcome {
        let path = place.folder.path(of: name)
        return place.outcome(Outcome(.succeeded, "\(done) to \(path)", outputs: [path]))
    }

    private func told(_ name: PathBytes, _ place: FilePlace) -> Outcome {
        let path = place.folder.path(of: name)
        return place.outcome(Outcome(.succeeded, "an earlier attempt created it at \(path)", outputs: [path]))
    }
}
