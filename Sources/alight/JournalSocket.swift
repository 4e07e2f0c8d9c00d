import CAlightLinux
import Glibc

/// Sends messages with fields to the journal of systemd, in its native protocol.
///
/// What can't be sent is left to the caller, so that nothing is lost where no journal listens.
final class JournalSocket: Sendable {
    /// A field: its name of capitals, digits and `_`, and a value of any bytes.
    typealias Field = (name: String, value: [UInt8])

    private static let path = "/run/systemd/journal/socket"

    private let descriptor: Int32

    /// Opens a socket; nil when there is no descriptor for one.
    init?() {
        descriptor = cal_datagram_socket()
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Sends one message.
    ///
    /// A journal that is behind is waited for, as a pipe that is full would be.
    ///
    /// - Returns: Whether the journal has it.
    func send(_ fields: [Field]) -> Bool {
        let message = Self.message(fields)
        let error = cal_send_datagram(descriptor, Self.path, message, message.count, 1)
        guard error == EMSGSIZE || error == ENOBUFS else { return error == 0 }
        return cal_send_sealed(descriptor, Self.path, message, message.count) == 0
    }

    /// The fields as the journal reads them: `NAME=value`, or with a length in front where a newline is in the value.
    static func message(_ fields: [Field]) -> [UInt8] {
        var message: [UInt8] = []
        for (name, value) in fields {
            message += name.utf8
            if value.contains(UInt8(ascii: "\n")) {
                message.append(UInt8(ascii: "\n"))
                message += withUnsafeBytes(of: UInt64(value.count).littleEndian) { Array($0) }
            } else {
                message.append(UInt8(ascii: "="))
            }
            message += value
            message.append(UInt8(ascii: "\n"))
        }
        return message
    }

    /// Whether standard error or standard output is the stream that systemd connected with its journal.
    ///
    /// - Parameter stream: `JOURNAL_STREAM`: its device and inode.
    /// - Returns: Whether one of them is.
    static func isStream(of stream: String?) -> Bool {
        guard let stream else { return false }
        return [STDERR_FILENO, STDOUT_FILENO].contains { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
        }
    }
}
