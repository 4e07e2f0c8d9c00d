import Glibc
import System

/// A TCP address to listen at.
package struct ListenAddress: Sendable, Hashable {
    /// A numeric address in canonical form, or a name in lowercase.
    package var host: String
    package var port: UInt16

    /// Parses `127.0.0.1:8088`, `[::1]:8088`, `localhost:8088` or `:8088`, which is the loopback address; returns nil
    /// for anything else.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return nil
        }
        let written = text[..<colon]
        let isBracketed = written.hasPrefix("[") && written.hasSuffix("]")
        let host = String(isBracketed ? written.dropFirst().dropLast() : written)
        // The meaning of '*' depends on how the resolver is called.
        guard isBracketed == host.contains(":"), host != "*" else { return nil }
        self.host = host.isEmpty ? "127.0.0.1" : Self.canonical(host)
        self.port = port
    }

    /// Returns the host as browsers write it: a numeric address has many spellings, such as `127.1` and `0`.
    private static func canonical(_ host: String) -> String {
        var text: String?
        let error = forEachAddress(of: host, AI_NUMERICHOST) { text = numbers($0.ai_addr) }
        return error == 0 ? text ?? host : host.lowercased()
    }

    /// Calls the body with each address that a host and a port have, see getaddrinfo(3); returns the error.
    private static func forEachAddress(
        of host: String, port: String = "0", _ flags: Int32, _ body: (addrinfo) -> Void
    ) -> Int32 {
        var hints = addrinfo()
        hints.ai_flags = flags
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let error = getaddrinfo(host, port, &hints, &list)
        guard error == 0, let list else { return error }
        defer { freeaddrinfo(list) }
        for entry in sequence(first: list, next: { $0.pointee.ai_next }) { body(entry.pointee) }
        return 0
    }

    /// Whether only this host can connect.
    ///
    /// A name other than `localhost` may resolve to any address.
    package var isLoopback: Bool {
        guard host != "localhost" else { return true }
        let bytes = numbers
        return bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// Whether it stands for all addresses of this host.
    package var isAny: Bool {
        let bytes = numbers
        return !bytes.isEmpty && bytes.allSatisfy { $0 == 0 }
    }

    /// The bytes of the address, 4 or 16; empty for a name.
    private var numbers: [UInt8] { Self.numbers(of: host) }

    private static func numbers(of host: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, host, &bytes) == 1 { return Array(bytes.prefix(4)) }
        return inet_pton(AF_INET6, host, &bytes) == 1 ? bytes : []
    }

    /// The address as text.
    package var text: String { text(host) }

    private func text(_ host: String) -> String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The address as in a link to it; if it stands for all addresses, the one that other hosts most likely reach.
    package var linkText: String {
        guard isAny else { return text }
        let family = numbers.count == 4 ? AF_INET : AF_INET6
        return text(Self.ownAddress(family) ?? (family == AF_INET ? "127.0.0.1" : "::1"))
    }

    /// Returns whether a host, with or without a port, is a numeric address such as `192.0.2.1:8088` or `[::1]`.
    static func isNumbers(_ text: String) -> Bool {
        var host = Substring(text)
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            guard UInt16(host[host.index(after: colon)...]) != nil else { return false }
            host = host[..<colon]
        }
        guard host.hasPrefix("["), host.hasSuffix("]") else { return numbers(of: String(host)).count == 4 }
        return numbers(of: String(host.dropFirst().dropLast())).count == 16
    }

    /// The host names that the address bar of a browser may show for it.
    package var hosts: Set<String> {
        var names: Set<String> = [text]
        if isLoopback { names.formUnion(["localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)"]) }
        if isAny {
            var buffer = [CChar](repeating: 0, count: 256)
            if gethostname(&buffer, buffer.count - 1) == 0 {
                let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                names.formUnion(["\(name):\(port)", "localhost:\(port)"])
            }
        }
        // Browsers omit the default port.
        return port == 80 ? names.union(names.map { String($0.dropLast(3)) }) : names
    }

    /// Returns the address from which this host reaches others, else its first non-loopback address; nil if there is
    /// none.
    private static func ownAddress(_ family: Int32) -> String? {
        if let address = leavingAddress(family) { return address }
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            guard let address = entry.pointee.ifa_addr, Int32(address.pointee.sa_family) == family,
                let text = numbers(address), text != "::1", !text.hasPrefix("127.")
            else { continue }
            return text
        }
        return nil
    }

    /// Returns the source address of outgoing packets.
    ///
    /// No packet is sent to determine it.
    private static func leavingAddress(_ family: Int32) -> String? {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // Addresses reserved for documentation: RFC 5737, RFC 3849.
        let outside = family == AF_INET ? "192.0.2.1" : "2001:db8::1"
        var isConnected = false
        _ = forEachAddress(of: outside, port: "9", AI_NUMERICHOST) {
            isConnected = connect(descriptor, $0.ai_addr, $0.ai_addrlen) == 0
        }
        guard isConnected else { return nil }
        var own = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &own) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &length) == 0 ? numbers(address) : nil
            }
        }
    }

    /// Returns the numeric address; nil for a link-local one, which is useless without the name of its link.
    private static func numbers(_ address: UnsafeMutablePointer<sockaddr>) -> String? {
        var buffer = [CChar](repeating: 0, count: 64)
        let isIPv4 = Int32(address.pointee.sa_family) == AF_INET
        let length = isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
        guard getnameinfo(address, socklen_t(length), &buffer, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0
        else { return nil }
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.contains("%") ? nil : text
    }

    private static func isLoopback(_ address: UnsafeMutablePointer<sockaddr>) -> Bool {
        guard let text = numbers(address) else { return false }
        return text == "::1" || text.hasPrefix("127.")
    }

    /// Opens the sockets of the address; for a name, one for each of its addresses.
    ///
    /// - Throws: A `ControlProblem` when none can be opened.
    func open() throws(ControlProblem) -> [Int32] {
        var descriptors: [Int32] = []
        var error: Int32 = 0
        let result = Self.forEachAddress(of: host, port: "\(port)", AI_PASSIVE) { info in
            // Without a token, only this host may connect, regardless of how 'localhost' resolves.
            guard !isLoopback || Self.isLoopback(info.ai_addr) else {
                error = EADDRNOTAVAIL
                return
            }
            let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let descriptor = socket(info.ai_family, info.ai_socktype | flags, 0)
            var one: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
            if info.ai_family == AF_INET6 {
                setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &one, socklen_t(MemoryLayout<Int32>.size))
            }
            guard descriptor >= 0, bind(descriptor, info.ai_addr, info.ai_addrlen) == 0, listen(descriptor, 64) == 0
            else {
                error = errno
                if descriptor >= 0 { close(descriptor) }
                return
            }
            descriptors.append(descriptor)
        }
        guard result == 0 else {
            throw ControlProblem(
                "cannot listen at '\(text)': \(String(cString: gai_strerror(result)))",
                help: "write --listen 127.0.0.1:8088, or an address that this machine has")
        }
        guard !descriptors.isEmpty else {
            throw ControlProblem(
                "cannot listen at '\(text)': \(SystemError(errno: error))",
                help: "use another port, or an address that this machine has")
        }
        return descriptors
    }
}
