import Glibc
package import System

/// A raw connection to a Unix socket or TCP port, on which a test can send malformed HTTP.
package final class RawHTTP {
    package let descriptor: Int32
    private var received: [UInt8] = []

    /// Connects to a Unix socket.
    ///
    /// Returns nil if the connection is refused.
    package init?(_ path: PathBytes) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { buffer in
            precondition(path.bytes.count < buffer.count, "a path that is too long for a socket")
            for (index, byte) in path.bytes.enumerated() { buffer[index] = byte }
        }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { return nil }
        limitWaiting()
    }

    private func limitWaiting() {
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Connects to a port of the loopback address.
    ///
    /// Returns nil if the connection is refused.
    package init?(port: UInt16) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { return nil }
        limitWaiting()
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Returns a port of the loopback address that was free at the time of the call.
    package static func freePort() -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(descriptor, $0, length)
                _ = getsockname(descriptor, $0, &length)
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }

    /// Sends the string.
    ///
    /// Returns false if the peer has closed the connection.
    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Whether unread data has arrived.
    package var hasReceived: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) == 1
    }

    /// Reads until the peer closes the connection or no data arrives for a minute.
    package func readAll() -> String {
        while fill() {}
        return String(decoding: received, as: UTF8.self)
    }

    /// Reads until the received data contains the string or no more data arrives.
    ///
    /// Returns all received data.
    package func read(until text: String) -> String {
        while !String(decoding: received, as: UTF8.self).contains(text), fill() {}
        return String(decoding: received, as: UTF8.self)
    }

    private func fill() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return false }
        received += buffer[..<count]
        return true
    }

    /// Sends one request on a new connection.
    ///
    /// - Returns: The status and the body; nil if the connection is refused or the response is invalid.
    package static func ask(
        _ path: PathBytes, _ method: String, _ target: String, _ body: String = "", headers: [String] = []
    ) -> (status: Int, body: String)? {
        guard let connection = RawHTTP(path) else { return nil }
        let lines = ["\(method) \(target) HTTP/1.0", "Host: alight", "Content-Length: \(body.utf8.count)"] + headers
        connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
        let answer = connection.readAll()
        guard let end = answer.range(of: "\r\n\r\n"), answer.hasPrefix("HTTP/1."),
            let status = Int(answer.split(separator: " ").dropFirst().first ?? "")
        else { return nil }
        return (status, String(answer[end.upperBound...]))
    }
}

extension String {
    /// Returns the range of the string, compared by bytes: CR LF is one character in Swift but two in HTTP.
    fileprivate func range(of text: String) -> Range<String.Index>? {
        let bytes = Array(utf8)
        let wanted = Array(text.utf8)
        guard bytes.count >= wanted.count else { return nil }
        for start in 0...(bytes.count - wanted.count) where bytes[start..<(start + wanted.count)].elementsEqual(wanted)
        {
            let from = utf8.index(startIndex, offsetBy: start)
            return from..<utf8.index(from, offsetBy: wanted.count)
        }
        return nil
    }
}
