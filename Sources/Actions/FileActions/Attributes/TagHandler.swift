package import ActionAPI
import CAlightLinux
import Glibc
import PluginProtocol
package import Rules
import System

/// The `tag` action: sets and removes extended attributes of the file.
///
/// An attribute that already has the value is not set again, so a rule for attribute changes does not trigger itself.
package struct TagHandler: FileHandler {
    package init() {}

    package let summary = HandlerDescription(
        "tag",
        [
            "set": ParameterSchema(
                type: "object", examples: [["user.xdg.tags": "inbox"]],
                description: "Attributes and their values, such as user.xdg.tags: \"a,b\". Names start with 'user.'."),
            "remove": ParameterSchema(
                type: "array", examples: [["user.unsorted"]],
                items: ParameterSchema(
                    type: "string", minLength: 6, pattern: "^user\\..",
                    description: "The name of an attribute, which starts with 'user.'."),
                description: "The attributes to remove, if present."),
        ], minProperties: 1, examples: [["set": ["user.xdg.tags": "inbox"]]], types: [.file, .directory],
        traits: .isBrief)

    /// An attribute and its new value; nil removes it.
    private typealias Change = (name: String, value: [UInt8]?)

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        try apply(changes(invocation), to: SourceFile(invocation))
    }

    /// Returns the changes, those of `set` sorted by name.
    private func changes(_ invocation: Invocation) throws(FileError) -> [Change] {
        var changes: [Change] = []
        if case .object(let members)? = invocation.parameters["set"] {
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                switch value {
                case .text(let bytes): changes.append((name, bytes))
                case .value(let constant): changes.append((name, Array(constant.shown.utf8)))
                case .array, .object: throw FileError(EINVAL, "the value of '\(name)' is a list or a mapping")
                }
            }
        }
        if case .array(let names)? = invocation.parameters["remove"] {
            changes += names.compactMap(\.bytes).map { (String(decoding: $0, as: UTF8.self), nil) }
        }
        for (name, _) in changes where !name.hasPrefix("user.") || name.utf8.count < 6 || name.utf8.contains(0) {
            throw FileError(EINVAL, "'\(name)' can't be set; write a name that starts with 'user.'")
        }
        return changes
    }

    private func apply(_ changes: [Change], to source: SourceFile) throws(FileError) -> Outcome {
        let path = source.path
        let file = try source.directory.opened(source.name, CAL_OPEN_READING)
        guard try file.metadata().identity == source.metadata.identity else { throw .changed }
        let descriptor = file.descriptor
        var done: [String] = []
        for (name, value) in changes {
            let error: Int32
            if let value {
                if file.attribute(PathBytes(name)) == value { continue }
                error = cal_set_open_attribute(descriptor, name, value, value.count)
                done.append("set \(name)")
            } else {
                error = cal_remove_open_attribute(descriptor, name)
                if error == ENODATA { continue }
                done.append("removed \(name)")
            }
            switch error {
            case 0: continue
            case ENOTSUP:
                throw .failed(
                    "the file system of '\(path)' does not support extended attributes; use one that does, "
                        + "such as ext4",
                    code: "not-supported")
            case ERANGE, E2BIG, ENOSPC:
                // ext4 reports ENOSPC for a value that is too large for the file system.
                throw .failed("there is no space for '\(name)' in '\(path)'", code: "too-large")
            default: throw FileError(error, "cannot change '\(name)' of '\(path)'")
            }
        }
        return Outcome(.succeeded, done.isEmpty ? "already tagged" : done.joined(separator: ", "))
    }
}
