import Rules

/// The events of a watcher.
struct DireventEvents {
    var mask = IncronMask("0")
    var unknown: [String] = []
    /// The generic event, if it is the only one.
    private(set) var only: (name: String, number: Int)?
    private var isCreationAlone = false

    private static let generic: [(name: String, number: Int, bits: UInt32)] = [
        ("create", 1, IncronMask.create | IncronMask.movedTo),
        ("write", 2, IncronMask.writing),
        ("attrib", 4, IncronMask.attrib),
        ("delete", 8, IncronMask.delete | IncronMask.movedFrom),
    ]

    /// Creates the events from their names; no names stand for all events.
    init(_ names: [String]) {
        for name in names.isEmpty ? Self.generic.map(\.name) : names {
            let event = Self.generic.first { $0.name == name }
            let bits = event?.bits ?? IncronMask("IN_\(name)").bits
            if bits == 0 { unknown.append(name) }
            mask.bits |= bits
            if let event, names.count == 1 { only = (event.name, event.number) }
        }
        isCreationAlone = names.contains("create") && !mask.has(IncronMask.writing) && !names.contains("MOVED_TO")
    }

    func words(ofFile isFile: Bool) -> [String] {
        // direvent also reports 'create' for a file replaced by a move, but then every write would be one.
        var mask = mask
        // direvent reports 'delete' for a watched file as for one in a directory.
        if isFile, mask.has(IncronMask.delete | IncronMask.movedFrom) { mask.bits |= IncronMask.deleteSelf }
        return mask.events(ofFile: isFile).filter { !isCreationAlone || $0 != "modified" }
    }

    /// Returns a string split at its macros: all of them in a shell line, otherwise those outside single quotes.
    func pieces(of text: String, isShell: Bool = false, for rule: inout ImportedRule) -> [CommandPiece] {
        var pieces: [CommandPiece] = []
        var rest = text[...]
        var isQuoted = false
        var isDouble = false
        while let character = rest.popFirst() {
            if character == "\"", !isQuoted { isDouble.toggle() }
            if character == "'", !isDouble, !isShell { isQuoted.toggle() }
            if character == "\\", !isQuoted, !isShell, let next = rest.popFirst() {
                pieces.append(.text("\\" + String(next)))
                continue
            }
            guard character == "$", !isQuoted, let name = Self.macro(&rest) else {
                pieces.append(.text(String(character)))
                continue
            }
            pieces += value(of: name, for: &rule)
        }
        return CommandPiece.joined(pieces)
    }

    /// Returns the name after a `$`, with or without braces; nil if there is none.
    private static func macro(_ rest: inout Substring) -> String? {
        func isName(_ character: Character) -> Bool {
            character.isASCII && (character.isLetter || character.isNumber || character == "_")
        }
        let isBraced = rest.first == "{"
        let name = (isBraced ? rest.dropFirst() : rest).prefix(while: isName)
        guard let first = name.first, !first.isNumber else { return nil }
        if isBraced {
            guard rest.dropFirst(name.count + 1).first == "}" else { return nil }
            rest = rest.dropFirst(name.count + 2)
        } else {
            rest = rest.dropFirst(name.count)
        }
        return String(name)
    }

    private func value(of name: String, for rule: inout ImportedRule) -> [CommandPiece] {
        let reason: String
        switch (name, only) {
        case ("file", _): return [.value(.name)]
        case ("genev_name", let only?): return [.text(only.name)]
        case ("genev_code", let only?): return [.text(String(only.number))]
        case ("genev_name", nil): reason = ""
        case ("genev_code", nil): reason = "; Alight has no event numbers"
        case ("sysev_name", _), ("sysev_code", _): reason = "; the kernel's event is unknown"
        default:
            rule.addChange("'$\(name)' is not a macro; it is removed, as in direvent")
            return []
        }
        rule.addChange("'$\(name)' is Alight's event name, such as 'created'\(reason)")
        return [.value(.event)]
    }
}
