import ActionAPI
import CAlightLinux
import Glibc
import PluginProtocol
import Rules
import System

/// The options of a copy: which attributes are preserved, and whether it is verified and flushed.
struct CopyOptions {
    enum Attribute: String, CaseIterable {
        case mode, times, xattrs, owner
    }

    var retained: [Attribute]
    /// Whether the copy is compared byte for byte with the source.
    var verifies: Bool
    /// Whether the copy is flushed to the disk before it gets its name.
    var isDurable: Bool

    // Without defaults in the schema, since a dry run would show them in each line of an action.

    /// Returns the parameters of all handlers that copy, with the attributes that a copy preserves by default.
    static func parameters(default attributes: [Attribute]) -> [String: ParameterSchema] {
        let words = attributes.map(\.rawValue).joined(separator: ", ")
        return [
            "keep": ParameterSchema(
                type: "array", examples: [.array(attributes.map { .string($0.rawValue) })],
                items: ParameterSchema(type: "string", enum: Attribute.allCases.map { .string($0.rawValue) }),
                description:
                    "The metadata that a copy keeps: 'mode'; 'times', the modification and access times; 'xattrs', "
                    + "the 'user.*' attributes and the access control lists; 'owner', the user and group as far as "
                    + "permitted. Default: \(words)."
            ),
            "verify": .flag(
                "Whether a copy is read again and compared with the original; otherwise only its size is."),
        ]
    }

    /// The mode that a copy is created with; unless the mode of the source is preserved, it follows the umask.
    var firstMode: UInt32 { retained.contains(.mode) ? 0o600 : 0o666 }

    static let durableSchema = ParameterSchema.flag(
        "Whether a copy is flushed to disk before it gets its name, so that a power loss can't leave it "
            + "empty; 'false' doesn't wait for that.")

    init(_ invocation: Invocation, default attributes: [Attribute]) {
        if case .array(let words)? = invocation.parameters["keep"] {
            let words = words.compactMap(\.bytes).map { String(decoding: $0, as: UTF8.self) }
            retained = words.compactMap(Attribute.init)
        } else {
            retained = attributes
        }
        verifies = invocation.flag("verify", default: false)
        isDurable = invocation.flag("durable", default: true)
    }

    /// Copies the preserved attributes to the copy.
    ///
    /// The owner comes first, since changing it clears the set-user-id bit. Access lists come before the mode, which
    /// repeats their content in short form.
    func copyAttributes(of source: OpenFile, _ metadata: Snapshot, on copy: Int32) throws(FileError) {
        let isOwners = retained.contains(.owner) && fchown(copy, metadata.uid, metadata.gid) == 0
        let hasAccess = retained.contains(.xattrs) ? try Self.copyAttributes(source, copy) : false
        // With an access list, the bits of the group are the maximum for all entries of the list.
        let isListed = source.attribute(Self.accessList)?.isEmpty == false
        let group: UInt32 = isListed && !hasAccess ? 0o070 : 0
        // Set-user-id and similar bits require the original owner: otherwise a user's program would run as the user of
        // this process.
        if retained.contains(.mode), fchmod(copy, UInt32(metadata.mode) & (isOwners ? 0o7777 : 0o777) & ~group) != 0 {
            throw FileError(errno, "cannot set the mode of the copy of a file")
        }
        guard retained.contains(.times) else { return }
        var status = stat()
        guard fstat(source.descriptor, &status) == 0 else { return }
        var times = [status.st_atim, status.st_mtim]
        guard futimens(copy, &times) == 0 || errno == EPERM || errno == ENOTSUP else {
            throw FileError(errno, "cannot set the times of the copy of a file")
        }
    }

    /// Copies extended attributes of users and access lists; attributes of the system are set by the system.
    ///
    /// An attribute that the other file system rejects, for example for its size or type, is left out.
    ///
    /// - Returns: Whether the source has an access list that was copied.
    /// - Throws: A ``FileError`` if the disk is full or fails.
    private static func copyAttributes(_ source: OpenFile, _ copy: Int32) throws(FileError) -> Bool {
        var hasAccess = false
        for name in source.attributeNames where name.bytes.starts(with: "user.".utf8) || name == accessList {
            guard let value = source.attribute(name) else { continue }
            let error = name.withCString { cal_set_open_attribute(copy, $0, value, value.count) }
            if [ENOSPC, EDQUOT, EIO].contains(error) {
                throw FileError(error, "cannot set an attribute of the copy of a file")
            }
            if error == 0, name == accessList { hasAccess = true }
        }
        return hasAccess
    }

    private static let accessList: PathBytes = "system.posix_acl_access"
}
