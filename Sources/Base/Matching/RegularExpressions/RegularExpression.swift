import CLibPCRE2

/// A PCRE2 regular expression over the bytes of a name, with bounded searches.
///
/// The pattern is *searched* for: `\.jpg` is found inside `a.jpg.txt`, and `^` and `$` anchor it. Four things differ
/// from PCRE2's defaults, because file names are not lines of text:
///
/// - `.` also matches a newline, and `$` matches only at the very end, not before a final newline. A name that matches
///   `\.jpg$` ends with `.jpg`.
/// - A name that is UTF-8 consists of characters. In a name that is not, each byte is one character, as in globs:
///   `^(.+)\.jpg$` matches any name with that extension. PCRE2 has no such mode, since its `.` never matches a byte
///   that is not UTF-8. So each pattern is compiled twice, for both kinds of names. A pattern that is valid only for
///   UTF-8 (`\x{1F600}`) is matched against the UTF-8 parts of a name.
/// - A search stops after a number of steps, with ``Search/tooComplex``. A pattern such as `(a+)+$` would take years.
/// - `\C` is an error: it would split a character.
///
/// Classes such as `\d` and `\w` are ASCII, as everywhere in PCRE2; `(*UCP)` at the start of the pattern makes them
/// Unicode.
package final class RegularExpression: Sendable, Hashable {
    /// The result of a search.
    package enum Search: Sendable, Hashable {
        /// The bytes that each group matched, the whole match first; nil for a group that did not take part.
        case found(groups: [[UInt8]?])
        case notFound
        /// The search exceeded the limit of steps or memory.
        case tooComplex
    }

    /// The pattern as it was written.
    package let pattern: String
    /// The number of numbered groups.
    package var groupCount: Int { text.groupCount }
    /// The names of groups, with the numbers that each refers to.
    package var names: [String: [Int]] { text.names }
    /// The maximum number of steps of a search per start position in the name.
    ///
    /// This is enough for two adjacent `.*` on the longest name, which has 255 bytes. PCRE2 counts separately for each
    /// position where a match may start, so the worst pattern that could be constructed took 0.3 s on a machine of
    /// 2026. A search that exceeds the limit fails early, after 1 to 4 ms. A string that is longer than a name gets
    /// fewer steps per position, so that the whole search does not take longer.
    package static let stepLimit = 50_000
    /// The length of the longest name, in bytes.
    fileprivate static let nameLength = 255
    /// The memory limit of a search, in KiB.
    package static let memoryLimit = 4_096
    /// The maximum length of a pattern in bytes.
    package static let maximumLength = 4_096

    private let text: Compiled
    /// The pattern for names that are not UTF-8; nil if it is valid only for UTF-8.
    private let bytes: Compiled?

    /// Creates a regular expression from a pattern.
    ///
    /// - Throws: The first error in the pattern.
    package init(_ pattern: String) throws(RegularExpressionError) {
        self.pattern = pattern
        guard pattern.utf8.count <= Self.maximumLength else {
            throw RegularExpressionError(offset: 0, message: "it is longer than \(Self.maximumLength) bytes")
        }
        text = try Compiled(pattern, options: PCRE2_UTF | PCRE2_MATCH_INVALID_UTF)
        bytes = try? Compiled(pattern, options: 0)
    }

    /// Searches for the pattern in a name.
    ///
    /// The limits bound the time, also for a string that is longer than a name. Callable from any thread.
    package func search(_ subject: some Sequence<UInt8>) -> Search {
        let subject = Array(subject)
        if let bytes, String(validating: subject, as: UTF8.self) == nil { return bytes.search(subject) }
        return text.search(subject)
    }

    package static func == (left: RegularExpression, right: RegularExpression) -> Bool { left.pattern == right.pattern }

    package func hash(into hasher: inout Hasher) { hasher.combine(pattern) }
}

/// An error in a pattern.
package struct RegularExpressionError: Error, Sendable, Hashable {
    /// The offset in the pattern in bytes, behind the error.
    package var offset: Int
    /// The message, as a clause.
    package var message: String
}

/// A compiled pattern of PCRE2.
///
/// The code and the limits are only read after initialization, so threads may share them.
private final class Compiled: @unchecked Sendable {
    private let code: OpaquePointer
    private let limits: OpaquePointer
    let groupCount: Int
    let names: [String: [Int]]

    init(_ pattern: String, options: UInt32) throws(RegularExpressionError) {
        let options = options | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C
        var error: Int32 = 0
        var offset = 0
        let bytes = Array(pattern.utf8)
        let code = Self.withAddress(of: bytes) { pcre2_compile_8($0, bytes.count, options, &error, &offset, nil) }
        guard let code else {
            throw RegularExpressionError(offset: min(offset, bytes.count), message: Self.message(for: error))
        }
        guard let limits = pcre2_match_context_create_8(nil) else {
            preconditionFailure("there is memory for a match context")
        }
        Self.set(limits, steps: RegularExpression.stepLimit)
        (self.code, self.limits) = (code, limits)
        groupCount = Int(Self.number(PCRE2_INFO_CAPTURECOUNT, of: code))
        names = Self.names(of: code)
    }

    deinit {
        pcre2_match_context_free_8(limits)
        pcre2_code_free_8(code)
    }

    private static func set(_ limits: OpaquePointer, steps: Int) {
        pcre2_set_match_limit_8(limits, UInt32(steps))
        pcre2_set_depth_limit_8(limits, UInt32(steps))
        pcre2_set_heap_limit_8(limits, UInt32(RegularExpression.memoryLimit))
    }

    func search(_ subject: [UInt8]) -> RegularExpression.Search {
        guard subject.count > RegularExpression.nameLength else { return search(subject, limits) }
        guard let own = pcre2_match_context_create_8(nil) else { return .tooComplex }
        defer { pcre2_match_context_free_8(own) }
        Self.set(own, steps: max(RegularExpression.stepLimit * RegularExpression.nameLength / subject.count, 100))
        return search(subject, own)
    }

    private func search(_ subject: [UInt8], _ limits: OpaquePointer) -> RegularExpression.Search {
        guard let data = pcre2_match_data_create_from_pattern_8(code, nil) else { return .tooComplex }
        defer { pcre2_match_data_free_8(data) }
        let result = Self.withAddress(of: subject) { pcre2_match_8(code, $0, subject.count, 0, 0, data, limits) }
        guard result >= 0 else { return result == PCRE2_ERROR_NOMATCH ? .notFound : .tooComplex }
        guard let ends = pcre2_get_ovector_pointer_8(data) else { return .notFound }
        let groups = (0...groupCount).map { group -> [UInt8]? in
            let (start, end) = (ends[2 * group], ends[2 * group + 1])
            // A group that did not take part has -1. `\K` may set the start behind the end.
            guard group < result, start >= 0, end <= subject.count else { return nil }
            return start <= end ? Array(subject[start..<end]) : []
        }
        return .found(groups: groups)
    }

    private static func withAddress<Result>(of bytes: [UInt8], _ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        bytes.withUnsafeBufferPointer { bytes in
            // An empty array may have no address, and PCRE2 requires one.
            var nothing: UInt8 = 0
            return withUnsafePointer(to: &nothing) { body(bytes.baseAddress ?? $0) }
        }
    }

    private static func message(for error: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: 256)
        let length = pcre2_get_error_message_8(error, &buffer, buffer.count)
        return length < 0 ? "error \(error)" : String(decoding: buffer[..<Int(length)], as: UTF8.self)
    }

    private static func number(_ what: Int32, of code: OpaquePointer) -> UInt32 {
        var number: UInt32 = 0
        pcre2_pattern_info_8(code, UInt32(what), &number)
        return number
    }

    /// Reads the table of names: each entry is a number in two bytes, and the name with a NUL byte.
    private static func names(of code: OpaquePointer) -> [String: [Int]] {
        let count = Int(number(PCRE2_INFO_NAMECOUNT, of: code))
        let size = Int(number(PCRE2_INFO_NAMEENTRYSIZE, of: code))
        var table: UnsafePointer<UInt8>?
        pcre2_pattern_info_8(code, UInt32(PCRE2_INFO_NAMETABLE), &table)
        guard let table else { return [:] }
        var names: [String: [Int]] = [:]
        for entry in 0..<count {
            let start = table + entry * size
            let bytes = UnsafeBufferPointer(start: start + 2, count: size - 2).prefix { $0 != 0 }
            names[String(decoding: bytes, as: UTF8.self), default: []].append(Int(start[0]) << 8 | Int(start[1]))
        }
        return names
    }
}
