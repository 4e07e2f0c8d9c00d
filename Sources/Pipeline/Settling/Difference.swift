package import System

/// The differences between the last accepted snapshot of a path and its current one.
package struct Difference: Sendable, Hashable {
    /// `extended`, `truncated`, `overwritten`; empty when the content is the same.
    package var content: [String]
    /// `mode`, `uid`, `gid`, `nlink`, `mtime`, `xattr:NAME`; empty when they are the same.
    package var attributes: [String]
    /// Whether another file is at the path.
    package var isReplaced: Bool

    package var isEmpty: Bool { content.isEmpty && attributes.isEmpty && !isReplaced }

    /// The evidence that the content was written between two snapshots.
    package enum Writing: Sendable, Hashable {
        /// The kernel has reported changes, none of which writes.
        case excluded
        /// The kernel has reported changes that may be writes.
        case possible
        /// The path was not watched.
        case unwatched
        /// The kernel has reported a write.
        case certain
    }

    /// Compares two snapshots of one path.
    ///
    /// Programs may set the modification time to any value, the earlier one included; only the kernel sets the change
    /// time, and it sets it for attributes too. So a new modification time is a change of the content unless writing
    /// is excluded, and a new change time alone is one after a write, or if nothing else explains it and the path was
    /// not watched. If both snapshots have a checksum, it decides for files of equal size, whatever their times are.
    /// Another file with the same bytes is a replacement without a change of content: the caller decides whether to
    /// report it.
    ///
    /// Extended attributes are compared if both snapshots have them. In `xattr:NAME`,
    /// invalid UTF-8 in the name is replaced.
    ///
    /// - Parameters:
    ///   - before: The accepted snapshot.
    ///   - after: The current snapshot.
    ///   - writing: The evidence of writing.
    package init(before: Snapshot, after: Snapshot, writing: Writing) {
        isReplaced = before.identity != after.identity || before.type != after.type
        content = []
        attributes = []
        if before.mode != after.mode { attributes.append("mode") }
        if before.uid != after.uid { attributes.append("uid") }
        if before.gid != after.gid { attributes.append("gid") }
        // The link count of a directory counts its subdirectories, which is not an attribute that anyone set.
        if before.links != after.links, after.type != .directory { attributes.append("nlink") }
        var extended: [String] = []
        if let old = before.extended, let new = after.extended { extended = Self.extended(old, new) }
        if after.type == .file || isReplaced {
            if after.size > before.size {
                content = ["extended"]
            } else if after.size < before.size {
                content = ["truncated"]
            } else if let old = before.digest, let new = after.digest, before.type == after.type {
                if old != new { content = ["overwritten"] }
            } else if isReplaced || before.modified != after.modified && writing != .excluded {
                content = ["overwritten"]
            } else if before.changed != after.changed,
                writing == .certain || writing == .unwatched && attributes.isEmpty && extended.isEmpty
            {
                content = ["overwritten"]
            }
        } else if let old = before.digest, let new = after.digest, TreeFingerprint.differ(old, new, writing) {
            content = ["overwritten"]
        }
        if before.modified != after.modified, content.isEmpty, after.type != .directory { attributes.append("mtime") }
        attributes += extended
    }

    /// Returns the attributes that were added, removed or changed, sorted by name.
    private static func extended(_ before: [ExtendedAttribute], _ after: [ExtendedAttribute]) -> [String] {
        let names = Set(Set(before).symmetricDifference(after).map(\.name)).sorted()
        var words: [String] = []
        // Names with different invalid bytes may become equal.
        for word in names.map({ "xattr:\($0)" }) where words.last != word { words.append(word) }
        return words
    }
}
