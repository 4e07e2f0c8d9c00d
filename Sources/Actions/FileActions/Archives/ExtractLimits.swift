import PluginProtocol
import Rules

/// How much an archive may unpack to, so that a small one can't fill the disk.
struct ExtractLimits {
    /// Bytes of all files together.
    var size: UInt64 = 4 << 30
    /// Files, folders and links.
    var files = 100_000
    /// Times that the archive may grow, counted from ``ratioCountsFrom`` on.
    var ratio: UInt64 = 200

    /// Small archives may be of anything: a folder of zeros is no bomb.
    static let ratioCountsFrom: UInt64 = 16 << 20

    static let schema = ParameterSchema(
        type: "object",
        properties: [
            "size": ParameterSchema(
                type: "string", default: "4 GiB", minLength: 1, pattern: "^[0-9]+(\\.[0-9]+)?( ?([KMGkmg]i?)?[Bb])?$",
                description: "Most bytes that all files together may have, as 500 MiB."),
            "files": ParameterSchema(
                type: "integer", default: 100_000, minimum: 1, maximum: 100_000_000,
                description: "Most files, folders and links."),
            "ratio": ParameterSchema(
                type: "integer", default: 200, minimum: 1, maximum: 1_000_000,
                description: "Most times that the archive may grow; counts from 16 MiB on."),
        ], additionalProperties: false, examples: [["size": "500 MiB", "files": 2000]],
        description: "How much may be unpacked.")

    /// - Throws: When a size is none.
    init(_ parameter: Parameter?) throws(SizeProblem) {
        if let text = parameter?["size"]?.bytes {
            size = UInt64(try SizeText.parse(String(decoding: text, as: UTF8.self)))
        }
        if case .value(let number)? = parameter?["files"], let count = number.double { files = Int(count) }
        if case .value(let number)? = parameter?["ratio"], let times = number.double { ratio = UInt64(times) }
    }

    /// Why so much is too much; nil when it isn't.
    func excess(bytes: UInt64, files count: Int, packed: UInt64) -> String? {
        if bytes > size { return "more than \(SizeText.binary(size)) ('limits.size')" }
        if count > files { return "more than \(files) files and folders ('limits.files')" }
        if bytes > Self.ratioCountsFrom, bytes / ratio > max(packed, 1) {
            return "more than \(ratio) times its own size ('limits.ratio')"
        }
        return nil
    }
}
