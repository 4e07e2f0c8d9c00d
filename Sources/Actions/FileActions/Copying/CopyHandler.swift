package import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
package import Rules
package import System

/// The `copy` action: creates a copy of the file, which is complete as soon as it is visible.
///
/// The bytes are written to a file without a name in the destination directory, and flushed. Then the file gets its
/// final name, so a process that watches the directory sees one complete file.
package struct CopyHandler: Handler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    private static let kept: [CopyOptions.Fact] = [.mode, .times, .xattrs]

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "copy"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": Destination.toSchema, "on_conflict": Conflict.schema, "allow": Jail.schema,
                "keep": CopyOptions.keepSchema(default: kept), "verify": CopyOptions.verifySchema,
                "durable": CopyOptions.durableSchema,
            ],
            required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file], traits: [.sharesFile, .isBrief])

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in try copy(invocation) }
    }

    /// Copies the files of a batch in groups, each of which is flushed by one call for the whole file system.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        FileSystemFlush.run(invocations, alone: { run($0) }, together: { copy(together: $0) })
    }

    /// A copy without a name.
    private struct Prepared {
        var place: FilePlace
        var staged: StagedFile
        var source: PathBytes
        var isDurable: Bool
    }

    private enum Preparation {
        case staged(Prepared)
        case over(Outcome)
        /// There are not enough descriptors for so many files at once.
        case crowded
    }

    private func copy(_ invocation: Invocation) throws(FileError) -> Outcome {
        switch try prepare(invocation, isFlushed: true) {
        case .over(let outcome): return outcome
        case .crowded: preconditionFailure("it is alone")
        case .staged(let prepared):
            let (outcome, folder) = try publish(prepared)
            folder?.flush()
            return outcome
        }
    }

    private func copy(together invocations: ArraySlice<Invocation>) -> [Outcome] {
        var preparations = invocations.map { invocation in
            do throws(FileError) {
                if invocation.stop.isRaised { return Preparation.over(.interrupted("Alight stops")) }
                return try prepare(invocation, isFlushed: false)
            } catch {
                return error.isOfCrowd ? .crowded : .over(error.outcome)
            }
        }
        var flush = FileSystemFlush()
        var folders = DirectoryFlush()
        let outcomes = preparations.map { preparation -> Outcome? in
            switch preparation {
            case .over(let outcome): return outcome
            case .crowded: return nil
            case .staged(let prepared):
                return Outcome.of { () throws(FileError) in
                    if prepared.isDurable { try flush.flush(prepared.staged, for: prepared.place) }
                    let (outcome, folder) = try publish(prepared)
                    if let folder { folders.add(folder) }
                    return outcome
                }
            }
        }
        folders.flush()
        preparations = []
        return zip(outcomes, invocations).map { $0 ?? run($1) }
    }

    private func prepare(_ invocation: Invocation, isFlushed: Bool) throws(FileError) -> Preparation {
        let place = try FilePlace(invocation, trash: trash)
        var options = CopyOptions(invocation, default: Self.kept)
        let isDurable = invocation.flag("durable", default: true)
        options.isDurable = isDurable && isFlushed
        let source: SourceFile
        do throws(FileError) {
            source = try SourceFile(invocation)
        } catch {
            guard error.outcome.code == "gone", let earlier = try place.earlierResult(nil) else { throw error }
            return .over(told(earlier, place))
        }
        guard !place.isSame(as: source) else {
            throw FileError(Outcome(.failed, "the file would be copied onto itself", code: "same-path"))
        }
        let content = try source.openForReading()
        if let earlier = try place.earlierResult(content, hasTimes: options.kept.contains(.times)) {
            return .over(told(earlier, place))
        }
        let staged = try FileCopy(source, content, options, invocation).run(in: place.folder, for: place.name)
        return .staged(Prepared(place: place, staged: staged, source: source.path, isDurable: isDurable))
    }

    /// Gives the copy its name; returns the outcome, and the directory if it must still be flushed.
    private func publish(_ prepared: Prepared) throws(FileError) -> (Outcome, DirectoryHandle?) {
        defer { prepared.staged.discard() }
        var place = prepared.place
        let copy = place.conflict == .deduplicate ? try OpenFile.reading(prepared.staged) : nil
        let temporary = try prepared.staged.name()
        switch try place.placing.place(place.folder, temporary, content: copy, noting: &place.changes) {
        case .skipped: return (place.outcome(place.skipped), nil)
        case .duplicate(let name):
            let path = place.folder.path(of: name)
            let outcome = Outcome(
                .succeeded, "'\(path)' has the same content", code: "same-content", outputs: [path])
            return (place.outcome(outcome), nil)
        case .placed(let name):
            try place.note(name) { .made($0, source: prepared.source) }
            let path = place.folder.path(of: name)
            let outcome = place.outcome(Outcome(.succeeded, "copied to \(path)", outputs: [path]))
            return (outcome, prepared.isDurable ? place.folder : nil)
        }
    }

    private func told(_ name: PathBytes, _ place: FilePlace) -> Outcome {
        let path = place.folder.path(of: name)
        return place.outcome(Outcome(.succeeded, "an earlier attempt created it at \(path)", outputs: [path]))
    }
}

extension OpenFile {
    /// Opens another descriptor for a staged file.
    ///
    /// It is read-only, so the file does not count as unfinished while it is open.
    static func reading(_ staged: StagedFile) throws(FileError) -> OpenFile {
        let descriptor = PathBytes("/proc/self/fd/\(staged.descriptor)").withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileError(errno, "cannot open the copy in '\(staged.folder.path)'") }
        let file = OpenFile(descriptor)
        TemporaryName.lock(descriptor)
        return file
    }
}
