package import ActionAPI
import FileEvents
import Glibc
import Logging
import PluginProtocol
package import Rules
import System

/// The `archive` action: packs a file, a directory, or all files of a batch into one archive.
package struct ArchiveHandler: Handler {
    private let trash: Trash

    /// - Parameter trash: The trash for files that `on_conflict: trash` replaces.
    package init(trash: Trash) { self.trash = trash }

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "archive"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": ParameterSchema(
                    type: "string", examples: ["done/${name}.tar.gz"], minLength: 1, pattern: "[^/]$",
                    description:
                        "The path of the archive. Missing directories are created. A relative path is resolved "
                        + "from the directory of the rules file.",
                    role: ParameterSchema.destination),
                "format": ParameterSchema(
                    type: "string", enum: ArchiveFormat.allCases.map { .string($0.rawValue) },
                    examples: ["tar.gz"],
                    description: "The format of the archive. Default: the extension of 'to'."),
                "name": ParameterSchema(
                    type: "string", examples: ["${name}"], minLength: 1,
                    description: "The file's path in the archive. Default: the path below the watched directory."),
                "on_conflict": Conflict.schema, "allow": Jail.schema,
            ], required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file, .directory])

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    private struct Group {
        var destination: Destination
        var members: [(number: Int, name: PathBytes)] = []
    }

    /// Creates one archive for all files with the same destination.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        if let problem = ArchiveFormat.problem {
            return invocations.map { _ in Outcome(.failed, problem, code: "no-library") }
        }
        var outcomes: [Outcome?] = invocations.map { _ in nil }
        var groups: [PathBytes: Group] = [:]
        for (number, invocation) in invocations.enumerated() {
            do throws(FileError) {
                let destination = try Destination(invocation)
                let name = try Self.name(of: invocation)
                groups[destination.path, default: Group(destination: destination)].members.append((number, name))
            } catch {
                outcomes[number] = error.outcome
            }
        }
        for var group in groups.values {
            group.members.sort { $0.name < $1.name }
            do throws(FileError) {
                try pack(group, invocations, &outcomes)
            } catch {
                for member in group.members where outcomes[member.number] == nil {
                    outcomes[member.number] = error.outcome
                }
            }
        }
        return outcomes.map { $0 ?? Outcome(.failed, "it is not in the archive") }
    }

    /// Returns the path in the archive, which is always below its top level, regardless of the values of placeholders.
    private static func name(of invocation: Invocation) throws(FileError) -> PathBytes {
        let event = invocation.job.event
        let relative = Array(event.path.relative(to: event.root) ?? event.path.lastComponent)
        // A root that is packed has no path relative to itself.
        let usual = relative.isEmpty ? Array(event.path.lastComponent) : relative
        let wanted = invocation.parameters["name"]?.bytes ?? usual
        let parts = wanted.split(separator: .slash).filter { !$0.elementsEqual([.dot]) }
        guard !parts.isEmpty, !wanted.contains(0), !parts.contains(where: { $0.elementsEqual([.dot, .dot]) }) else {
            throw FileError(EINVAL, "'\(PathBytes(wanted))' can't be a path in an archive")
        }
        return PathBytes(parts.joined(separator: [.slash]))
    }

    private func pack(_ group: Group, _ invocations: [Invocation], _ outcomes: inout [Outcome?]) throws(FileError) {
        guard let first = group.members.first.map({ invocations[$0.number] }) else { return }
        func all(_ outcome: Outcome) {
            for member in group.members where outcomes[member.number] == nil { outcomes[member.number] = outcome }
        }
        let path = group.destination.path
        guard let format = first.text("format").flatMap(ArchiveFormat.init(rawValue:)) ?? ArchiveFormat(of: path) else {
            let known = ArchiveFormat.allCases.map { ".\($0.rawValue)" }.joined(separator: ", ")
            let message = "'\(path)' doesn't have the extension of an archive; end it with \(known), or set 'format'"
            return all(Outcome(.failed, message, code: "bad-parameters"))
        }
        var sources: [(number: Int, name: PathBytes, file: SourceFile)] = []
        for member in group.members {
            guard member.name != sources.last?.name else {
                let message = "two files would be '\(member.name)' in '\(path)'; set a different 'name' for each"
                outcomes[member.number] = Outcome(.failed, message, code: "same-name")
                continue
            }
            do throws(FileError) {
                sources.append((member.number, member.name, try SourceFile(invocations[member.number])))
            } catch {
                outcomes[member.number] = error.outcome
            }
        }
        guard !sources.isEmpty else { return }
        var place = try FilePlace(first, trash: trash)
        let staged = try StagedFile(in: place.folder, for: place.name, mode: 0o666)
        let limit = place.limit
        let writing = try ArchiveWriting(
            to: staged.descriptor, path, format, without: place.folder.look(at: place.name)?.identity
        ) { limit.isOver }
        for source in sources {
            switch try writing.add(source.file, as: source.name) {
            case .done: continue
            case .changed: return all(Outcome(.notReady, "it changed while it was packed", code: "changed"))
            case .over:
                return all(limit.outcome("packing") ?? .interrupted("stopped during the packing"))
            }
        }
        try writing.finish()
        for path in writing.leftOut {
            first.log.warning(
                "'\(path)' is not a file, directory or link, or is a mount point, and is not in the archive")
        }
        try staged.flush()
        let content = try OpenFile.reading(staged)
        if let earlier = try place.earlierResult(content, hasTimes: false) {
            let path = place.folder.path(of: earlier)
            return all(writing.outcome("an earlier attempt created it at \(path)", path))
        }
        let ending = try place.placing.place(place.folder, staged.name(), content: content, noting: &place.changes)
        switch ending {
        case .skipped: all(place.skipped)
        case .duplicate(let name):
            let path = place.folder.path(of: name)
            all(place.outcome(writing.outcome("'\(path)' has the same content", path)))
        case .placed(let name):
            place.folder.flush()
            let path = place.folder.path(of: name)
            let counted = writing.files == 1 ? "1 file" : "\(writing.files) files"
            all(place.outcome(writing.outcome("\(counted) packed into \(path)", path)))
        }
    }
}

extension ArchiveWriting {
    fileprivate func outcome(_ message: String, _ path: PathBytes) -> Outcome {
        Outcome(
            .succeeded, message, outputs: [path],
            values: ["files": .integer(Int64(files)), "bytes": .integer(Int64(clamping: bytes))])
    }
}
