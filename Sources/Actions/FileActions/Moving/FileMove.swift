import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// Gives a file another name: by a rename, and between file systems by a copy, after which the source goes.
struct FileMove {
    let invocation: Invocation
    /// Where a copy is needed, what it has of the original.
    let options: CopyOptions
    /// The word for what was done: `moved`, `renamed`.
    let done: String

    static let kept = CopyOptions.Fact.allCases

    init(_ invocation: Invocation, done: String) {
        self.invocation = invocation
        self.done = done
        options = CopyOptions(invocation, default: Self.kept)
    }

    /// The file is gone, or another one is at its path: an attempt that was cut off may have moved it.
    func afterwards(_ place: FilePlace, _ fault: FileFault) throws(FileFault) -> Outcome {
        if let name = try place.earlierMove() { return told(name, place) }
        guard fault.outcome.code == "gone", let name = try place.earlierResult(nil) else { throw fault }
        return told(name, place)
    }

    /// The outcome if an attempt that was cut off has moved the file, and another one is at its path since; nil otherwise.
    func earlier(_ place: FilePlace, than source: SourceFile) throws(FileFault) -> Outcome? {
        guard source.facts.identity != invocation.job.event.snapshot.identity else { return nil }
        return try place.earlierMove().map { told($0, place) }
    }

    func run(_ source: SourceFile, to place: FilePlace) throws(FileFault) -> Outcome {
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

    /// Renames the file, or makes a copy of it where that can't be.
    ///
    /// - Parameters:
    ///   - source: The file.
    ///   - place: Its new place.
    ///   - isFlushed: Whether a copy is on the disk afterwards; else whoever asks sees to that before it is published.
    /// - Returns: How that ended, or the copy that is to be published.
    /// - Throws: What failed.
    func begin(_ source: SourceFile, to place: FilePlace, isFlushed: Bool) throws(FileFault) -> Beginning {
        guard !place.isSame(as: source) else {
            return .over(Outcome(.skipped, "it is there already", code: "same-path"))
        }
        if let outcome = try finishEarlier(source, place) { return .over(outcome) }
        var place = place
        do throws(FileFault) {
            return .over(try rename(source, &place))
        } catch {
            if error.errno == ENOENT, try source.folder.look(at: source.name) == nil { throw .gone }
            guard error.errno == EXDEV else { throw error }
        }
        return try copyAcross(source, place, isFlushed: isFlushed)
    }

    /// Removes the source of a move whose copy stands, when an attempt was cut off between the two.
    private func finishEarlier(_ source: SourceFile, _ place: FilePlace) throws(FileFault) -> Outcome? {
        guard invocation.job.attempt > 1 || invocation.job.isInterrupted, source.facts.type == .file,
            let content = try? source.openForReading(),
            let name = try place.earlierResult(content, hasTimes: options.kept.contains(.times)),
            // Another name of the same file is no copy.
            try place.folder.look(at: name)?.identity != source.facts.identity
        else { return nil }
        try Self.flush(name, in: place.folder)
        try Self.remove(source, besides: name, in: place)
        return told(name, place)
    }

    /// Removes the source, of which another name holds all.
    private static func remove(
        _ source: SourceFile, besides name: PathBytes, in place: FilePlace
    ) throws(FileFault) {
        let twin = Removal.Twin(folder: place.folder, name: name)
        switch try Removal.remove(source.name, in: source.folder, if: source.facts, besides: twin) {
        case .removed, .gone: return
        case .changed: throw .changed
        case .isTwin: throw Self.oneFile(source, name, place)
        }
    }

    private static func oneFile(_ source: SourceFile, _ name: PathBytes, _ place: FilePlace) -> FileFault {
        FileFault(
            Outcome(
                .failed,
                "'\(source.path)' and '\(place.folder.path(of: name))' are one file, by another mount of its folder or "
                    + "another spelling of its name; nothing was removed", code: "same-path"))
    }

    // MARK: - In one file system

    private func rename(_ source: SourceFile, _ place: inout FilePlace) throws(FileFault) -> Outcome {
        let folder = place.folder
        let candidate = Placing.Candidate(
            put: { source.folder.rename(source.name, to: folder, $0, CAL_RENAME_NEW) },
            replace: { name in
                // rename(2) does nothing at all between two names of one file. One that has a single name is that of
                // another spelling, which it changes.
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
                // Somebody put another one into its place in this moment; that one has not settled.
                try Removal.giveBack(name, source.name, from: folder, to: source.folder)
                throw .changed
            }
            return try report(source, name, &place)
        }
    }

    /// Removes one of two links to a file; 0, or the errno.
    private static func removeLink(_ source: SourceFile, besides name: PathBytes, in folder: OpenFolder) -> Int32 {
        let twin = Removal.Twin(folder: folder, name: name)
        do throws(FileFault) {
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

    /// The same content stands there: only the source is left to go, once that is on the disk.
    private func removeDuplicate(
        _ source: SourceFile, _ name: PathBytes, _ place: inout FilePlace
    ) throws(FileFault) -> Outcome {
        try Self.flush(name, in: place.folder)
        try Self.remove(source, besides: name, in: place)
        try place.note(name) { .removed(source.path, twin: $0) }
        let path = place.folder.path(of: name)
        return place.outcome(
            Outcome(
                .succeeded, "removed, since '\(path)' has the same content", code: "same-content", outputs: [path]))
    }

    private static func flush(_ name: PathBytes, in folder: OpenFolder) throws(FileFault) {
        guard case .success(let file) = folder.open(name, CAL_OPEN_READING), fsync(file.descriptor) == 0 else {
            throw FileFault(errno, "cannot flush '\(folder.path(of: name))'")
        }
        folder.flush()
    }

    // MARK: - To another one

    enum Beginning {
        case over(Outcome)
        case carried(Carried)
    }

    /// A file that is to move to another file system, and its copy there.
    struct Carried {
        var source: SourceFile
        var place: FilePlace
        var staged: StagedFile
        /// The copy, opened for reading.
        var copy: OpenFile
        /// What the copy was when it was complete.
        var made: Snapshot
    }

    enum Publishing {
        case over(Outcome)
        /// The copy has this name; its folder is to be flushed, and then the source may go.
        case placed(PathBytes)
    }

    private func copyAcross(
        _ source: SourceFile, _ place: FilePlace, isFlushed: Bool
    ) throws(FileFault) -> Beginning {
        guard source.facts.type == .file else {
            return .over(
                Outcome(
                    .failed, "'\(place.path)' is on another file system, to which only regular files are moved",
                    code: "cross-device"))
        }
        // Better than to find out when the copy stands.
        guard faccessat(source.folder.descriptor, ".", W_OK | X_OK, Int32(AT_EACCESS)) == 0 else {
            throw FileFault(errno, "cannot remove '\(source.path)'")
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
    func publish(_ carried: inout Carried) throws(FileFault) -> Publishing {
        let source = carried.source
        let folder = carried.place.folder
        let temporary = try carried.staged.name()
        // One folder by two mounts, which have numbers of their own: what is made in one is in the other.
        if try source.folder.look(at: temporary) != nil {
            throw Self.oneFile(source, carried.place.name, carried.place)
        }
        let ending = try carried.place.placing.place(
            folder, temporary, content: carried.copy, noting: &carried.place.changes)
        switch ending {
        case .skipped: return .over(carried.place.outcome(carried.place.skipped))
        case .duplicate(let name): return .over(try removeDuplicate(source, name, &carried.place))
        case .placed(let name):
            // Now, since others may take the name before the source goes.
            try carried.place.note(name) { .moved(from: source.path, to: $0) }
            return .placed(name)
        }
    }

    /// Lets the source go, since the copy is durable under its final name; its folder is to be flushed then.
    func removeSource(of carried: inout Carried, _ name: PathBytes) throws(FileFault) -> Outcome {
        let source = carried.source
        var place = carried.place
        let made = carried.made
        let ending: Removal.Ending
        do throws(FileFault) {
            ending = try Removal.remove(
                source.name, in: source.folder, if: source.facts,
                besides: Removal.Twin(folder: place.folder, name: name))
        } catch {
            throw FileFault(error.errno, "the copy stands at '\(place.folder.path(of: name))', but \(error.what)")
        }
        switch ending {
        case .removed, .gone: break
        case .isTwin: throw Self.oneFile(source, name, place)
        case .changed:
            let move = FileChange.Kind.moved(from: source.path, to: place.folder.path(of: name))
            place.changes.removeAll { $0.kind == move }
            // A copy that has replaced another file stays: without it there would be none of that name. So does one
            // for which other files may have gone, since they had the same content.
            if place.conflict == .overwrite || place.conflict == .deduplicate {
                let present = try source.folder.look(at: source.name)
                // By another mount it has replaced the source itself.
                if let present, present.identity != source.facts.identity, present.size == made.size,
                    present.modified == made.modified
                {
                    throw Self.oneFile(source, name, place)
                }
                return place.outcome(FileFault.changed.outcome)
            }
            // What stands at the source's name now may be the copy itself, which then must not go.
            let original = Removal.Twin(folder: source.folder, name: source.name)
            guard try Removal.remove(name, in: place.folder, if: made, besides: original) != .isTwin else {
                throw Self.oneFile(source, name, place)
            }
            return place.outcome(FileFault.changed.outcome)
        }
        return told(done, name, place)
    }

    // MARK: - Words

    private func report(_ source: SourceFile, _ name: PathBytes, _ place: inout FilePlace) throws(FileFault) -> Outcome
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
        return place.outcome(Outcome(.succeeded, "an earlier attempt left it at \(path)", outputs: [path]))
    }
}
