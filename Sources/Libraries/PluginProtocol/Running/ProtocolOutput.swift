#if canImport(Musl)
import Musl
#else
import Glibc
#endif
import Synchronization

/// A descriptor to which any thread can write whole lines.
final class ProtocolOutput: Sendable {
    private let descriptor: Int32
    private let turn = Mutex(())

    /// Standard error: the log, and in `run` also progress.
    static let error = ProtocolOutput(2)

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Reserves standard output for the protocol; all other writes to it go to standard error from now on.
    static func claim() -> ProtocolOutput {
        let copy = fcntl(1, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { return ProtocolOutput(1) }
        dup2(2, 1)
        return ProtocolOutput(copy)
    }

    /// Writes all bytes; a closed reader is not an error.
    func send(_ bytes: [UInt8]) {
        turn.withLock { _ in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Writes the value as one line of JSON.
    func send(line value: some JSONForm) { send(value.lineBytes + [UInt8(ascii: "\n")]) }
}
