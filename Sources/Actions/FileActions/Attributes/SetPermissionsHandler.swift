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
