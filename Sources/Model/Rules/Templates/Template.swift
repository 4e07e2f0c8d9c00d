import System

/// A string with placeholders, parsed once when rules are loaded.
///
/// Expansion works on bytes and returns exactly one string for any file name: nothing in a name is read as a
/// placeholder, a separator or a shell word. `$${` is a literal `${`.
package struct Template: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        case literal([UInt8])
        case placeholder(Placeholder)
    }

    package var parts: [Part]

    package init(parts: [Part]) { self.parts = parts }

    /// Creates a template without placeholders.
    package init(literal text: String) { parts = text.isEmpty ? [] : [.literal(Array(text.utf8))] }

    /// The string if it contains no placeholder; nil otherwise.
    package var literal: [UInt8]? {
        var bytes: [UInt8] = []
        for part in parts {
            guard case .literal(let literal) = part else { return nil }
            bytes += literal
        }
        return bytes
    }

    package var placeholders: [Placeholder] {
        parts.compactMap { part in
            guard case .placeholder(let placeholder) = part else { return nil }
            return placeholder
        }
    }

    /// Parses a string.
    ///
    /// - Parameters:
    ///   - text: The string in the rules file, after YAML's own escapes.
    ///   - environment: Returns the value of `${env:NAME}`, which is substituted now; nil for a variable that is not
    ///     set.
    /// - Throws: The first error, with its offset in the string.
    package init(_ text: String, environment: (String) -> String?) throws(TemplateError) {
        var rest = Array(text.utf8)[...]
        var parts: [Part] = []
        var literal: [UInt8] = []
        while let dollar = rest.firstIndex(of: UInt8(ascii: "$")) {
            literal += rest[..<dollar]
            rest = rest[dollar...]
            if rest.starts(with: "$${".utf8) {
                literal += "${".utf8
                rest = rest.dropFirst(3)
                continue
            }
            guard rest.starts(with: "${".utf8) else {
                literal += rest.prefix(1)
                rest = rest.dropFirst()
                continue
            }
            guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { throw .unclosed(offset: dollar) }
            let word = String(decoding: rest[(dollar + 2)..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            if word.hasPrefix("env:") {
                let name = String(word.dropFirst(4))
                guard let value = environment(name) else { throw .unsetVariable(name, offset: dollar) }
                literal += value.utf8
                continue
            }
            guard let placeholder = Placeholder(word: word) else { throw .unknownPlaceholder(word, offset: dollar) }
            if !literal.isEmpty { parts.append(.literal(literal)) }
            literal = []
            parts.append(.placeholder(placeholder))
        }
        literal += rest
        if !literal.isEmpty { parts.append(.literal(literal)) }
        self.parts = parts
    }

    /// Returns the bytes with each placeholder replaced by its value.
    ///
    /// A capture of a regular expression never makes a component `.` or `..`: it would lead a path into another
    /// directory, which no file name may do. Such a component becomes `_` or `__`.
    ///
    /// - Parameters:
    ///   - facts: The values of the placeholders.
    ///   - encoding: The encoding that is applied to each value first.
    /// - Returns: The bytes.
    package func expanded(with facts: PlaceholderValues, encoding: ([UInt8]) -> [UInt8] = { $0 }) -> [UInt8] {
        var bytes: [UInt8] = []
        var captures: [Range<Int>] = []
        for part in parts {
            switch part {
            case .literal(let literal): bytes += literal
            case .placeholder(let placeholder):
                let start = bytes.count
                bytes += encoding(facts.value(of: placeholder))
                if placeholder.isCapture { captures.append(start..<bytes.count) }
            }
        }
        for capture in captures {
            let start = bytes[..<capture.lowerBound].lastIndex(of: .slash).map { $0 + 1 } ?? 0
            let end = bytes[capture.upperBound...].firstIndex(of: .slash) ?? bytes.count
            guard (1...2).contains(end - start), bytes[start..<end].allSatisfy({ $0 == .dot }) else { continue }
            for index in start..<end { bytes[index] = UInt8(ascii: "_") }
        }
        return bytes
    }
}

/// An error in a template; offsets are in bytes of the string.
package enum TemplateError: Error, Sendable, Hashable {
    /// `${` without `}`.
    case unclosed(offset: Int)
    case unknownPlaceholder(String, offset: Int)
    case unsetVariable(String, offset: Int)
}
