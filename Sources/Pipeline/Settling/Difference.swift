import FileEvents
package import System

/// What differs between the last accepted snapshot of a path and the disk.
package struct Difference: Sendable, Hashable {
    /// `extended`, `truncated`, `overwritten`; empty when the content is the same.
    package var content: [String]
    /// `mode`, `uid`, `gid`, `nlink`, `mtime`, `xattr:NAME`; empty when they are the same.
    package var attributes: [String]
    /// Whether the path holds another file.
    package var isReplaced: Bool

    package var isEmpty: Bool { content.isEmpty && attributes.isEmpty && !isReplaced }

    /// Compares two snapshots of one path.
    ///
    /// A new modification time alone is content only when there is reason to
    /// think that something was written: `touch` sets it too. Where both snapshots
    /// have a checksum, that decides for files of equal size, whatever their times
    /// are. Another file with the same bytes is replaced without a change of content:
    /// whether that is worth telling is the caller's to decide.
    ///
    /// Extended attributes are compared where both snapshots have them. In a word
    /// for one, a name that is not UTF-8 is shown repaired.
    ///
    /// - Parameters:
    ///   - before: What was accepted.
    ///   - after: What the disk says.
    ///   - mayBeWritten: Whether there was a sign of writing, or nobody was watching.
    package init(before: Snapshot, after: Snapshot, mayBeWritten: Bool) {
        isReplaced = before.identity != after.identity || before.type != after.type
        content = []
        attributes = []
        if after.type == .file || isReplaced {
            if after.size > before.size {
                content = ["extended"]
            } else if after.size < before.size {
                content = ["truncated"]
            } else if let old = before.digest, let new = after.digest, before.type == after.type {
                if old != new { content = ["overwritten"] }
            } else if isReplaced || (before.modified != after.modified && mayBeWritten) {
                content = ["overwritten"]
            }
        } else if let old = before.digest, let new = after.digest, old != new {
            content = ["overwritten"]
        }
        if before.mode != after.mode { attributes.append("mode") }
        if before.uid != after.uid { attributes.append("uid") }
        if before.gid != after.gid { attributes.append("gid") }
        // The link count of a folder counts its sub-folders, which is not an attribute that anyone set.
        if before.links != after.links, after.type != .directory { attributes.append("nlink") }
        if before.modified != after.modified, content.isEmpty, after.type != .directory { attributes.append("mtime") }
        if let old = before.extended, let new = after.extended { attributes += Self.extended(old, new) }
    }

    /// The attributes that were added, removed or set to another value, sorted by name.
    private static func extended(_ before: [ExtendedAttribute], _ after: [ExtendedAttribute]) -> [String] {
        let names = Set(Set(before).symmetricDifference(after).map(\.name)).sorted()
        var words: [String] = []
        // Names that differ in bytes may look alike when repaired.
        for word in names.map({ "xattr:\($0)" }) where words.last != word { words.append(word) }
        return words
    }
}
