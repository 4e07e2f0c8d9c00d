package import System

/// A string with placeholders, parsed once when rules are loaded.
///
/// Expansion works on bytes and returns exactly one string for any file name: nothing in a name is read as a
/// placeholder, a separator or a shell word. `$${` is a literal `${`.
package struct Template: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        case literal([UInt8])
        case placeholder(Placeholder)

        package var literal: [UInt8]? { if case .literal(let bytes) = self { bytes } else { nil } }
    }

    package var parts: [Part]

    package init(parts: [Part]) { self.parts = parts }

    /// Creates a template without placeholders.
    package init(literal text: String) { parts = text.isEmpty ? [] : [.literal(Array(text.utf8))] }

    /// The string if it contains no placeholder; nil otherwise.
    package var literal: [UInt8]? {
        let literals = parts.compactMap(\.literal)
        return literals.count == parts.count ? Array(literals.joined()) : nil
    }

    package var placeholders: [Placeholder] {
        parts.compactMap { if case .placeholder(let placeholder) = $0 { placeholder } else { nil } }
    }

    /// Parses a string; nil if a placeholder is unknown or has no end.
    package init?(_ text: String) {
        let scan = PlaceholderScan(text)
        guard scan.unclosed == nil, scan.tokens.allSatisfy({ Placeholder(word: $0.word) != nil }) else { return nil }
        self.init(scan) { Placeholder(word: $0.word).map { .placeholder($0) } }
    }

    /// Creates a template from the parts of a string; `$${` becomes a literal `${`.
    ///
    /// - Parameters:
    ///   - scan: The string.
    ///   - home: The directory that replaces a leading `~`.
    ///   - part: Returns the value of a placeholder; nil leaves it out.
    package init(_ scan: PlaceholderScan, home: [UInt8]? = nil, _ part: (PlaceholderToken) -> Part?) {
        parts = []
        var literal = home ?? []
        var start = home == nil ? 0 : 1
        for token in scan.tokens {
            literal += scan.bytes[start..<token.range.lowerBound].replacing("$${".utf8, with: "${".utf8)
            start = token.range.upperBound
            switch part(token) {
            case .literal(let value): literal += value
            case .placeholder(let placeholder):
                if !literal.isEmpty { parts.append(.literal(literal)) }
                literal = []
                parts.append(.placeholder(placeholder))
            case nil: break
            }
        }
        literal += scan.bytes[start...].replacing("$${".utf8, with: "${".utf8)
        if !literal.isEmpty { parts.append(.literal(literal)) }
    }

    /// Returns the bytes with each placeholder replaced by its value.
    ///
    /// A capture of a regular expression never makes a component `.` or `..`: it would lead a path into another
    /// directory, which no file name may do. Such a component becomes `_` or `__`.
    ///
    /// - Parameters:
    ///   - values: The values of the placeholders.
    ///   - encoding: The encoding that is applied to each value first.
    /// - Returns: The bytes.
    package func expanded(with values: PlaceholderValues, encoding: ([UInt8]) -> [UInt8] = { $0 }) -> [UInt8] {
        var (bytes, inserted) = joined(with: values, encoding: encoding)
        for (placeholder, range) in inserted where placeholder.isCapture {
            let name = Self.name(around: range, in: bytes)
            guard (1...2).contains(name.count), bytes[name].allSatisfy({ $0 == .dot }) else { continue }
            for index in name { bytes[index] = UInt8(ascii: "_") }
        }
        return bytes
    }

    /// Returns the bytes with each placeholder replaced by its value, and the ranges of the values.
    private func joined(
        with values: PlaceholderValues, encoding: ([UInt8]) -> [UInt8] = { $0 }
    ) -> (bytes: [UInt8], inserted: [(Placeholder, Range<Int>)]) {
        var bytes: [UInt8] = []
        var inserted: [(Placeholder, Range<Int>)] = []
        for part in parts {
            switch part {
            case .literal(let literal): bytes += literal
            case .placeholder(let placeholder):
                let start = bytes.count
                bytes += encoding(values.value(of: placeholder))
                inserted.append((placeholder, start..<bytes.count))
            }
        }
        return (bytes, inserted)
    }

    /// Returns the range between the slashes around a part of a path.
    private static func name(around part: Range<Int>, in path: [UInt8]) -> Range<Int> {
        let start = path[..<part.lowerBound].lastIndex(of: .slash).map { $0 + 1 } ?? 0
        return start..<(path[part.upperBound...].firstIndex(of: .slash) ?? path.count)
    }
}

extension Template {
    /// Returns the literal directory before the first placeholder; nil if the template starts with a placeholder.
    package func literalDirectory(in directory: PathBytes) -> PathBytes? {
        guard let start = parts.first?.literal else { return nil }
        let head = start.lastIndex(of: .slash).map { start[...$0] } ?? []
        return directory.resolving(head).normalized
    }

    /// Returns the directory named before the first placeholder; nil if the string starts with a path that depends on
    /// the event.
    package func literalHead(in directory: PathBytes) -> PathBytes? {
        guard case .placeholder(let first)? = parts.first else { return literalDirectory(in: directory) ?? directory }
        switch first {
        case .path, .directory, .root, .from, .stepOutput: return nil
        default: return directory
        }
    }

    /// Returns the expanded path for a sandbox; nil if a file name would make it wider.
    ///
    /// A group of a regular expression may be empty or `..`, and an extension may be empty: each would grant access to
    /// the parent directory. So a component with a placeholder must be a name. Values that are whole paths, such as
    /// `${directory}`, are paths of the event.
    ///
    /// - Parameters:
    ///   - values: The values of the placeholders.
    ///   - directory: The directory that relative paths are relative to.
    /// - Returns: An absolute path.
    package func confinedPath(with values: PlaceholderValues, in directory: PathBytes) -> PathBytes? {
        let (path, inserted) = joined(with: values)
        // The end of the last value that is a path.
        var start = 0
        for (_, range) in inserted {
            if path[range].contains(0) { return nil }
            if path[range].contains(.slash) {
                start = range.upperBound
                continue
            }
            let name = path[Self.name(around: range, in: path).clamped(to: start..<path.count)]
            if name.isEmpty || name.elementsEqual([.dot]) || name.elementsEqual([.dot, .dot]) { return nil }
        }
        return path.isEmpty ? nil : directory.resolving(path).normalized
    }
}

/// A `${…}` in a string.
package struct PlaceholderToken: Sendable {
    /// The range of bytes from `$` to `}`.
    package var range: Range<Int>
    /// The text between the braces.
    package var word: String
    /// The name of the environment variable in `env:NAME`; nil for another word.
    package var variable: String? { word.hasPrefix("env:") ? String(word.dropFirst(4)) : nil }
}

/// The placeholders in a string, without their values.
package struct PlaceholderScan: Sendable {
    /// The string in UTF-8.
    let bytes: [UInt8]
    /// The tokens in order; `$${` is not a token.
    package private(set) var tokens: [PlaceholderToken] = []
    /// The offset of a `${` without `}`, which ends the scan.
    package private(set) var unclosed: Int?

    package init(_ text: String) {
        bytes = Array(text.utf8)
        var rest = bytes[...]
        while let start = rest.firstIndex(of: UInt8(ascii: "$")) {
            rest = rest[start...]
            if rest.starts(with: "$${".utf8) {
                rest = rest.dropFirst(3)
            } else if !rest.starts(with: "${".utf8) {
                rest = rest.dropFirst()
            } else if let end = rest.firstIndex(of: UInt8(ascii: "}")) {
                let word = String(decoding: bytes[(start + 2)..<end], as: UTF8.self)
                tokens.append(PlaceholderToken(range: start..<(end + 1), word: word))
                rest = rest[(end + 1)...]
            } else {
                unclosed = start
                return
            }
        }
    }
}
