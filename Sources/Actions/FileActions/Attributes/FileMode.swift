/// A file mode in the syntax of chmod(1): `0640`, or `u+rw,go-w`.
struct FileMode {
    /// An operator of a clause.
    private struct Change {
        /// The bits that may change.
        var mask: UInt32
        var operation: Character
        /// The permissions as letters, or the class of users whose permissions are copied.
        var letters: Substring
    }

    /// The number, if the mode is one.
    private var number: UInt32?
    private var changes: [Change] = []

    /// The pattern that a mode must match, also for the schema.
    static let pattern = "^([0-7]{3,4}|[ugoa]*([-+=]([rwxXst]*|[ugo]))+(,[ugoa]*([-+=]([rwxXst]*|[ugo]))+)*)$"

    private static let masks: [Character: UInt32] = ["u": 0o4700, "g": 0o2070, "o": 0o1007, "a": 0o7777]
    private static let bits: [Character: UInt32] = ["r": 0o444, "w": 0o222, "x": 0o111, "s": 0o6000, "t": 0o1000]
    private static let shifts: [Character: UInt32] = ["u": 6, "g": 3, "o": 0]

    /// Parses a mode; nil if it has neither form.
    init?(_ text: String) {
        guard let pattern = try? Regex(Self.pattern), text.wholeMatch(of: pattern) != nil else { return nil }
        number = UInt32(text, radix: 8)
        guard number == nil else { return }
        for clause in text.split(separator: ",") {
            let classes = clause.prefix { Self.masks[$0] != nil }
            let mask = classes.isEmpty ? 0o7777 : classes.reduce(0) { $0 | (Self.masks[$1] ?? 0) }
            for change in clause.dropFirst(classes.count).matches(of: /([-+=])([^-+=]*)/) {
                changes.append(Change(mask: mask, operation: change.1.first ?? "=", letters: change.2))
            }
        }
    }

    /// Returns the mode that results from a file's current mode.
    func applied(to mode: UInt32, isDirectory: Bool) -> UInt32 {
        if let number { return number }
        return changes.reduce(mode & 0o7777) { mode, change in
            var bits = change.letters.reduce(0) { $0 | (Self.bits[$1] ?? 0) }
            if change.letters.contains("X"), isDirectory || mode & 0o111 != 0 { bits |= 0o111 }
            if let shift = change.letters.first.flatMap({ Self.shifts[$0] }) {
                let copied = mode >> shift & 7
                bits = copied << 6 | copied << 3 | copied
            }
            // `t` does not belong to a class of users.
            let permitted = bits & (change.mask | 0o1000)
            return switch change.operation {
            case "+": mode | permitted
            case "-": mode & ~permitted
            default: mode & ~(change.mask & 0o6777) | permitted
            }
        }
    }
}
