package import FileEvents

/// Suggestions for words that are not events.
package enum EventSpelling {
    /// The main words; there are too many for one line of help.
    private static let list =
        "the events are created, modified, deleted, moved, attributes, and those in docs/events.md"

    /// The events of a file that was written and closed: a new one is created.
    private static let written = "created, modified"

    /// Words of other programs, with the corresponding events.
    private static let synonyms: [String: String] = [
        "add": "created", "added": "created", "create": "created", "new": "created", "change": "modified",
        "changed": "modified", "changes": "modified", "close_write": written, "saved": written, "save": written,
        "upload": written,
        "uploaded": written, "moved_to": "created, moved", "moved_from": "deleted, moved", "close_nowrite": "closed",
        "edit": "modified",
        "modify": "modified", "update": "modified", "updated": "modified", "write": written, "written": written,
        "delete": "deleted", "remove": "deleted", "removed": "deleted", "unlink": "deleted", "move": "moved",
        "rename": "moved", "renamed": "moved", "attrib": "attributes", "chmod": "attributes.mode",
        "chown": "attributes.uid", "metadata": "attributes", "mode": "attributes.mode", "owner": "attributes.uid",
        "group": "attributes.gid", "uid": "attributes.uid", "gid": "attributes.gid", "nlink": "attributes.nlink",
        "links": "attributes.nlink", "mtime": "attributes.mtime", "touch": "attributes.mtime",
        "xattr": "attributes.xattr", "append": "extended", "appended": "extended", "grown": "extended",
        "truncate": "truncated", "overwrite": "overwritten", "arrived": "arriving", "started": "arriving",
        "unmount": "unmounted", "open": "opened", "access": "accessed", "read": "accessed", "close": "closed",
    ]

    /// Returns the help of a diagnostic: `write 'modified'; the events are created, …`.
    package static func help(for word: String) -> String {
        var meant = synonyms[word.lowercased()] ?? Spelling.nearest(to: word, in: EventMask.words)
        if word.uppercased().hasPrefix("IN_") { meant = EventMask.inotifyWords.first { $0 == word.uppercased() } }
        return meant.map { "write '\($0)'; \(list)" } ?? list
    }

    /// Returns the words of all members of the mask, in a fixed order.
    package static func words(of mask: EventMask) -> [String] {
        EventMask.words.filter { word in EventMask(word: word).map { mask.isSuperset(of: $0) } ?? false }
    }
}
