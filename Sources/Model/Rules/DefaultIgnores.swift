package import Globbing

/// The names that rules ignore by default, unless they set `ignore_defaults: false`: temporary and private files of
/// programs.
///
/// A name is in this list if a program creates it before renaming it, or stores its own state in it. Names that a user
/// may have chosen are not: `*.bak`, `*.old` and `*.log` are ordinary files.
package enum DefaultIgnores {
    /// The globs relative to the root, and the programs that create such names.
    package static let entries: [(pattern: String, reason: String)] = [
        // Editors: swap, lock and backup files.
        ("**/.*.sw[a-px]", "Vim and nano keep unsaved changes in .name.swp, then .swo, and so on"),
        ("**/*~", "Vim, Emacs, gedit and others store the previous version as name~"),
        ("**/#*#", "Emacs auto-saves to #name#"),
        ("**/.#*", "Emacs locks a file that is being edited with the link .#name"),
        ("**/.*.kate-swp", "Kate keeps unsaved changes"),
        ("**/.~lock.*#", "LibreOffice locks a document that is open"),
        ("**/~$*", "Microsoft Office marks the owner of an open document"),
        ("**/.goutputstream-*", "GNOME programs write here and rename"),
        ("**/*___jb_{tmp,old}___", "JetBrains editors write here and rename"),

        // Temporary names that are renamed when the content is complete.
        ("**/*.{tmp,temp}", "a common extension of files that are being written"),
        ("**/.*.alight-tmp", "Alight itself copies to .name.alight-tmp and renames"),
        ("**/.~tmp~", "rsync --delay-updates collects files here"),
        ("**/.rsync-partial", "rsync --partial-dir stores interrupted transfers here"),
        ("**/.nfs*", "NFS keeps a deleted file that is still open"),
        ("**/.fuse_hidden*", "FUSE keeps a deleted file that is still open"),

        // Downloads and transfers in progress.
        ("**/*.part", "Firefox, KDE, ownCloud and others download to name.part"),
        ("**/*.crdownload", "Chrome, Chromium and Edge download to name.crdownload"),
        ("**/*.download", "Safari and GNOME Web download to name.download"),
        ("**/*.opdownload", "Opera downloads to name.opdownload"),
        ("**/*.partial", "rclone and older browsers transfer to name.partial"),
        ("**/*.filepart", "WinSCP transfers to name.filepart"),
        ("**/*.aria2", "aria2 stores the state of a download next to it"),
        ("**/*.ytdl", "yt-dlp stores the state of a download next to it"),
        ("**/*.part-Frag*", "yt-dlp downloads in fragments"),
        ("**/*.!{qB,ut,bt,sync}", "qBittorrent, uTorrent, BitTorrent and Resilio Sync download with this suffix"),
        ("**/.syncthing.*", "Syncthing downloads to .syncthing.name.tmp"),
        ("**/.dropbox.cache", "Dropbox downloads to this directory"),
        ("**/.owncloudsync*", "ownCloud and Nextcloud clients keep their state"),
        ("**/.sync_*.db*", "ownCloud and Nextcloud clients keep their state"),

        // Version control: thousands of small writes that are irrelevant to the files themselves.
        ("**/{.git,.hg,.svn,.bzr,.jj,_darcs,CVS}", "directories of version control systems"),

        // Files that operating systems and desktops create in directories.
        ("**/.DS_Store", "macOS stores the view settings of a directory"),
        ("**/._*", "macOS stores attributes on other file systems"),
        ("**/{.AppleDouble,.Spotlight-V100,.Trashes,.TemporaryItems,.fseventsd}", "system directories of macOS"),
        ("**/{Thumbs.db,ehthumbs.db,desktop.ini}", "Windows stores the view settings of a directory"),
        ("**/{$RECYCLE.BIN,System Volume Information}", "system directories of Windows"),
        ("**/.Trash-*", "the desktop's trash on other file systems"),
        ("**/.directory", "KDE stores the view settings of a directory"),
        ("**/lost+found", "fsck puts fragments here"),
        ("**/{@eaDir,#recycle,#snapshot}", "system directories of Synology"),
    ]

    /// The further globs of rules with `tail`.
    package static let followingEntries: [(pattern: String, reason: String)] = [
        ("**/*.{gz,bz2,xz,zst,lz4,lzma,lzo,Z,zip,7z}", "a compressed file has no text, such as a rotated log")
    ]

    /// The globs of the entries, which match leading dots.
    package static let globs = globs(of: entries)
    /// The globs of rules with `tail`.
    package static let followingGlobs = globs(of: entries + followingEntries)

    private static func globs(of entries: [(pattern: String, reason: String)]) -> GlobSet {
        GlobSet(entries.compactMap { try? Glob($0.pattern, options: Glob.Options(matchesHidden: true)) })
    }
}
