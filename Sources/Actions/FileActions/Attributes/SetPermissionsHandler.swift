package import ActionAPI
import CAlightLinux
import PluginProtocol
package import Rules
import System

/// The `set-permissions` action: changes a file's mode, and as root its owner.
package struct SetPermissionsHandler: FileHandler {
    package init() {}

    package let summary = HandlerDescription(
        "set-permissions",
        [
            "mode": .string(
                "The permissions, such as \"0640\", or a change, such as 'u+rw,go-w'.", example: "0640",
                minLength: nil, pattern: FileMode.pattern),
            "owner": .string("The new owner, by name or number; only root can change it.", example: "root"),
            "group": .string(
                "The new group, by name or number; other users than root can set only their own groups.",
                example: "users"),
        ], minProperties: 1, examples: [["mode": "0640"]], types: [.file, .directory], traits: .isBrief)

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        let source = try SourceFile(invocation)
        guard source.metadata.type == .file || source.metadata.type == .directory else {
            throw .failed("'\(source.path)' is neither a file nor a directory", code: "not-a-file")
        }
        let descriptor = source.file.descriptor
        let owner = try Self.number(invocation.text("owner"), "user") { Accounts().named($0)?.uid }
        let group = try Self.number(invocation.text("group"), "group", Accounts.group)
        var done: [String] = []
        // The owner comes first, since changing it clears the set-user-id bit.
        if owner != nil || group != nil {
            let error = cal_change_owner(descriptor, owner ?? .max, group ?? .max)
            guard error == 0 else { throw FileError(error, "cannot change the owner of '\(source.path)'") }
            done.append("owner \(owner ?? source.metadata.uid):\(group ?? source.metadata.gid)")
        }
        if let text = invocation.text("mode") {
            guard let change = FileMode(text) else {
                throw .failed("'\(text)' is not a mode; write \"0640\" or 'u+rw,go-w'", code: "bad-mode")
            }
            let mode = change.applied(
                to: UInt32(try source.file.metadata().mode), isDirectory: source.metadata.type == .directory)
            let error = cal_change_mode(descriptor, mode)
            guard error == 0 else { throw FileError(error, "cannot set the mode of '\(source.path)'") }
            done.append("mode \(String(mode, radix: 8, width: 4))")
        }
        guard !done.isEmpty else {
            throw .failed("there is nothing to set; write 'mode', 'owner' or 'group'", code: "bad-mode")
        }
        return Outcome(.succeeded, "set \(done.joined(separator: ", "))", outputs: [source.path])
    }

    private static func number(
        _ text: String?, _ noun: String, _ find: (String) -> UInt32?
    ) throws(FileError) -> UInt32? {
        guard let text else { return nil }
        // The highest number means "unchanged".
        if let number = find(text) ?? UInt32(text), number != .max { return number }
        throw .failed("there is no \(noun) '\(text)'", code: "no-such-\(noun)")
    }
}

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
