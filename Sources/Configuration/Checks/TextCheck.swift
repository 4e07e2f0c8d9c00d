import Rules
import System

/// Reads text files, and checks whether YAML accepts their text.
enum TextCheck {
    /// The maximum size in bytes; a larger file is rejected unread.
    static let maximumSize = 4 << 20

    /// Reads the text of a file, without its byte order mark.
    static func source(_ path: PathBytes, shown file: String) throws(Diagnostic) -> SourceText {
        let bytes: [UInt8]
        do throws(Problem) {
            bytes = try FileReading.read(path, limit: maximumSize)
        } catch {
            throw Diagnostic(.error, file: file, message: error.message, help: error.help)
        }
        if let name = utf16Name(bytes) {
            throw Diagnostic(
                .error, file: file, message: "the file is \(name), not UTF-8",
                help: "save it as UTF-8, or convert it with 'iconv -f \(name) -t UTF-8'")
        }
        if let offset = bytes.firstInvalidUTF8 {
            // Before the first invalid byte, the lossy text has the same offsets.
            let lossy = SourceText(file: file, bytes: Array(String(decoding: bytes, as: UTF8.self).utf8))
            let byte = String(bytes[offset], radix: 16, uppercase: true)
            throw Diagnostic(
                .error, in: lossy, at: offset..<(offset + 1),
                message: "the file is not UTF-8: byte \(offset) is 0x\(byte)", help: "save it as UTF-8")
        }
        let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        let source = SourceText(file: file, bytes: content)
        guard let offset = firstForbiddenOffset(content) else { return source }
        let scalar = source.text(offset..<min(offset + 4, content.count)).unicodeScalars.first?.value ?? 0
        let name = "U+" + String(scalar, radix: 16, width: 4)
        let (message, help) =
            scalar == 0
            ? ("the file contains a NUL byte", "this may not be a text file")
            : (
                "the file contains the control character \(name)",
                "remove it; in double quotes it can be written as an escape"
            )
        throw Diagnostic(.error, in: source, at: offset..<(offset + 1), message: message, help: help)
    }

    /// Returns the name of the encoding if the bytes start like UTF-16 or UTF-32.
    private static func utf16Name(_ bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0xFF, 0xFE, 0, 0]) { return "UTF-32" }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) { return "UTF-16" }
        // Without a byte order mark: a rules file starts with an ASCII character.
        guard bytes.count >= 4 else { return nil }
        if bytes[0] == 0, bytes[1] != 0, bytes[2] == 0, bytes[3] != 0 { return "UTF-16BE" }
        if bytes[0] != 0, bytes[1] == 0, bytes[2] != 0, bytes[3] == 0 { return "UTF-16LE" }
        return nil
    }

    /// Returns the offset of the first character that YAML forbids: controls, noncharacters, byte order marks.
    private static func firstForbiddenOffset(_ bytes: [UInt8]) -> Int? {
        bytes.withUnsafeBufferPointer { bytes in
            for (offset, byte) in bytes.enumerated() {
                switch byte {
                case 0x09, 0x0A, 0x0D, 0x20...0x7E: continue
                case ...0x1F, 0x7F: return offset
                case 0xC2 where bytes[offset + 1] < 0xA0 && bytes[offset + 1] != 0x85: return offset
                case 0xEF where bytes[offset + 1] == 0xBF && bytes[offset + 2] >= 0xBE: return offset
                case 0xEF where bytes[offset + 1] == 0xBB && bytes[offset + 2] == 0xBF: return offset
                default: continue
                }
            }
            return nil
        }
    }
}
