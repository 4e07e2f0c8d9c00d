package import Rules

/// The formats of configuration values, independent of their origin.
package enum ConfigurationValues {
    /// Checks `HOST:PORT`, or `:PORT` for this machine alone.
    ///
    /// - Returns: The address unchanged.
    /// - Throws: The reason why the address is invalid.
    package static func address(_ text: String) throws(Problem) -> String {
        let form = "write an address and a port, such as '127.0.0.1:8080' or '[::1]:8080'"
        guard let colon = text.lastIndex(of: ":") else {
            let isPort = UInt16(text) != nil
            throw Problem(
                "\(quoted(text)) is not an address with a port", help: isPort ? "write '127.0.0.1:\(text)'" : form)
        }
        let host = text[..<colon]
        let port = text[text.index(after: colon)...]
        _ = try number(ofPort: port, in: text, form: form)
        guard host != "*" else {
            throw Problem(
                "invalid address '*'",
                help: "write '0.0.0.0:\(port)', or '[::]:\(port)', for all addresses of the machine")
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]") && host.contains(":")
        guard isBracketed || !host.contains(where: { ":[]/ ".contains($0) }) else {
            throw Problem(
                "invalid address \(quoted(host))",
                help: host.contains(":") ? "write '[\(host.filter { $0 != "[" && $0 != "]" })]:\(port)'" : form)
        }
        return text
    }

    /// Checks the URL of a proxy.
    ///
    /// - Returns: The URL in the form of a browser's Origin header: in lower case, without the default port.
    /// - Throws: The reason why the URL is invalid.
    package static func externalURL(_ text: String) throws(Problem) -> String {
        let url = text.lowercased()
        let form = "write it as a browser shows it, such as 'https://alight.example.org'"
        guard let scheme = ["https://", "http://"].first(where: { url.hasPrefix($0) }) else {
            let isName = !url.isEmpty && !url.contains("/") && !url.contains(" ")
            throw Problem(
                "invalid URL \(quoted(text)), which does not start with 'https://' or 'http://'",
                help: isName ? "write 'https://\(url)'" : form)
        }
        var authority = url.dropFirst(scheme.count)
        if authority.hasSuffix("/") { authority.removeLast() }
        guard !authority.contains(where: { "/?#".contains($0) }) else {
            throw Problem(
                "\(quoted(text)) has a path, but the dashboard can only be served at '/'",
                help: "use a separate host name")
        }
        var host = authority
        if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") {
            host = authority[..<colon]
            let port = authority[authority.index(after: colon)...]
            // Browsers omit the default port.
            if try number(ofPort: port, in: text, form: form) == (scheme == "https://" ? 443 : 80) { authority = host }
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]") && host.count > 2
        let letters = isBracketed ? "0123456789abcdef:.[]" : "abcdefghijklmnopqrstuvwxyz0123456789-._"
        guard !host.isEmpty, host.allSatisfy({ letters.contains($0) }) else {
            throw Problem("invalid host name \(quoted(host)) in \(quoted(text))", help: form)
        }
        return scheme + authority
    }

    private static func number(ofPort port: Substring, in text: String, form: String) throws(Problem) -> UInt16 {
        if let number = UInt16(port), number > 0, port.allSatisfy(\.isNumber) { return number }
        throw Problem("invalid port \(quoted(port)) in \(quoted(text)), not from 1 to 65535", help: form)
    }

    /// Parses a retention period.
    ///
    /// - Throws: The reason why the period is invalid.
    static func period(_ text: String) throws(Problem) -> Duration {
        try DurationText.parse(text, days: Configuration.longestRetentionDays)
    }

    /// Parses a retention size in bytes.
    ///
    /// - Throws: The reason why the size is invalid.
    static func retentionSize(_ text: String) throws(Problem) -> Int {
        let size = try SizeText.parse(text)
        if size >= Configuration.leastRetentionSize { return size }
        throw Problem("\(quoted(text)) is less than 1 MiB", help: "write '1 MiB' or more")
    }
}
