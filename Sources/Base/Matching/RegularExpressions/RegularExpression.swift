import CLibPCRE2

/// A regular expression over the bytes of a name, by PCRE2, whose searches are bounded.
///
/// It is *searched* for: `\.jpg` is found inside of `a.jpg.txt`, and `^` and `$`
/// are the user's. Four things differ from PCRE2's defaults, because names of
/// files are no lines of text:
///
/// - `.` takes a newline too, and `$` is the very end, not in front of a last
///   newline: what ends with `\.jpg$` ends so.
/// - A name that is UTF-8 consists of characters. In one that is not, each byte
///   is a character of its own, as in globs: `^(.+)\.jpg$` finds any name that
///   ends so. PCRE2 alone has no such thing, since its `.` never takes a byte that is not
///   UTF-8; so a pattern is compiled twice, for both kinds of names. One that
///   has a meaning for text alone (`\x{1F600}`) is matched against the parts of
///   a name that are UTF-8.
/// - A search ends after a number of steps, and is then ``Search/tooComplex``.
///   A pattern such as `(a+)+$` would take years.
/// - `\C` is refused: it would cut a character in two.
///
/// Classes such as `\d` and `\w` are ASCII, as everywhere in PCRE2; `(*UCP)` at
/// the beginning makes them Unicode's.
package final class RegularExpression: Sendable, Hashable {
    /// What a search comes to.
    package enum Search: Sendable, Hashable {
        case found(Match)
        case notFound
        /// It took more steps or memory than it may.
        case tooComplex
    }

    /// Where a pattern was found.
    package struct Match: Sendable, Hashable {
        /// What each group took, the whole first; nil for a group that took no part.
        package var groups: [[UInt8]?]
    }

    /// As it was written.
    package let pattern: String
    /// How many groups have a number.
    package let groupCount: Int
    /// The names of groups, with the numbers that each stands for.
    package let names: [String: [Int]]
    /// The steps after which a search is given up at one place of the name.
    ///
    /// Enough for two `.*` side by side on the longest name, which has 255 bytes.
    /// PCRE2 counts anew for each place where a match may begin, so the worst that
    /// could be built took 0.3 s on a machine of 2026; what goes beyond the limit
    /// is given up at once, in 1 to 4 ms. A text that is longer than a name has
    /// fewer steps at each place, so that it takes no longer as a whole.
    package static let stepLimit = 50_000
    /// The length of the longest name, in bytes.
    fileprivate static let nameLength = 255
    /// The memory for a search, in KiB.
    package static let memoryLimit = 4_096
    /// Bytes of the longest pattern that is read.
    package static let maximumLength = 4_096

    private let text: Compiled
    /// For names that are not UTF-8; nil when the pattern means something in text alone.
    private let bytes: Compiled?

    /// Reads a pattern.
    ///
    /// - Throws: The first thing in it that has no meaning.
    package init(_ pattern: String) throws(RegularExpressionError) {
        self.pattern = pattern
        guard pattern.utf8.count <= Self.maximumLength else {
            throw RegularExpressionError(
                offset: 0, message: "it is longer than \(Self.maximumLength) bytes")
        }
        text = try Compiled(pattern, options: PCRE2_UTF | PCRE2_MATCH_INVALID_UTF)
        bytes = try? Compiled(pattern, options: 0)
        groupCount = text.groupCount
        names = text.names
    }

    /// Looks for the pattern in a name.
    ///
    /// It takes no longer than the limits let it; a text may be longer than a name. Callable from any thread.
    package func search(_ subject: some Sequence<UInt8>) -> Search {
        let subject = Array(subject)
        if let bytes, String(validating: subject, as: UTF8.self) == nil { return bytes.search(subject) }
        return text.search(subject)
    }

    package static func == (left: RegularExpression, right: RegularExpression) -> Bool {
        left.pattern == right.pattern
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(pattern) }
}

/// What is wrong with a pattern.
package struct RegularExpressionError: Error, Sendable, Hashable {
    /// Where in the pattern, in bytes from its start: behind what is wrong.
    package var offset: Int
    /// What is wrong, as half a sentence.
    package var message: String
}

/// A pattern as PCRE2 has it.
///
/// The code and the limits are only read after they are made, so threads may share them.
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
        let compiled = bytes.withUnsafeBufferPointer { bytes in
            // An empty array may have no address, and PCRE2 wants one.
            var nothing: UInt8 = 0
            return withUnsafePointer(to: &nothing) {
                pcre2_compile_8(bytes.baseAddress ?? $0, bytes.count, options, &error, &offset, nil)
            }
        }
        guard let code = compiled else {
            throw RegularExpressionError(offset: min(offset, bytes.count), message: Self.message(for: error))
        }
        guard let limits = pcre2_match_context_create_8(nil) else {
            preconditionFailure("there is memory for a match context")
        }
        Self.set(limits, steps: RegularExpression.stepLimit)
        self.code = code
        self.limits = limits
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
        let result = subject.withUnsafeBufferPointer { bytes in
            var nothing: UInt8 = 0
            return withUnsafePointer(to: &nothing) {
                pcre2_match_8(code, bytes.baseAddress ?? $0, bytes.count, 0, 0, data, limits)
            }
        }
        guard result >= 0 else { return result == PCRE2_ERROR_NOMATCH ? .notFound : .tooComplex }
        guard let ends = pcre2_get_ovector_pointer_8(data) else { return .notFound }
        let groups = (0...groupCount).map { group -> [UInt8]? in
            let (start, end) = (ends[2 * group], ends[2 * group + 1])
            // A group that took no part has -1; `\K` may put the start behind the end.
            guard group < result, start >= 0, end <= subject.count else { return nil }
            return start <= end ? Array(subject[start..<end]) : []
        }
        return .found(RegularExpression.Match(groups: groups))
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

    /// The table of names: each entry is a number in two bytes, and the name with a NUL.
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
