import Rules
import System

/// Shell syntax at the start of a path or in it, such as `$HOME` or `~user`, which rules do not expand.
///
/// A component after `.` is literal, as in `./$HOME`.
struct ShellExpansion {
    /// The range of bytes.
    var range: Range<Int>
    var help: String

    /// The variables that are also recognized within a name.
    private static let common: Set = ["HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "HOSTNAME"]

    /// Finds the first occurrence in a path.
    init?(inPath text: String) {
        let bytes = Array(text.utf8)
        if bytes.first == UInt8(ascii: "~"), bytes.count > 1, bytes[1] != .slash {
            range = 0..<(bytes.firstIndex(of: .slash) ?? bytes.count)
            help = "write the full path; only '~/' is expanded, to your home directory"
            return
        }
        guard bytes.contains(UInt8(ascii: "$")) else { return nil }
        var before: ArraySlice<UInt8> = []
        for component in bytes.split(separator: .slash, omittingEmptySubsequences: false) {
            defer { before = component }
            guard !before.elementsEqual([.dot]) else { continue }
            for start in component.indices where component[start] == UInt8(ascii: "$") {
                // Globs escape it.
                if start > component.startIndex, component[start - 1] == UInt8(ascii: "\\") { continue }
                if let end = Self.substitution(in: bytes, at: start) {
                    range = start..<end
                    help =
                        bytes[(start + 2)...].starts(with: "date".utf8)
                        ? "write '${now:%Y-%m-%d}' for the date" : "write the value, or use 'shell'"
                    return
                }
                guard let name = Self.name(in: component, at: start) else { continue }
                let isComponent = start == component.startIndex && start + 1 + name.utf8.count == component.endIndex
                guard isComponent || Self.common.contains(name) else { continue }
                range = start..<(start + 1 + name.utf8.count)
                help = Self.help(for: name) + "; './$\(name)' means that name literally"
                return
            }
        }
        return nil
    }

    /// Finds a variable that is the whole argument, or the first name of a path in it.
    init?(inArgument text: String) {
        let bytes = Array(text.utf8)
        guard bytes.first == UInt8(ascii: "$"), let name = Self.name(in: bytes[...], at: 0),
            bytes.count == name.utf8.count + 1 || bytes[name.utf8.count + 1] == .slash
        else { return nil }
        range = 0..<(name.utf8.count + 1)
        help = Self.help(for: name)
    }

    private static func help(for name: String) -> String {
        if name.hasPrefix("ALIGHT_"), let placeholder = Placeholder(word: name.dropFirst(7).lowercased()) {
            return "write '${\(placeholder.word)}'"
        }
        return (name == "HOME" ? "write '~/' or " : "write ") + "'${env:\(name)}'"
    }

    /// Returns the end of `$(…)`.
    private static func substitution(in bytes: [UInt8], at start: Int) -> Int? {
        guard bytes[start...].starts(with: "$(".utf8) else { return nil }
        return bytes[start...].firstIndex(of: UInt8(ascii: ")")).map { $0 + 1 }
    }

    /// Returns the name of a variable after `$`.
    ///
    /// Names of variables are in upper or in lower case; `$Extend` and `$RECYCLE.BIN` are directories of Windows.
    private static func name(in bytes: ArraySlice<UInt8>, at start: Int) -> String? {
        let name = bytes[(start + 1)...].prefix { $0.isAlphanumeric || $0 == UInt8(ascii: "_") }
        guard let first = name.first, !first.isDigit else { return nil }
        let text = String(decoding: name, as: UTF8.self)
        return text == text.uppercased() || text == text.lowercased() ? text : nil
    }
}

extension RuleDecoder {
    /// Reports shell syntax in a path; returns whether there is none.
    @discardableResult
    func checkExpansion(of path: String, _ node: YAMLNode) -> Bool {
        guard let found = ShellExpansion(inPath: path) else { return true }
        let written = String(decoding: Array(path.utf8)[found.range], as: UTF8.self)
        problems.error(
            "\(quoted(written)) is not expanded",
            at: mark(node, offset: found.range.lowerBound, length: found.range.count), help: found.help)
        return false
    }

    /// Warns about a variable that is an argument, or an element of a list such as `PATH`.
    func warnOfVariable(in text: String, _ node: YAMLNode, key: String) {
        guard text.utf8.contains(UInt8(ascii: "$")) else { return }
        var offset = 0
        for element in key == "env" ? text.split(separator: ":", omittingEmptySubsequences: false) : [text[...]] {
            if let found = ShellExpansion(inArgument: String(element)) {
                let written = String(element.utf8.prefix(found.range.count)) ?? ""
                problems.warning(
                    "\(quoted(written)) is not expanded: \(quoted(key)) uses it literally",
                    at: mark(node, offset: offset, length: found.range.count),
                    help: found.help + (key == "exec" ? ", or use 'shell'" : ""))
            }
            offset += element.utf8.count + 1
        }
    }
}
