/// A file mode in the syntax of chmod(1): `0640`, or `u+rw,go-w`.
struct FileMode {
    private enum Part {
        case all(UInt32)
        case change(who: UInt32, operation: Character, bits: UInt32, isXForDirectories: Bool, copied: Character?)
    }

    private let parts: [Part]

    /// The pattern that a mode must match, for the schema.
    static let pattern = "^([0-7]{3,4}|[ugoa]*([-+=]([rwxXst]*|[ugo]))+(,[ugoa]*([-+=]([rwxXst]*|[ugo]))+)*)$"

    /// Parses a mode; nil if it has neither form.
    init?(_ text: String) {
        if let number = UInt32(text, radix: 8), (3...4).contains(text.utf8.count), !text.hasPrefix("+") {
            parts = [.all(number)]
            return
        }
        var parts: [Part] = []
        for clause in text.split(separator: ",", omittingEmptySubsequences: false) {
            let who = clause.prefix { "ugoa".contains($0) }
            var rest = clause.dropFirst(who.count)
            guard !rest.isEmpty else { return nil }
            let mask = who.isEmpty ? Self.everyone : who.reduce(0) { $0 | Self.mask(of: $1) }
            while let operation = rest.first {
                guard "+-=".contains(operation) else { return nil }
                let words = rest.dropFirst().prefix { !"+-=".contains($0) }
                rest = rest.dropFirst(1 + words.count)
                let copied = words.count == 1 ? words.first.flatMap { "ugo".contains($0) ? $0 : nil } : nil
                guard copied != nil || words.allSatisfy({ "rwxXst".contains($0) }) else { return nil }
                parts.append(
                    .change(
                        who: mask, operation: operation, bits: words.reduce(0) { $0 | Self.bits(of: $1) },
                        isXForDirectories: words.contains("X"), copied: copied))
            }
        }
        self.parts = parts
    }

    private static let everyone: UInt32 = 0o7777

    private static func mask(of who: Character) -> UInt32 {
        switch who {
        case "u": 0o4700
        case "g": 0o2070
        case "o": 0o1007
        default: everyone
        }
    }

    private static func bits(of word: Character) -> UInt32 {
        switch word {
        case "r": 0o444
        case "w": 0o222
        case "x": 0o111
        case "s": 0o6000
        case "t": 0o1000
        default: 0
        }
    }

    /// Returns the mode that results from a file's current mode.
    func applied(to mode: UInt32, isDirectory: Bool) -> UInt32 {
        var mode = mode & 0o7777
        for part in parts {
            switch part {
            case .all(let new): mode = new
            case .change(let who, let operation, var bits, let isXForDirectories, let copied):
                if isXForDirectories, isDirectory || mode & 0o111 != 0 { bits |= 0o111 }
                if let copied {
                    let shift: UInt32 = copied == "u" ? 6 : copied == "g" ? 3 : 0
                    let three = mode >> shift & 7
                    bits = three << 6 | three << 3 | three
                }
                // `t` does not belong to a class of users.
                let taken = bits & (who | 0o1000)
                switch operation {
                case "+": mode |= taken
                case "-": mode &= ~taken
                default: mode = mode & ~(who & 0o6777) | taken
                }
            }
        }
        return mode
    }
}
