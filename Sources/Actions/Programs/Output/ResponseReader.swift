import JSON
package import PluginProtocol
package import System

/// Reads the response that a plugin printed, and enforces the protocol's limits.
///
/// A member that does not conform is truncated or dropped, with a warning. Only a response without a usable `outcome`
/// is rejected as a whole.
package struct ResponseReader {
    package enum Reading {
        /// The plugin printed nothing.
        case nothing
        case response(PluginResponse)
        /// The output is not a response; the reason is a clause that continues "the reply".
        case unreadable(String)
    }

    /// The maximum size of a response, in bytes.
    package static let limit = 1 << 20

    /// The directory that relative outputs are relative to.
    let directory: PathBytes
    /// Warnings about what was truncated or dropped, for the log.
    package private(set) var notices: [String] = []
    /// The results, one for each event of the request, in order; nil for an element that is null or not a result.
    private(set) var results: [PluginResponse?] = []

    package init(directory: PathBytes) { self.directory = directory }

    package mutating func read(_ bytes: [UInt8]) -> Reading {
        guard let first = bytes.firstIndex(where: { !$0.isASCIISpace }) else { return .nothing }
        if let location = bytes.firstInvalidUTF8 {
            let byte = String(bytes[location], radix: 16, uppercase: true)
            return .unreadable("is not UTF-8: 0x\(byte) at byte \(location)")
        }
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(reading: bytes)
        } catch {
            guard case .invalid = error else { return .unreadable(error.clause) }
            let start = String(decoding: bytes[first...].prefix(40), as: UTF8.self)
            return .unreadable("is not JSON: \(Self.quoted(start)) at byte \(first)")
        }
        guard let members = value.object else { return .unreadable("is not an object") }
        let reading = read(members)
        if case .response = reading { readResults(members) }
        return reading
    }

    private mutating func read(_ members: [String: JSONValue]) -> Reading {
        guard let word = members["outcome"]?.string else { return .unreadable("has no string 'outcome'") }
        guard let outcome = PluginResponse.Outcome(rawValue: word) else {
            return .unreadable("has the unknown outcome \(Self.quoted(String(word.prefix(40))))")
        }
        var response = PluginResponse(outcome)
        response.message = member("message", of: members, "a string", \.string).map(Self.line)
        response.code = code(members)
        response.retryAfter = retryAfter(members)
        response.outputs = outputs(members)
        response.values = values(members)
        return .response(response)
    }

    private mutating func readResults(_ members: [String: JSONValue]) {
        for (index, element) in (member("results", of: members, "a list", \.array) ?? []).enumerated() {
            var result: PluginResponse?
            switch element.object.map({ read($0) }) {
            case .response(let response): result = response
            case _ where element == .null: break
            case .unreadable(let reason): notices.append("element \(index) of 'results' is dropped: it \(reason)")
            case .nothing, nil: notices.append("element \(index) of 'results' is dropped: it is not an object")
            }
            results.append(result)
        }
    }

    // MARK: - Members

    /// Returns the value of a member; nil if it is missing or null, or is dropped because it has another type.
    private mutating func member<Value>(
        _ name: String, of members: [String: JSONValue], _ noun: String, _ read: (JSONValue) -> Value?
    ) -> Value? {
        guard let member = members[name], member != .null else { return nil }
        let value = read(member)
        if value == nil { notices.append("'\(name)' is dropped: it is not \(noun)") }
        return value
    }

    private mutating func code(_ members: [String: JSONValue]) -> String? {
        guard let code = member("code", of: members, "a string", \.string) else { return nil }
        let isFine = (1...64).contains(code.utf8.count) && code.utf8.allSatisfy(Self.codeBytes.contains)
        if !isFine { notices.append("'code' is dropped: it is not of the form [a-z0-9.-]{1,64}") }
        return isFine ? code : nil
    }

    private mutating func retryAfter(_ members: [String: JSONValue]) -> Double? {
        guard let seconds = member("retry_after", of: members, "a number of seconds", \.double) else { return nil }
        let retained = min(max(seconds, 1), 86_400)
        if retained != seconds {
            notices.append("'retry_after' is taken as \(Int(retained)) s: it must be from 1 s to 24 h")
        }
        return retained
    }

    private mutating func outputs(_ members: [String: JSONValue]) -> [PluginPath]? {
        member("outputs", of: members, "a list", \.array)?.compactMap { element in
            guard let bytes = element.bytes, !bytes.isEmpty, !bytes.contains(0) else {
                notices.append("an element of 'outputs' is dropped: it is neither a path nor {\"base64\": …}")
                return nil
            }
            return PluginPath(bytes: directory.resolving(bytes).normalized.bytes)
        }
    }

    private mutating func values(_ members: [String: JSONValue]) -> [String: JSONValue]? {
        guard let values = member("values", of: members, "an object", \.object) else { return nil }
        let size = values.lineBytes.count
        if size > 64 << 10 { notices.append("'values' is dropped: it has \(size) bytes, and 65536 are allowed") }
        return size > 64 << 10 ? nil : values
    }

    // MARK: - Text

    /// Returns the string as one line of at most 4 KiB, without control characters.
    package static func line(_ text: String) -> String {
        let cleaned = String(cleaning: text.split(whereSeparator: \.isNewline).joined(separator: " ").utf8)
        guard cleaned.utf8.count > 4096 else { return cleaned }
        var retained = ""
        var size = 0
        for character in cleaned {
            size += character.utf8.count
            if size > 4096 - 3 { break }
            retained.append(character)
        }
        return retained + "…"
    }

    private static func quoted(_ text: String) -> String { "\"\(line(text))\"" }

    private static let codeBytes = Set("abcdefghijklmnopqrstuvwxyz0123456789.-".utf8)
}

extension UInt8 {
    /// Whether the byte is whitespace in ASCII.
    package var isASCIISpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
