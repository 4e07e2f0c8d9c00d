import Glibc
import PluginProtocol

/// Writes the checksum of a file into one beside it, as sha256sum(1) does; or compares the two.
@main struct DigestPlugin: Plugin {
    // As in plugin.yaml.
    static let concurrent = 4

    func handle(_ request: PluginRequest) async throws -> PluginResponse {
        guard let event = request.events.first else {
            throw PluginFailure.failed("the request has no event", code: "bad-request")
        }
        let parameters = request.parameters(for: event)
        let name = parameters["algorithm"]?.string ?? "sha256"
        guard let algorithm = Algorithm(rawValue: name) else {
            throw PluginFailure.failed("unknown algorithm '\(name)'", code: "bad-parameters")
        }
        let suffix = Array(".\(name)".utf8)
        guard !event.pathBytes.suffix(suffix.count).elementsEqual(suffix) else {
            throw PluginFailure.skipped("it is a checksum file", code: "checksum")
        }
        let sidecar = event.pathBytes + suffix
        let sum = try digest(of: event.pathBytes, algorithm)
        let line = SumLine(sum: sum, name: Array(event.pathBytes.split(separator: UInt8(ascii: "/")).last ?? []))
        if parameters["verify"]?.bool == true, let known = try SystemFile.content(of: sidecar) {
            guard SumLine.sum(in: known) == sum else {
                throw PluginFailure.failed("the content does not match the checksum", code: "mismatch")
            }
            return PluginResponse(.succeeded, message: "\(sum), as before", values: ["sum": .string(sum)])
        }
        // An equal file is not written again, so that rules for it receive no event.
        if try SystemFile.content(of: sidecar) != line.bytes {
            try SystemFile.write(line.bytes, to: sidecar, job: request.id)
        }
        return PluginResponse(
            .succeeded, message: sum, outputs: [PluginPath(bytes: sidecar)], values: ["sum": .string(sum)])
    }

    /// Reads the file to its end, and reports the progress.
    private func digest(of path: [UInt8], _ algorithm: Algorithm) throws -> String {
        let file = try SystemFile(reading: path)
        let digest = try Digest(algorithm)
        var done = 0
        while let block = try file.next() {
            try Task.checkCancellation()
            try digest.add(block)
            done += block.count
            if file.size > 64 << 20 { PluginReport.progress(Double(done) / Double(file.size)) }
        }
        return try digest.hexadecimal()
    }
}

/// A line as sha256sum(1) writes and reads it.
struct SumLine {
    let bytes: [UInt8]

    init(sum: String, name: [UInt8]) {
        // A name with such bytes is escaped, and the line begins with a backslash.
        let escapes: [UInt8: String] = [
            UInt8(ascii: "\\"): "\\\\", UInt8(ascii: "\n"): "\\n", UInt8(ascii: "\r"): "\\r",
        ]
        let escaped = name.flatMap { byte in escapes[byte].map { Array($0.utf8) } ?? [byte] }
        bytes = Array((escaped == name ? "" : "\\").utf8) + Array("\(sum)  ".utf8) + escaped + [UInt8(ascii: "\n")]
    }

    /// The checksum in such a line.
    static func sum(in line: [UInt8]) -> String {
        let start = line.first == UInt8(ascii: "\\") ? line.dropFirst() : line[...]
        return String(decoding: start.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
    }
}
