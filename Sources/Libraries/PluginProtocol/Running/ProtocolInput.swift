import Dispatch

#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Standard input, read on a separate thread, since Swift's cooperative threads must not be blocked.
enum ProtocolInput {
    private static let thread = DispatchQueue(label: "alight-input")

    /// Returns everything up to the end of input.
    static func whole() async -> [UInt8] {
        await withCheckedContinuation { continuation in
            thread.async {
                var content: [UInt8] = []
                while let piece = next() { content += piece }
                continuation.resume(returning: content)
            }
        }
    }

    /// Calls `take` with each line, without its newline, and `end` after the last.
    static func lines(_ take: @escaping @Sendable ([UInt8]) -> Void, end: @escaping @Sendable () -> Void) {
        thread.async {
            var rest: [UInt8] = []
            while let piece = next() {
                rest += piece
                // For a line that arrives in many pieces, only the new piece is searched.
                guard piece.contains(UInt8(ascii: "\n")) else { continue }
                var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                rest = Array(lines.removeLast())
                for line in lines where !line.isEmpty { take(Array(line)) }
            }
            if !rest.isEmpty { take(rest) }
            end()
        }
    }

    /// Returns the next piece of input; nil at the end.
    private static func next() -> [UInt8]? {
        while true {
            var count = 0
            let piece = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, size in
                count = read(0, buffer.baseAddress, buffer.count)
                size = max(count, 0)
            }
            if count < 0, errno == EINTR { continue }
            return count > 0 ? piece : nil
        }
    }
}
