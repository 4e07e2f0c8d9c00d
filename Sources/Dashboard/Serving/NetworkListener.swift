import Glibc

/// An address at which somebody may be called by TCP.
package struct ListenAddress: Sendable, Hashable {
    /// As it was written: an address, or a name.
    package var host: String
    package var port: UInt16

    /// Reads `127.0.0.1:8088`, `[::1]:8088`, `localhost:8088` or `:8088`, which is this machine alone; nil for all else.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return nil
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        self.host = host.isEmpty ? "127.0.0.1" : host
        self.port = port
    }

    /// Whether nobody but this machine can call there.
    ///
    /// A name other than `localhost` may stand for any address.
    package var isLoopback: Bool {
        guard host != "localhost" else { return true }
        let bytes = numbers
        return bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// Whether it is every address that the machine has.
    package var isAny: Bool {
        let bytes = numbers
        return !bytes.isEmpty && bytes.allSatisfy { $0 == 0 }
    }

    /// The bytes of the address, 4 or 16; none of a name.
    private var numbers: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, host, &bytes) == 1 { return Array(bytes.prefix(4)) }
        return inet_pton(AF_INET6, host, &bytes) == 1 ? bytes : []
    }

    /// As in a link.
    package var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// What a browser has in its address line that calls there.
    package var hosts: Set<String> {
        var names: Set<String> = [text]
        if isLoopback { names.formUnion(["localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)"]) }
        if isAny {
            var buffer = [CChar](repeating: 0, count: 256)
            if gethostname(&buffer, buffer.count - 1) == 0 {
                let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                names.formUnion(["\(name):\(port)", "localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)"])
                names.formUnion(Self.ownAddresses.map { "\($0):\(port)" })
            }
        }
        return names
    }

    private static var ownAddresses: [String] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [String] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            guard let address = entry.pointee.ifa_addr else { continue }
            let family = Int32(address.pointee.sa_family)
            guard family == AF_INET || family == AF_INET6 else { continue }
            var buffer = [CChar](repeating: 0, count: 64)
            let length = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            guard
                getnameinfo(address, socklen_t(length), &buffer, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            found.append(family == AF_INET6 ? "[\(text.split(separator: "%")[0])]" : text)
        }
        return found
    }

    /// Opens the sockets of the address: of a name one for each of its addresses.
    ///
    /// - Throws: Why there is none.
    func open() throws(ControlProblem) -> [Int32] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, "\(port)", &hints, &list)
        guard result == 0 else {
            throw ControlProblem(
                "can't listen at '\(text)': \(String(cString: gai_strerror(result)))",
                help: "write --listen 127.0.0.1:8088, or an address that this machine has")
        }
        defer { freeaddrinfo(list) }
        var descriptors: [Int32] = []
        var error: Int32 = 0
        var next = list
        while let entry = next {
            next = entry.pointee.ai_next
            let info = entry.pointee
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
                continue
            }
            descriptors.append(descriptor)
        }
        guard !descriptors.isEmpty else {
            throw ControlProblem(
                "can't listen at '\(text)': \(String(cString: strerror(error)))",
                help: "take another port, or an address that this machine has")
        }
        return descriptors
    }
}
