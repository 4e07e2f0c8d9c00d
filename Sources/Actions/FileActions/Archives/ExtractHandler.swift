package import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
package import Rules
import System

/// The `extract` action: unpacks an archive into a directory, which appears as a whole.
package struct ExtractHandler: Handler {
    private let trash: Trash

    /// - Parameter trash: The trash for files that `on_conflict: trash` replaces.
    package init(trash: Trash) { self.trash = trash }

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "extract"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": ParameterSchema(
                    type: "string", examples: ["done/"], minLength: 1,
                    description:
                        "The directory to create, or with a slash at its end the directory in which to create "
                        + "one named after the archive. A relative path is resolved from the directory of the "
                        + "rules file.",
                    role: ParameterSchema.destination),
                "on_conflict": Conflict.schema,
                "limits": ExtractLimits.schema, "allow": Jail.schema,
            ], required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file])

    package func run(_ invocation: Invocation) -> Outcome {
        if let problem = ArchiveFormat.problem { return Outcome(.failed, problem, code: "no-library") }
        do throws(FileError) {
            return try extract(invocation)
        } catch {
            return error.outcome
        }
    }

    private func extract(_ invocation: Invocation) throws(FileError) -> Outcome {
        let limits: ExtractLimits
        do throws(TextProblem) {
            limits = try ExtractLimits(invocation.parameters["limits"])
        } catch {
            return Outcome(.failed, "'limits.size': \(error.message); \(error.help)", code: "bad-parameters")
        }
        let source = try SourceFile(invocation)
        let archive = try source.openForReading()
        var changes: [FileChange] = []
        let destination = try Destination(invocation)
        let folder = try Jail(invocation).open(destination.path.parent, making: true, noting: &changes)
        let isInto = invocation.parameters["to"]?.bytes?.last == .slash
        let name = isInto ? PathBytes(ArchiveFormat.stem(of: source.name.bytes[...])) : destination.name
        var place = FilePlace(invocation, folder, name, destination.conflict, trash: trash)
        place.changes = changes
        if place.conflict == .skip, try folder.look(at: name) != nil { return place.skipped }
        let staging = try StagedDirectory(in: folder, for: name)
        let limit = place.limit
        let extraction = Extraction(into: staging.descriptor, limits, packed: source.facts.size, mask: staging.mask) {
            limit.isOver
        }
        do throws(Extraction.Refusal) {
            guard try extraction.run(archive.descriptor) else {
                return limit.outcome("unpacking") ?? .interrupted("stopped during the unpacking")
            }
        } catch {
            // If the file changed while it was read, the error is not that of the archive.
            guard try source.isUnchanged() else { throw .changed }
            if let number = error.errno { throw FileError(number, "\(error.message) of '\(source.path)'") }
            return Outcome(.failed, error.message, code: error.code)
        }
        guard try source.isUnchanged() else { throw .changed }
        func succeed(_ message: String, _ path: PathBytes) -> Outcome {
            Outcome(
                .succeeded, message, outputs: [path],
                values: [
                    "entries": .integer(Int64(extraction.count)), "bytes": .integer(Int64(clamping: extraction.bytes)),
                ])
        }
        if let earlier = try earlierResult(place, staging) {
            let path = folder.path(of: earlier)
            return succeed("'\(path)' already has the same contents", path)
        }
        let error = cal_sync_file_system(staging.descriptor)
        guard error == 0 else { throw FileError(error, "cannot flush '\(place.path)'") }
        let sealed = try staging.seal()
        guard let published = try staging.publish(place.placing, noting: &place.changes) else { return place.skipped }
        folder.flush()
        try place.note(published) { .unpacked($0, source: source.path, sealed: sealed) }
        let path = folder.path(of: published)
        let counted = extraction.count == 1 ? "1 entry" : "\(extraction.count) entries"
        return place.outcome(succeed("\(counted) unpacked into \(path)", path))
    }

    /// Returns the name of a directory with the same files: left by an attempt that could not report it, or sought by
    /// `deduplicate`.
    private func earlierResult(_ place: FilePlace, _ staging: StagedDirectory) throws(FileError) -> PathBytes? {
        let job = place.invocation.job
        let isAgain = job.attempt > 1 || job.isInterrupted
        guard isAgain && place.conflict != .overwrite || place.conflict == .deduplicate else { return nil }
        let isNumbered = place.conflict == .rename || place.conflict == .deduplicate
        for number in 0..<(isNumbered ? Destination.mostNumbers : 1) {
            let name = Destination.numbered(place.name, number)
            guard let there = try place.folder.look(at: name) else { return nil }
            guard there.type == .directory, case .success(let file) = place.folder.open(name, CAL_OPEN_READING) else {
                continue
            }
            let folder = DirectoryHandle(dup(file.descriptor), place.folder.path(of: name))
            if try DirectoryTree.areSame(folder, staging.content, within: place.limit) { return name }
        }
        return nil
    }
}
