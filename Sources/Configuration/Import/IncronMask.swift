/// The mask of an incron table: events and options.
struct IncronMask {
    var bits: UInt32 = 0
    /// Set by `loopable=true`, or by `IN_NO_LOOP` of older versions.
    var ignoresOwnChanges = false
    var isRecursive = true
    var entersHidden = false
    /// Unknown words.
    var unknown: [String] = []

    static let access: UInt32 = 0x1, modify: UInt32 = 0x2, attrib: UInt32 = 0x4, closeWrite: UInt32 = 0x8
    static let closeNoWrite: UInt32 = 0x10, open: UInt32 = 0x20, movedFrom: UInt32 = 0x40, movedTo: UInt32 = 0x80
    static let create: UInt32 = 0x100, delete: UInt32 = 0x200, deleteSelf: UInt32 = 0x400, moveSelf: UInt32 = 0x800
    static let unmount: UInt32 = 0x2000, overflow: UInt32 = 0x4000, ignored: UInt32 = 0x8000
    static let onlyDirectories: UInt32 = 0x0100_0000, dontFollow: UInt32 = 0x0200_0000, once: UInt32 = 0x8000_0000
    static let allEvents: UInt32 = 0xFFF
    static let writing = modify | closeWrite

    private static let symbols: [(name: String, bits: UInt32)] = [
        ("IN_ACCESS", access), ("IN_MODIFY", modify), ("IN_ATTRIB", attrib), ("IN_CLOSE_WRITE", closeWrite),
        ("IN_CLOSE_NOWRITE", closeNoWrite), ("IN_OPEN", open), ("IN_MOVED_FROM", movedFrom), ("IN_MOVED_TO", movedTo),
        ("IN_CREATE", create), ("IN_DELETE", delete), ("IN_DELETE_SELF", deleteSelf), ("IN_MOVE_SELF", moveSelf),
        ("IN_UNMOUNT", unmount), ("IN_Q_OVERFLOW", overflow), ("IN_IGNORED", ignored), ("IN_ONLYDIR", onlyDirectories),
        ("IN_DONT_FOLLOW", dontFollow), ("IN_EXCL_UNLINK", 0x0400_0000), ("IN_MASK_ADD", 0x2000_0000),
        ("IN_ISDIR", 0x4000_0000), ("IN_ONESHOT", once), ("IN_MOVE", movedFrom | movedTo),
        ("IN_CLOSE", closeWrite | closeNoWrite), ("IN_ALL_EVENTS", allEvents),
    ]

    /// Parses a mask: symbols and options, or a number.
    init(_ text: String) {
        if let number = UInt32(text) {
            bits = number
            return
        }
        for word in text.split(separator: ",") {
            switch word {
            case "loopable=true", "IN_NO_LOOP": ignoresOwnChanges = true
            case "recursive=false": isRecursive = false
            case "dotdirs=true": entersHidden = true
            case "loopable=false", "recursive=true", "dotdirs=false": break
            default:
                if let symbol = Self.symbols.first(where: { $0.name == word }) {
                    bits |= symbol.bits
                } else if let number = UInt32(word) {
                    bits |= number
                } else {
                    unknown.append(String(word))
                }
            }
        }
    }

    func has(_ bits: UInt32) -> Bool { self.bits & bits != 0 }

    /// The only event of the mask, as incron names it; nil if there are several.
    var only: (name: String, number: UInt32)? {
        let events = bits & Self.allEvents
        guard events.nonzeroBitCount == 1, !has(Self.unmount | Self.overflow) else { return nil }
        return Self.symbols.first { $0.bits == events }.map { ($0.name, events) }
    }

    /// Whether directories also have events of this mask.
    var coversDirectories: Bool { has(Self.allEvents & ~(Self.writing | Self.deleteSelf | Self.moveSelf)) }

    /// Returns the event names for a rule that watches a directory or a file.
    func events(ofFile isFile: Bool) -> [String] {
        let changing = isFile ? Self.writing : Self.writing | Self.movedTo
        let words: [(bits: UInt32, word: String)] = [
            (isFile ? Self.writing : changing | Self.create, "created"), (changing, "modified"),
            (isFile ? Self.deleteSelf | Self.moveSelf : Self.delete | Self.movedFrom, "deleted"),
            (Self.attrib, "attributes"), (Self.open, "opened"), (Self.access, "accessed"),
            (Self.closeNoWrite, "closed"), (isFile ? 0 : Self.deleteSelf | Self.moveSelf, "root_gone"),
            (Self.unmount, "unmounted"), (Self.overflow, "overflow"),
        ]
        return words.filter { has($0.bits) }.map(\.word)
    }

    /// Returns the differences between a rule with these events and incron.
    func changes(ofFile isFile: Bool) -> [String] {
        var changes = unknown.map { "'\($0)' is not an event; incron also ignores it" }
        func add(_ condition: Bool, _ text: String) { if condition { changes.append(text) } }
        if !isFile {
            add(has(Self.create), "a new file is reported when it is complete, not when it is created")
            add(
                has(Self.create | Self.writing) && !has(Self.movedTo),
                "a file that is moved in is also reported, though IN_MOVED_TO is not in the mask")
            add(
                has(Self.movedTo) && !has(Self.create | Self.writing),
                "a file that is written in the directory is also reported, like one that is moved in")
            add(
                has(Self.delete) != has(Self.movedFrom),
                has(Self.delete)
                    ? "a file that is moved away is also reported, though IN_MOVED_FROM is not in the mask"
                    : "a file that is deleted is also reported, though IN_DELETE is not in the mask")
            add(
                has(Self.deleteSelf | Self.moveSelf),
                "'root_gone' reports only the removal of the watched directory itself, without a file name")
        }
        add(ignoresOwnChanges, "changes that others make while the command runs are reported after it")
        add(has(Self.modify), "a change is reported once, when the writer has closed the file, not at each write")
        add(has(Self.ignored), "the removal of a watch (IN_IGNORED) is not reported; see 'alight check'")
        add(has(Self.once), "every event is reported, not only the first (IN_ONESHOT)")
        add(has(Self.dontFollow), "a symbolic link at the path is followed (IN_DONT_FOLLOW)")
        return changes
    }
}
