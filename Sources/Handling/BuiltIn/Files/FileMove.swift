import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import Settling

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

    /// The file is gone: an attempt that was cut off may have moved it.
    func afterwards(_ place: FilePlace, _ fault: FileFault) throws(FileFault) -> Outcome {
        guard fault.outcome.code == "gone", let name = try place.earlierResult(nil) else { throw fault }
        return told(name, place)
    }

    func run(_ source: SourceFile, to place: FilePlace) throws(FileFault) -> Outcome {
        guard !place.isSame(as: source) else {
            return Outcome(.skipped, "it is there already", code: "same-path")
        }
        if invocation.job.isInterrupted { Leftovers.clear(source.folder, now: DiskProbe.now()) }
        if let outcome = try finishEarlier(source, place) { return outcome }
        var place = place
        do throws(FileFault) {
            return try rename(source, &place)
        } catch {
            if error.errno == ENOENT, try source.folder.look(at: source.name) == nil { throw .gone }
            guard error.errno == EXDEV else { throw error }
        }
        return try moveAcross(source, &place)
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
        guard try Removal.remove(source.name, in: source.folder, if: source.facts) != .changed else { throw .changed }
        return told(name, place)
    }

    // MARK: - In one file system

    private func rename(_ source: SourceFile, _ place: inout FilePlace) throws(FileFault) -> Outcome {
        let folder = place.folder
        let candidate = Placing.Candidate(
            put: { source.folder.rename(source.name, to: folder, $0, CAL_RENAME_NEW) },
            replace: { name in
                // rename(2) does nothing at all between two names of one file.
                if let there = try? folder.look(at: name), there.identity == source.facts.identity {
                    return source.folder.unlink(source.name)
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

    /// The same content stands there: only the source is left to go, once that is on the disk.
    private func removeDuplicate(
        _ source: SourceFile, _ name: PathBytes, _ place: inout FilePlace
    ) throws(FileFault) -> Outcome {
        try Self.flush(name, in: place.folder)
        guard try Removal.remove(source.name, in: source.folder, if: source.facts) != .changed else { throw .changed }
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

    private func moveAcross(_ source: SourceFile, _ place: inout FilePlace) throws(FileFault) -> Outcome {
        guard source.facts.type == .file else {
            return Outcome(
                .failed, "'\(place.path)' is on another file system, to which only regular files are moved",
                code: "cross-device")
        }
        // Better than to find out when the copy stands.
        guard faccessat(source.folder.descriptor, ".", W_OK | X_OK, Int32(AT_EACCESS)) == 0 else {
            throw FileFault(errno, "cannot remove '\(source.path)'")
        }
        let content = try source.openForReading()
        let staged = try FileCopy(source, content, options, invocation).run(in: place.folder, for: place.name)
        defer { staged.discard() }
        let copy = try OpenFile.reading(staged)
        let made = try copy.facts()
        switch try place.placing.place(place.folder, try staged.name(), content: copy, noting: &place.changes) {
        case .skipped: return place.outcome(place.skipped)
        case .duplicate(let name): return try removeDuplicate(source, name, &place)
        case .placed(let name):
            place.folder.flush()
            // The copy is durable under its final name; only now may the source go.
            let ending: Removal.Ending
            do throws(FileFault) {
                ending = try Removal.remove(source.name, in: source.folder, if: source.facts)
            } catch {
                throw FileFault(error.errno, "the copy stands at '\(place.folder.path(of: name))', but \(error.what)")
            }
            guard ending != .changed else {
                _ = try Removal.remove(name, in: place.folder, if: made)
                throw .changed
            }
            source.folder.flush()
            return try report(source, name, &place)
        }
    }

    // MARK: - Words

    private func report(_ source: SourceFile, _ name: PathBytes, _ place: inout FilePlace) throws(FileFault) -> Outcome
    {
        try place.note(name) { .moved(from: source.path, to: $0) }
        let path = place.folder.path(of: name)
        return place.outcome(Outcome(.succeeded, "\(done) to \(path)", outputs: [path]))
    }

    private func told(_ name: PathBytes, _ place: FilePlace) -> Outcome {
        let path = place.folder.path(of: name)
        return place.outcome(Outcome(.succeeded, "an earlier attempt left it at \(path)", outputs: [path]))
    }
}
