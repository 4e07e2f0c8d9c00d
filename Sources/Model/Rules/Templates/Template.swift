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

    /// Parses a string.
    ///
    /// - Parameters:
    ///   - text: The string in the rules file, after YAML's own escapes.
    ///   - environment: Returns the value of `${env:NAME}`, which is substituted now; nil for a variable that is not
    ///     set.
    /// - Throws: The first error, with its offset in the string.
    package init(_ text: String, environment: (String) -> String?) throws(TemplateError) {
        let scan = PlaceholderScan(text)
        try self.init(scan) { token throws(TemplateError) in
            if let placeholder = Placeholder(word: token.word) { return .placeholder(placeholder) }
            guard let name = token.variable else {
                throw .unknownPlaceholder(token.word, offset: token.range.lowerBound)
            }
            guard let value = environment(name) else { throw .unsetVariable(name, offset: token.range.lowerBound) }
            return .literal(Array(value.utf8))
        }
        if let unclosed = scan.unclosed { throw .unclosed(offset: unclosed) }
    }

    /// Creates a template from the parts of a string; `$${` becomes a literal `${`.
    ///
    /// - Parameters:
    ///   - scan: The string.
    ///   - home: The directory that replaces a leading `~`.
    ///   - part: Returns the value of a placeholder; nil leaves it out.
    /// - Throws: The error of the closure.
    package init<Failure: Error>(
        _ scan: PlaceholderScan, home: [UInt8]? = nil, _ part: (PlaceholderToken) throws(Failure) -> Part?
    ) throws(Failure) {
        parts = []
        var literal = home ?? []
        var start = home == nil ? 0 : 1
        for token in scan.tokens {
            literal += scan.bytes[start..<token.range.lowerBound].replacing("$${".utf8, with: "${".utf8)
            start = token.range.upperBound
            switch try part(token) {
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
        var bytes: [UInt8] = []
        var captures: [Range<Int>] = []
        for part in parts {
            switch part {
            case .literal(let literal): bytes += literal
            case .placeholder(let placeholder):
                let start = bytes.count
                bytes += encoding(values.value(of: placeholder))
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
        var path: [UInt8] = []
        var name: [UInt8] = []
        var isGiven = false
        func isName(_ name: [UInt8]) -> Bool { !name.isEmpty && name != [.dot] && name != [.dot, .dot] }
        for part in parts {
            let bytes: [UInt8]
            switch part {
            case .literal(let literal): bytes = literal
            case .placeholder(let placeholder):
                bytes = values.value(of: placeholder)
                guard !bytes.contains(0) else { return nil }
                if bytes.contains(.slash) {
                    path += name + bytes
                    name = []
                    isGiven = false
                    continue
                }
                isGiven = true
            }
            for byte in bytes {
                name.append(byte)
                guard byte == .slash else { continue }
                if isGiven, !isName(name.dropLast()) { return nil }
                path += name
                name = []
                isGiven = false
            }
        }
        if isGiven, !isName(name) { return nil }
        path += name
        guard !path.isEmpty else { return nil }
        return directory.resolving(path).normalized
    }
}

/// An error in a template; offsets are in bytes of the string.
package enum TemplateError: Error, Sendable, Hashable {
    /// `${` without `}`.
    case unclosed(offset: Int)
    case unknownPlaceholder(String, offset: Int)
    case unsetVariable(String, offset: Int)
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
