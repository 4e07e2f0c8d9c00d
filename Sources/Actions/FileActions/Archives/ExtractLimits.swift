import ActionAPI
import PluginProtocol
import Rules

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

    /// - Throws: A `TextProblem` if a size is invalid.
    init(_ parameter: Parameter?) throws(TextProblem) {
        if let text = parameter?["size"]?.bytes {
            size = UInt64(try SizeText.parse(String(decoding: text, as: UTF8.self)))
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
