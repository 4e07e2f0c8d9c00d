import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// How a file is copied: what of it is kept besides the bytes, and how sure it is.
struct CopyOptions {
    enum Fact: String, CaseIterable {
        case mode, times, xattrs, owner
    }

    var kept: Set<Fact>
    /// Whether the copy is compared byte for byte with what was copied.
    var verifies: Bool
    /// Whether it is on the disk before it gets its name.
    var isDurable = true

    // Without defaults in the schema, which would be in each line that a dry run has of an action.

    static func keepSchema(default facts: [Fact]) -> ParameterSchema {
        let words = facts.map(\.rawValue).joined(separator: ", ")
        return ParameterSchema(
            type: "array", examples: [.array(facts.map { .string($0.rawValue) })],
            items: ParameterSchema(type: "string", enum: Fact.allCases.map { .string($0.rawValue) }),
            description:
                "What a copy has of the original besides its content: 'mode'; 'times', of the last change and the last reading; 'xattrs', the attributes 'user.*' and the access lists; 'owner', user and group as far as they may be granted. Without it: \(words)."
        )
    }

    /// The mode that a copy is made with: without that of the original it is the umask's.
    var firstMode: UInt32 { kept.contains(.mode) ? 0o600 : 0o666 }

    static let verifySchema = ParameterSchema(
        type: "boolean",
        description: "Whether a copy is read again and compared with the original; else only its size is.")
    static let durableSchema = ParameterSchema(
        type: "boolean",
        description:
            "Whether a copy is on the disk before it gets its name, so that a loss of power can't empty it; 'false' doesn't wait for that."
    )

    init(_ invocation: Invocation, default facts: [Fact]) {
        if case .array(let words)? = invocation.parameters["keep"] {
            kept = Set(words.compactMap(\.bytes).compactMap { Fact(rawValue: String(decoding: $0, as: UTF8.self)) })
        } else {
            kept = Set(facts)
        }
        verifies = invocation.flag("verify", default: false)
    }

    /// Gives the copy what is kept.
    ///
    /// The owner goes first, since a change of it takes the set-user-id bit away, and lists of
    /// access before the mode, which says again what they say in short.
    func keep(of source: OpenFile, _ facts: Snapshot, on copy: Int32) throws(FileFault) {
        let isOwners = kept.contains(.owner) && fchown(copy, facts.uid, facts.gid) == 0
        let hasAccess = kept.contains(.xattrs) ? try Self.copyAttributes(source.descriptor, copy) : false
        // With a list of access the bits of the group are what all on the list may have at most.
        let isListed = cal_read_open_attribute(source.descriptor, "system.posix_acl_access", nil, 0) > 0
        let group: UInt32 = isListed && !hasAccess ? 0o070 : 0
        // Set-user-id and its like are the owner's to grant: without him they would turn a user's program into ours.
        if kept.contains(.mode), fchmod(copy, UInt32(facts.mode) & (isOwners ? 0o7777 : 0o777) & ~group) != 0 {
            throw FileFault(errno, "cannot set the mode of the copy of a file")
        }
        guard kept.contains(.times) else { return }
        var status = stat()
        guard fstat(source.descriptor, &status) == 0 else { return }
        var times = [status.st_atim, status.st_mtim]
        guard futimens(copy, &times) == 0 || errno == EPERM || errno == ENOTSUP else {
            throw FileFault(errno, "cannot set the times of the copy of a file")
        }
    }

    /// Attributes of users, and the lists of who may do what; those of the system are the system's to give.
    ///
    /// One that the other file system doesn't take is left out, as its size or kind may be.
    ///
    /// - Returns: Whether there was a list of access, and the copy has it.
    /// - Throws: When the disk is full or fails.
    private static func copyAttributes(_ source: Int32, _ copy: Int32) throws(FileFault) -> Bool {
        let length = cal_list_open_attributes(source, nil, 0)
        guard length > 0 else { return false }
        var hasAccess = false
        var names = [CChar](repeating: 0, count: Int(length) + 1)
        let filled = cal_list_open_attributes(source, &names, Int(length))
        guard filled > 0 else { return false }
        for name in names[..<Int(filled)].split(separator: 0) {
            let name = PathBytes(name.map { UInt8(bitPattern: $0) })
            guard name.bytes.starts(with: "user.".utf8) || name == "system.posix_acl_access" else { continue }
            let error = name.withCString { name -> Int32 in
                let size = cal_read_open_attribute(source, name, nil, 0)
                guard size >= 0 else { return ENODATA }
                var value = [UInt8](repeating: 0, count: Int(size) + 1)
                let read = cal_read_open_attribute(source, name, &value, Int(size))
                return read >= 0 ? cal_set_open_attribute(copy, name, value, Int(read)) : ENODATA
            }
            if [ENOSPC, EDQUOT, EIO].contains(error) {
                throw FileFault(error, "cannot set an attribute of the copy of a file")
            }
            if error == 0, name == "system.posix_acl_access" { hasAccess = true }
        }
        return hasAccess
    }
}
