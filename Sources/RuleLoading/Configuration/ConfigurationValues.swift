package import Rules

/// What values of the configuration have to be, wherever they are written.
package enum ConfigurationValues {
    /// Checks `HOST:PORT`.
    ///
    /// - Returns: The same.
    /// - Throws: What is wrong with it.
    package static func address(_ text: String) throws(HandlerProblem) -> String {
        let form = "write an address and a port, such as '127.0.0.1:8080' or '[::1]:8080'"
        guard let colon = text.lastIndex(of: ":") else {
            let isPort = UInt16(text) != nil
            throw HandlerProblem(
                message: "\(quoted(text)) is no address with a port", help: isPort ? "write '127.0.0.1:\(text)'" : form)
        }
        let host = text[..<colon]
        let port = text[text.index(after: colon)...]
        guard UInt16(port) != nil, port.allSatisfy(\.isNumber) else {
            throw HandlerProblem(message: "\(quoted(port)) in \(quoted(text)) is no port from 0 to 65535", help: form)
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]") && host.count > 2
        guard isBracketed || (!host.isEmpty && !host.contains { ":[]/ ".contains($0) }) else {
            throw HandlerProblem(
                message: host.isEmpty ? "there is no address in \(quoted(text))" : "\(quoted(host)) is no address",
                help: host.contains(":") ? "write '[\(host.filter { $0 != "[" && $0 != "]" })]:\(port)'" : form)
        }
        return text
    }

    /// Reads how long something is kept.
    ///
    /// - Throws: What is wrong with it.
    package static func period(_ text: String) throws(HandlerProblem) -> Duration {
        do throws(DurationProblem) {
            return try DurationText.parse(text, days: Configuration.longestRetentionDays)
        } catch {
            throw HandlerProblem(message: error.message, help: error.help)
        }
    }

    /// Reads how many bytes are kept.
    ///
    /// - Throws: What is wrong with it.
    package static func retentionSize(_ text: String) throws(HandlerProblem) -> Int {
        do throws(SizeProblem) {
            let size = try SizeText.parse(text)
            if size >= Configuration.leastRetentionSize { return size }
            throw SizeProblem("\(quoted(text)) is less than 1 MiB", help: "write '1 MiB' or more")
        } catch {
            throw HandlerProblem(message: error.message, help: error.help)
        }
    }
}
