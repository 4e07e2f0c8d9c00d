package import Globbing

/// The names that rules ignore by default, unless they set `ignore_defaults: false`: temporary and private files of
/// programs.
///
/// A name is in this list if a program creates it before renaming it, or stores its own state in it. Names that a user
/// may have chosen are not: `*.bak`, `*.old` and `*.log` are ordinary files.
package enum DefaultIgnores {
    /// A glob relative to the root, and the programs that create such names.
    package struct Entry: Sendable {
        package var pattern: String
        package var reason: String

        init(_ pattern: String, _ reason: String) { (self.pattern, self.reason) = (pattern, reason) }
    }

    package static let entries: [Entry] = [
        // Editors: swap, lock and backup files.
        Entry("**/.*.sw[a-px]", "Vim and nano keep unsaved changes in .name.swp, then .swo, and so on"),
        Entry("**/*~", "Vim, Emacs, gedit and others store the previous version as name~"),
        Entry("**/#*#", "Emacs auto-saves to #name#"),
        Entry("**/.#*", "Emacs locks a file that is being edited with the link .#name"),
        Entry("**/.*.kate-swp", "Kate keeps unsaved changes"),
        Entry("**/.~lock.*#", "LibreOffice locks a document that is open"),
        Entry("**/~$*", "Microsoft Office marks the owner of an open document"),
        Entry("**/.goutputstream-*", "GNOME programs write here and rename"),
        Entry("**/*___jb_{tmp,old}___", "JetBrains editors write here and rename"),

        // Temporary names that are renamed when the content is complete.
        Entry("**/*.{tmp,temp}", "a common extension of files that are being written"),
        Entry("**/.*.alight-tmp", "Alight itself copies to .name.alight-tmp and renames"),
        Entry("**/.~tmp~", "rsync --delay-updates collects files here"),
        Entry("**/.rsync-partial", "rsync --partial-dir stores interrupted transfers here"),
        Entry("**/.nfs*", "NFS keeps a deleted file that is still open"),
        Entry("**/.fuse_hidden*", "FUSE keeps a deleted file that is still open"),

        // Downloads and transfers in progress.
        Entry("**/*.part", "Firefox, KDE, ownCloud and others download to name.part"),
        Entry("**/*.crdownload", "Chrome, Chromium and Edge download to name.crdownload"),
        Entry("**/*.download", "Safari and GNOME Web download to name.download"),
        Entry("**/*.opdownload", "Opera downloads to name.opdownload"),
        Entry("**/*.partial", "rclone and older browsers transfer to name.partial"),
        Entry("**/*.filepart", "WinSCP transfers to name.filepart"),
        Entry("**/*.aria2", "aria2 stores the state of a download next to it"),
        Entry("**/*.ytdl", "yt-dlp stores the state of a download next to it"),
        Entry("**/*.part-Frag*", "yt-dlp downloads in fragments"),
        Entry("**/*.!{qB,ut,bt,sync}", "qBittorrent, uTorrent, BitTorrent and Resilio Sync download with this suffix"),
        Entry("**/.syncthing.*", "Syncthing downloads to .syncthing.name.tmp"),
        Entry("**/.dropbox.cache", "Dropbox downloads to this directory"),
        Entry("**/.owncloudsync*", "ownCloud and Nextcloud clients keep their state"),
        Entry("**/.sync_*.db*", "ownCloud and Nextcloud clients keep their state"),

        // Version control: thousands of small writes that are irrelevant to the files themselves.
        Entry("**/{.git,.hg,.svn,.bzr,.jj,_darcs,CVS}", "directories of version control systems"),

        // Files that operating systems and desktops create in directories.
        Entry("**/.DS_Store", "macOS stores the view settings of a directory"),
        Entry("**/._*", "macOS stores attributes on other file systems"),
        Entry("**/{.AppleDouble,.Spotlight-V100,.Trashes,.TemporaryItems,.fseventsd}", "system directories of macOS"),
        Entry("**/{Thumbs.db,ehthumbs.db,desktop.ini}", "Windows stores the view settings of a directory"),
        Entry("**/{$RECYCLE.BIN,System Volume Information}", "system directories of Windows"),
        Entry("**/.Trash-*", "the desktop's trash on other file systems"),
        Entry("**/.directory", "KDE stores the view settings of a directory"),
        Entry("**/lost+found", "fsck puts fragments here"),
        Entry("**/{@eaDir,#recycle,#snapshot}", "system directories of Synology"),
    ]

    /// The globs of the entries, which match leading dots.
    package static let globs = GlobSet(
        entries.compactMap { try? Glob($0.pattern, options: Glob.Options(matchesHidden: true)) })
}
