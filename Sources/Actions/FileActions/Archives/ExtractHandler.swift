package import ActionAPI
import CAlightLinux
import Globbing
import PluginProtocol
package import Rules
import System

/// The `extract` action: unpacks an archive into a directory, which appears as a whole.
package struct ExtractHandler: FileHandler {
    private let trash: Trash

    /// - Parameter trash: The trash for files that `on_conflict: trash` replaces.
    package init(trash: Trash) { self.trash = trash }

    package let summary = HandlerDescription(
        "extract",
        Destination.parameters(
            to: .path(
                "The directory to create, or with a slash at its end the directory in which to create one named "
                    + "after the archive.", example: "done/"),
            ["limits": ExtractLimits.schema, "exclude": Self.excludeSchema]), required: ["to"], types: [.file])

    private static let excludeSchema = ParameterSchema(
        type: "array", default: ["**/__MACOSX", "**/.DS_Store"], examples: [["**/*.tmp"]],
        items: ParameterSchema(type: "string", minLength: 1, role: ParameterSchema.literal),
        description: "The entries that are not unpacked: globs relative to the top of the archive. A glob that matches "
            + "a directory also excludes everything below it.")

    /// Returns the globs of the parameter `exclude`.
    private func excluded(_ invocation: Invocation) throws(FileError) -> [Glob] {
        guard case .array(let patterns)? = invocation.parameters["exclude"] else { return [] }
        do throws(GlobError) {
            return try patterns.compactMap(\.bytes).map { (pattern) throws(GlobError) in
                try Glob(pattern, options: Glob.Options(matchesHidden: true))
            }
        } catch {
            throw .failed("'exclude': \(error.message); \(error.help)", code: "bad-parameters")
        }
    }

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        try ArchiveFormat.loadLibrary()
        let limits = try ExtractLimits(invocation.parameters["limits"])
        let excluded = try excluded(invocation)
        let source = try SourceFile(invocation)
        let archive = try source.openForReading()
        let isInto = invocation.parameters["to"]?.bytes?.last == .slash
        let name = isInto ? PathBytes(ArchiveFormat.stem(of: source.name.bytes[...])) : nil
        let location = try FileLocation(invocation, as: name, trash: trash)
        if location.conflict == .skip, try location.directory.metadata(of: location.name) != nil {
            return location.skipped
        }
        let staging = try StagedDirectory(in: location.directory, for: location.name)
        let extraction = Extraction(
            of: source, into: staging.content, limits, without: excluded, mask: staging.mask, within: location.limit)
        do throws(FileError) {
            try extraction.run(archive)
        } catch {
            // If the file changed while it was read, the error is not that of the archive.
            if !extraction.wasStopped, try !source.isUnchanged() { throw FileError.changed }
            throw error
        }
        guard try source.isUnchanged() else { throw .changed }
        let values: [String: JSONValue] = [
            "entries": .integer(Int64(extraction.count)), "bytes": .integer(Int64(clamping: extraction.bytes)),
        ]
        if let earlier = try earlierResult(location, staging) {
            return location.succeeded(earlier, values: values) { "'\($0)' already has the same contents" }
        }
        let error = cal_sync_file_system(staging.content.descriptor)
        guard error == 0 else { throw FileError(error, "cannot flush '\(location.path)'") }
        let sealed = try staging.seal()
        guard let published = try staging.publish(to: location) else { return location.skipped }
        location.directory.flush()
        try location.record(published) { .unpacked($0, source: source.path, sealed: sealed) }
        let counted = extraction.count == 1 ? "1 entry" : "\(extraction.count) entries"
        return location.succeeded(published, values: values) { "\(counted) unpacked into \($0)" }
    }

    /// Returns the name of a directory with the same files: left by an attempt that could not report it, or sought by
    /// `deduplicate`.
    private func earlierResult(_ location: FileLocation, _ staging: StagedDirectory) throws(FileError) -> PathBytes? {
        let isAgain = location.invocation.hasStartedBefore && location.conflict != .overwrite
        guard isAgain || location.conflict == .deduplicate else { return nil }
        return try location.firstName(numbered: [.rename, .deduplicate]) { (name, there) throws(FileError) in
            guard there.type == .directory, let directory = location.directory.openDirectory(name) else { return false }
            return try SameContent.holds(directory, staging.content, within: location.limit)
        }
    }
}

/// The limits on the content of an archive, so that a small archive cannot fill the disk.
struct ExtractLimits {
    /// The maximum size of all files together, in bytes.
    var size: UInt64 = 4 << 30
    /// The maximum number of files, directories and links.
    var files = 100_000
    /// The maximum ratio of the unpacked size to the packed size, checked from ``ratioCountsFrom`` on.
    var ratio: UInt64 = 200

    /// The unpacked size from which the ratio is checked: a small archive of zeros is harmless.
    static let ratioCountsFrom: UInt64 = 16 << 20

    static let schema = ParameterSchema(
        type: "object",
        properties: [
            "size": .string(
                "The maximum total size of all files, such as 500 MiB.", default: "4 GiB",
                pattern: "^[0-9]+(\\.[0-9]+)?( ?([KMGkmg]i?)?[Bb])?$"),
            "files": ParameterSchema(
                type: "integer", default: 100_000, minimum: 1, maximum: 100_000_000,
                description: "The maximum number of files, directories and links."),
            "ratio": ParameterSchema(
                type: "integer", default: 200, minimum: 1, maximum: 1_000_000,
                description: "The maximum ratio of the unpacked to the packed size; checked above 16 MiB."),
        ], additionalProperties: false, examples: [["size": "500 MiB", "files": 2000]],
        description: "The limits for unpacking.")

    /// - Throws: A ``FileError`` if a size is invalid.
    init(_ parameter: Parameter?) throws(FileError) {
        if let text = parameter?["size"]?.bytes {
            do throws(Problem) {
                size = UInt64(try SizeText.parse(String(decoding: text, as: UTF8.self)))
            } catch {
                throw .failed("'limits.size': \(error.message); \(error.help ?? "")", code: "bad-parameters")
            }
        }
        if case .value(let number)? = parameter?["files"], let count = number.double { files = Int(count) }
        if case .value(let number)? = parameter?["ratio"], let times = number.double { ratio = UInt64(times) }
    }

    /// Returns the limit that is exceeded, for a message; nil if none is.
    func excess(bytes: UInt64, files count: Int, packed: UInt64) -> String? {
        if bytes > size { return "more than \(SizeText.binary(size)) ('limits.size')" }
        if count > files { return "more than \(files) files and directories ('limits.files')" }
        if bytes > Self.ratioCountsFrom, bytes / ratio > max(packed, 1) {
            return "more than \(ratio) times its own size ('limits.ratio')"
        }
        return nil
    }
}
