/// The names of the files that programs create next to a file while they transfer or edit it.
///
/// A browser reserves the final name with an empty file and downloads to a second
/// name next to it. Other programs write to the final name and store their state in a
/// second file until they are done. In both cases the file is closed and quiet, so
/// neither the quiet time nor the search for writers shows that it is unfinished.
package enum PartialFile {
    /// The companion of an unfinished file; its name is the file's name between a prefix and a suffix.
    package struct Companion: Sendable {
        package var prefix: [UInt8]
        package var suffix: [UInt8]
        /// Whether it applies to an empty file only.
        ///
        /// A file with content is then a previous version, which stays complete until the new one replaces it.
        package var isForEmptyFilesOnly: Bool
        /// The programs that create it.
        package var programs: String

        init(_ prefix: String, _ suffix: String, forEmptyFilesOnly: Bool = false, _ programs: String) {
            (self.prefix, self.suffix) = (Array(prefix.utf8), Array(suffix.utf8))
            (isForEmptyFilesOnly, self.programs) = (forEmptyFilesOnly, programs)
        }
    }

    package static let companions = [
        Companion("", ".part", forEmptyFilesOnly: true, "Firefox"),
        Companion("", ".crdownload", forEmptyFilesOnly: true, "Chrome, Chromium, Edge"),
        Companion("", ".download", forEmptyFilesOnly: true, "Safari, GNOME Web"),
        Companion("", ".opdownload", forEmptyFilesOnly: true, "Opera"),
        Companion("", ".partial", forEmptyFilesOnly: true, "rclone, older browsers"),
        Companion("", ".aria2", "aria2"),
        Companion("", ".!qB", "qBittorrent"),
        Companion("", ".filepart", "WinSCP"),
        Companion(".syncthing.", ".tmp", "Syncthing"),
        Companion(".~lock.", "#", "LibreOffice"),
    ]

    /// Whether a name may be that of a companion.
    package static func isCompanion(_ name: some BidirectionalCollection<UInt8>) -> Bool {
        companions.contains { entry in
            name.last == entry.suffix.last && name.reversed().starts(with: entry.suffix.reversed())
                && name.starts(with: entry.prefix)
        }
    }
}
