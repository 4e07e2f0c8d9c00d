/// A request for the routes: parsed, but not yet validated.
package struct APIRequest: Sendable {
    /// The kind of connection.
    package enum Transport: Sendable, Hashable {
        /// The Unix socket; the peer runs as the same user or root.
        case local
        /// TCP; the peer may be anyone.
        case network
    }

    package var transport: Transport
    package var method: String
    /// The components of the path, without percent-encoding; they may contain any bytes, or none.
    package var path: [[UInt8]]
    /// The parameters of the query; the last value of a repeated name.
    package var query: [String: [UInt8]] = [:]
    package var host: String?
    package var origin: String?
    package var authorization: String?
    package var cookie: String?
    package var contentType: String?
    package var lastEventID: String?
    package var body: [UInt8] = []

    /// Parses a target; returns nil if it is invalid.
    ///
    /// - Parameters:
    ///   - transport: The kind of connection.
    ///   - method: The method.
    ///   - target: Path and query, as sent.
    package init?(transport: Transport, method: String, target: [UInt8]) {
        guard target.first == UInt8(ascii: "/"), target.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        let parts = target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        var path: [[UInt8]] = []
        let names = parts[0].dropFirst()
        for part in names.isEmpty ? [] : names.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let bytes = Self.unescaped(part, isForm: false) else { return nil }
            path.append(bytes)
        }
        (self.transport, self.method, self.path) = (transport, method, path)
        guard parts.count > 1 else { return }
        for pair in parts[1].split(separator: UInt8(ascii: "&")) {
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.unescaped(sides[0], isForm: true),
                let value = sides.count > 1 ? Self.unescaped(sides[1], isForm: true) : []
            else { return nil }
            query[String(decoding: name, as: UTF8.self)] = value
        }
    }

    /// Returns the value of a query parameter as a string; nil if it is missing.
    package func text(_ name: String) -> String? { query[name].map { String(decoding: $0, as: UTF8.self) } }

    /// Returns the value of a query parameter as a number; the fallback if it is missing.
    ///
    /// - Throws: An error for anything else.
    func number(_ name: String, in range: ClosedRange<Int>, otherwise fallback: Int) throws(APIError) -> Int {
        guard let text = text(name) else { return fallback }
        if let number = Int(text), range.contains(number) { return number }
        throw APIError(
            400, "'\(name)=\(text)' is not a number from \(range.lowerBound) to \(range.upperBound)",
            help: "omit it for \(fallback == 0 ? "none" : "\(fallback)")")
    }

    /// Decodes percent-encoded text; returns nil for an invalid escape, or for a NUL, which no path contains.
    private static func unescaped(_ text: some Collection<UInt8>, isForm: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(Self.digit), let low = rest.next().flatMap(Self.digit),
                    high << 4 | low != 0
                else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where isForm: bytes.append(UInt8(ascii: " "))
            case 0: return nil
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
