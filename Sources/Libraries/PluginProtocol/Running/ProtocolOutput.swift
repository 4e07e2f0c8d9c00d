#if canImport(Musl)
import Musl
#else
import Glibc
#endif
import Synchronization

/// A descriptor to which whole lines are written, by any thread.
final class ProtocolOutput: Sendable {
    private let descriptor: Int32
    private let turn = Mutex(())

    /// The log, and in `run` progress.
    static let error = ProtocolOutput(2)

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Takes standard output for the protocol; what anyone else writes there goes to standard error from now on.
    static func claim() -> ProtocolOutput {
        let copy = fcntl(1, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { return ProtocolOutput(1) }
        dup2(2, 1)
        return ProtocolOutput(copy)
    }

    /// Writes all bytes; a reader that has gone is not an error.
    func write(_ bytes: [UInt8]) {
        turn.withLock { _ in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Writes the value as one line of JSON.
    func write(line value: some JSONForm) { write(value.lineBytes + [UInt8(ascii: "\n")]) }
}

private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, start, count)
}
