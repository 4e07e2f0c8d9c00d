package import ActionAPI
import FileEvents
import Glibc
import Logging
import PluginProtocol
package import Rules
import System

/// The `archive` action: packs a file, a directory, or all files of a batch into one archive.
package struct ArchiveHandler: BlockingHandler {
    private let trash: Trash

    /// - Parameter trash: The trash for files that `on_conflict: trash` replaces.
    package init(trash: Trash) { self.trash = trash }

    package let summary = HandlerDescription(
        "archive",
        Destination.parameters(
            to: .path(
                "The path of the archive. Missing directories are created.", example: "done/${name}.tar.gz",
                pattern: "[^/]$"),
            [
                "format": .choice(
                    ArchiveFormat.allCases.map(\.rawValue),
                    "The format of the archive. Default: the extension of 'to'.", example: "tar.gz"),
                "name": .string(
                    "The file's path in the archive. Default: the path below the watched directory.",
                    example: "${name}"),
            ]), required: ["to"], types: [.file, .directory])

    package func run(_ invocation: Invocation) -> Outcome { run([invocation])[0] }

    /// A file by its index in the batch, and its path in the archive.
    private typealias Member = (index: Int, name: PathBytes)

    /// Creates one archive for all files with the same destination.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        var outcomes: [Outcome?] = invocations.map { _ in nil }
        var groups: [PathBytes: [Member]] = [:]
        for (index, invocation) in invocations.enumerated() {
            do throws(FileError) {
                try ArchiveFormat.loadLibrary()
                let path = try Destination.path(invocation)
                groups[path, default: []].append((index, try Self.name(of: invocation)))
            } catch {
                outcomes[index] = error.outcome
            }
        }
        for (path, members) in groups {
            let outcome = Outcome.of { () throws(FileError) in
                try pack(members.sorted { $0.name < $1.name }, invocations, into: path, &outcomes)
            }
            for member in members where outcomes[member.index] == nil { outcomes[member.index] = outcome }
        }
        return outcomes.map { $0 ?? Outcome(.failed, "it is not in the archive") }
    }

    /// Returns the path in the archive, which is always below its top level, regardless of the values of placeholders.
    private static func name(of invocation: Invocation) throws(FileError) -> PathBytes {
        let event = invocation.job.event
        let relative = event.path.relative(to: event.root) ?? []
        // A root that is packed has no path relative to itself.
        let defaultName = Array(relative.isEmpty ? event.path.lastComponent : relative)
        let wanted = invocation.parameters["name"]?.bytes ?? defaultName
        let parts = wanted.split(separator: .slash).filter { !$0.elementsEqual([.dot]) }
        guard !parts.isEmpty, !wanted.contains(0), !parts.contains(where: { $0.elementsEqual([.dot, .dot]) }) else {
            throw FileError(EINVAL, "'\(PathBytes(wanted))' can't be a path in an archive")
        }
        return PathBytes(parts.joined(separator: [.slash]))
    }

    /// Packs files into one archive.
    ///
    /// - Parameters:
    ///   - members: The files, sorted by their names.
    ///   - invocations: The invocations of the batch.
    ///   - path: The path of the archive.
    ///   - outcomes: Receives the outcomes of files that are not packed.
    /// - Returns: The outcome for the packed files.
    /// - Throws: A ``FileError`` if the archive cannot be created.
    private func pack(
        _ members: [Member], _ invocations: [Invocation], into path: PathBytes, _ outcomes: inout [Outcome?]
    ) throws(FileError) -> Outcome {
        let first = invocations[members[0].index]
        guard let format = first.text("format").flatMap(ArchiveFormat.init(rawValue:)) ?? ArchiveFormat(of: path) else {
            let known = ArchiveFormat.allCases.map { ".\($0.rawValue)" }.joined(separator: ", ")
            throw .failed(
                "'\(path)' doesn't have the extension of an archive; end it with \(known), or set 'format'",
                code: "bad-parameters")
        }
        var sources: [(name: PathBytes, file: SourceFile)] = []
        for member in members {
            do throws(FileError) {
                guard member.name != sources.last?.name else {
                    throw .failed(
                        "two files would be '\(member.name)' in '\(path)'; set a different 'name' for each",
                        code: "same-name")
                }
                sources.append((member.name, try SourceFile(invocations[member.index])))
            } catch {
                outcomes[member.index] = error.outcome
            }
        }
        guard !sources.isEmpty else { return Outcome(.skipped) }
        let location = try FileLocation(first, trash: trash)
        let staged = try StagedFile(in: location.directory, for: location.name, mode: 0o666)
        let writing = try ArchiveWriting(
            to: staged.descriptor, path, format, without: location.directory.metadata(of: location.name)?.identity,
            within: location.limit)
        for source in sources { try writing.add(source.file, as: source.name) }
        try writing.finish()
        for path in writing.omitted {
            first.log.warning(
                "'\(path)' is not a file, directory or link, or is a mount point, and is not in the archive")
        }
        try staged.flush()
        let values: [String: JSONValue] = [
            "files": .integer(Int64(writing.files)), "bytes": .integer(Int64(clamping: writing.bytes)),
        ]
        let content = try OpenFile.reading(staged)
        if let earlier = try location.earlierResult(content, hasTimes: false) {
            return location.finished(earlier, values: values)
        }
        switch try location.location(staged, content: content) {
        case .skipped: return location.skipped
        case .duplicate(let name): return location.succeeded(name, values: values) { "'\($0)' has the same content" }
        case .placed(let name):
            location.directory.flush()
            let counted = writing.files == 1 ? "1 file" : "\(writing.files) files"
            return location.succeeded(name, values: values) { "\(counted) packed into \($0)" }
        }
    }
}
