import FileEvents
import Glibc
import PluginProtocol
package import Rules

/// `copy`: puts a copy of the file somewhere, complete from its first moment.
///
/// The bytes go to a file without a name in the destination's folder, are flushed,
/// and get the final name then, so whoever watches there sees one whole file.
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
        events: [.created, .modified, .moved, .attributes], types: [.file])

    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileFault) in try copy(invocation) }
    }

    private func copy(_ invocation: Invocation) throws(FileFault) -> Outcome {
        var place = try FilePlace(invocation, trash: trash)
        var options = CopyOptions(invocation, default: Self.kept)
        options.isDurable = invocation.flag("durable", default: true)
        let source: SourceFile
        do throws(FileFault) {
            source = try SourceFile(invocation)
        } catch {
            guard error.outcome.code == "gone", let earlier = try place.earlierResult(nil) else { throw error }
            return told(earlier, place)
        }
        guard !place.isSame(as: source) else {
            return Outcome(.failed, "the file would be copied onto itself", code: "same-path")
        }
        let content = try source.openForReading()
        if let earlier = try place.earlierResult(content, hasTimes: options.kept.contains(.times)) {
            return told(earlier, place)
        }
        let staged = try FileCopy(source, content, options, invocation).run(in: place.folder, for: place.name)
        defer { staged.discard() }
        let copy = try OpenFile.reading(staged)
        switch try place.placing.place(place.folder, try staged.name(), content: copy, noting: &place.changes) {
        case .skipped: return place.outcome(place.skipped)
        case .duplicate(let name):
            let path = place.folder.path(of: name)
            return place.outcome(
                Outcome(.succeeded, "'\(path)' has the same content", code: "same-content", outputs: [path]))
        case .placed(let name):
            if options.isDurable { place.folder.flush() }
            try place.note(name) { .made($0, source: source.path) }
            let path = place.folder.path(of: name)
            return place.outcome(Outcome(.succeeded, "copied to \(path)", outputs: [path]))
        }
    }

    private func told(_ name: PathBytes, _ place: FilePlace) -> Outcome {
        let path = place.folder.path(of: name)
        return place.outcome(Outcome(.succeeded, "an earlier attempt left it at \(path)", outputs: [path]))
    }
}

extension OpenFile {
    /// Another descriptor for what is staged.
    ///
    /// It can't be written to: as long as it is open the file doesn't count as unfinished.
    static func reading(_ staged: StagedFile) throws(FileFault) -> OpenFile {
        let descriptor = PathBytes("/proc/self/fd/\(staged.descriptor)").withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileFault(errno, "cannot open the copy in '\(staged.folder.path)'") }
        let file = OpenFile(descriptor)
        TemporaryName.lock(descriptor)
        return file
    }
}
