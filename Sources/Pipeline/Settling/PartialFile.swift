package import System

/// The names of the files that programs create next to a file while they transfer or edit it.
///
/// A browser reserves the final name with an empty file and downloads to a second
/// name next to it. Other programs write to the final name and store their state in a
/// second file until they are done. In both cases the file is closed and quiet, so
/// neither the quiet time nor the search for writers shows that it is unfinished.
package enum PartialFile {
    /// The companion of an unfinished file; its name is the file's name between a prefix and a suffix.
    struct Companion: Sendable {
        var prefix: String
        var suffix: String
        /// Whether it applies to an empty file only.
        ///
        /// A file with content is then a previous version, which stays complete until the new one replaces it.
        var isForEmptyFilesOnly: Bool
        /// The programs that create it.
        var programs: String

        init(_ prefix: String, _ suffix: String, forEmptyFilesOnly: Bool = false, _ programs: String) {
            (self.prefix, self.suffix) = (prefix, suffix)
            (isForEmptyFilesOnly, self.programs) = (forEmptyFilesOnly, programs)
        }
    }

    static let companions = [
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

    /// Returns the first existing companion of a regular file; nil if there is none.
    ///
    /// Blocks for one stat(2) per entry of the table that applies.
    package static func companion(of location: DiskProbe.Location, size: UInt64, in fileSystem: any FileSystem)
        -> PathBytes?
    {
        let name = location.name.lastComponent
        for entry in companions where size == 0 || !entry.isForEmptyFilesOnly {
            let companion = location.beside(Array(entry.prefix.utf8) + name + Array(entry.suffix.utf8))
            if case .present = fileSystem.stat(companion) { return companion.name }
        }
        return nil
    }
}

extension DiskProbe.Location {
    /// Returns the location of another name in the same directory.
    fileprivate func beside(_ name: [UInt8]) -> Self {
        directory.map { Self($0, PathBytes(name)) } ?? Self(self.name.parent.appending(name))
    }
}
