/// An error in a glob: its location, its message, and the remedy.
package struct GlobError: Error, Sendable, Hashable {
    /// The offset in the pattern in bytes.
    package var offset: Int
    /// The message, with the pattern as it was written.
    package var message: String
    /// The remedy.
    package var help: String
}

/// The messages of all errors, composed in one place.
struct GlobErrors {
    let pattern: [UInt8]

    /// The pattern for display: bytes that are not UTF-8 become U+FFFD, and a long pattern is cut.
    private var glob: String { "glob '\(quoted(pattern[...]))'" }

    private func quoted(_ bytes: ArraySlice<UInt8>) -> String {
        var text = ""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars.prefix(Self.shownScalars) {
            text += scalar.value < 0x20 ? scalar.escaped(asASCII: true) : String(Character(scalar))
        }
        return bytes.count > Self.shownScalars && text.unicodeScalars.count >= Self.shownScalars ? text + "…" : text
    }

    /// The length of a pattern that is still readable in one line.
    private static let shownScalars = 120

    private func error(_ offset: Int, _ clause: String, help: String) -> GlobError {
        GlobError(offset: offset, message: "\(glob) \(clause)", help: help)
    }

    func isEmpty() -> GlobError {
        GlobError(offset: 0, message: "the glob is empty", help: "write a path, such as 'in/*.jpg'")
    }

    func hasEmptyAlternative() -> GlobError {
        error(0, "has an alternative that is empty", help: "write at least one name in every alternative")
    }

    func namesNothing(at offset: Int) -> GlobError {
        error(offset, "matches no file", help: "write '*' for the files of the directory, or '**' for all below it")
    }

    func holdsNUL(at offset: Int) -> GlobError {
        error(offset, "contains a NUL byte, which no path can", help: "remove the byte")
    }

    func endsWithBackslash(at offset: Int) -> GlobError {
        error(offset, #"ends with '\', which escapes nothing"#, help: #"write '\\' to match a backslash"#)
    }

    func hasNoClosingBrace(at offset: Int) -> GlobError {
        error(offset, "has no closing '}'", help: "add '}', or write '[{]' to match a brace")
    }

    func hasNoClosingBracket(at offset: Int) -> GlobError {
        error(offset, "has no closing ']'", help: "add ']', or write '[[]' to match a bracket")
    }

    func expandsRange(_ range: Range<Int>) -> GlobError {
        error(
            range.lowerBound, "contains the range '\(quoted(pattern[range]))', which globs do not expand",
            help: "write every alternative, as in '{1,2,3}', or a class, as in '[1-3]'")
    }

    func nestsTooDeep(at offset: Int) -> GlobError {
        error(offset, "nests braces more than \(GlobParser.maximumNesting) deep", help: "write several globs")
    }

    func hasTooManyAlternatives(at offset: Int) -> GlobError {
        error(
            offset, "expands to more than \(GlobExpansion.maximumAlternatives) alternatives",
            help: "use '*' or write several globs")
    }

    func isTooLong(at offset: Int) -> GlobError {
        error(
            offset, "is longer than \(GlobExpansion.maximumLength) bytes when its braces are expanded",
            help: "use '*' or write several globs")
    }

    func mixesAnchors() -> GlobError {
        error(0, "is absolute in one alternative and relative in another", help: "write two globs")
    }

    func endsWithSlash(at offset: Int) -> GlobError {
        let subject = pattern.last == .slash ? glob : "an alternative of \(glob)"
        return GlobError(
            offset: offset, message: "\(subject) ends with '/'",
            help: "remove it; directories are chosen with types: [directory]")
    }

    func holdsParent(at offset: Int) -> GlobError {
        error(offset, "contains '..'", help: "write the directory itself; a glob only compares names")
    }

    func holdsSlashInClass(at offset: Int) -> GlobError {
        error(
            offset, "contains '/' between '[' and ']', which match within one name",
            help: "write '{a/b,c}' for alternatives that contain '/'")
    }

    func hasDisorderedRange(_ range: Range<Int>, low: Range<Int>, high: Range<Int>) -> GlobError {
        let turned = "\(quoted(pattern[high]))-\(quoted(pattern[low]))"
        return error(
            range.lowerBound, "contains the range '\(quoted(pattern[range]))', which is out of order",
            help: "write '\(turned)'")
    }

    func endsRangeWithClass(_ range: Range<Int>) -> GlobError {
        error(
            range.lowerBound, "contains a range that ends with '\(quoted(pattern[range]))'",
            help: #"end the range with one character, or write '\-' to match a hyphen"#)
    }

    func holdsUnknownClass(_ range: Range<Int>) -> GlobError {
        error(
            range.lowerBound, "contains the unknown class '\(quoted(pattern[range]))'",
            help: "the classes are \(GlobClass.names.map(\.name).joined(separator: ", "))")
    }

    func holdsBareClass(_ range: Range<Int>) -> GlobError {
        let name = quoted(pattern[range])
        return error(range.lowerBound, "contains '\(name)' outside of '[' and ']'", help: "write '[\(name)]'")
    }
}

extension UInt8 {
    static let slash = UInt8(ascii: "/")
    static let dot = UInt8(ascii: ".")
}
