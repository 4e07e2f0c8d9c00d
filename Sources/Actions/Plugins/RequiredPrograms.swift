import ActionAPI
import PluginProtocol
import Rules
import System

/// Checks which of the programs that a plugin requires are missing.
enum RequiredPrograms {
    /// Returns one problem for all programs that are missing; nil when none is.
    static func problem(with plugin: InstalledPlugin) -> Problem? {
        let missing = (plugin.description.requires ?? []).map(Requirement.init).filter { requirement in
            !requirement.program.isEmpty && ExecutableCheck.find(requirement.program) == nil
        }
        guard !missing.isEmpty else { return nil }
        let names = missing.map { "'\($0.program)'" }.joined(separator: ", ")
        let noun = missing.count == 1 ? "the program \(names), which is" : "the programs \(names), which are"
        return Problem("\(plugin.title) needs \(noun) not in \(Action.searchPath)", help: help(for: missing))
    }

    /// Returns the required programs that are installed.
    static func paths(of plugin: InstalledPlugin) -> [PathBytes] {
        (plugin.description.requires ?? []).compactMap { ExecutableCheck.find(Requirement($0).program) }
    }

    private static func help(for missing: [Requirement]) -> String {
        var packages: [String] = []
        for case let package? in missing.map(\.package) where !packages.contains(package) { packages.append(package) }
        let unknown = missing.filter { $0.package == nil }.map { "'\($0.program)'" }.joined(separator: ", ")
        let advice = "install \(unknown), or put a link to it into /usr/local/bin"
        if packages.isEmpty { return advice }
        return "run: apt install \(packages.joined(separator: " "))" + (unknown.isEmpty ? "" : "; \(advice)")
    }

    /// An element of `requires`: `vipsthumbnail`, or `vipsthumbnail (libvips-tools)`.
    private struct Requirement {
        var program: String
        /// The Debian package, if the plugin or the table specifies it.
        var package: String?

        init(_ text: String) {
            let words = text.split(separator: " ", maxSplits: 1)
            program = words.first.map(String.init) ?? ""
            let named = words.dropFirst().first.map { $0.filter { !"() ".contains($0) } }
            package = named.flatMap { $0.isEmpty ? nil : $0 } ?? RequiredPrograms.packages[program]
        }
    }

    /// The Debian packages of programs that plugins often require.
    private static let packages = [
        "7z": "p7zip-full", "awk": "gawk", "bsdtar": "libarchive-tools", "bzip2": "bzip2", "clamdscan": "clamdscan",
        "clamscan": "clamav", "convert": "imagemagick", "curl": "curl", "exiftool": "libimage-exiftool-perl",
        "ffmpeg": "ffmpeg", "ffprobe": "ffmpeg", "file": "file", "git": "git", "gpg": "gpg", "gs": "ghostscript",
        "heif-convert": "libheif-examples", "identify": "imagemagick", "inotifywait": "inotify-tools", "jq": "jq",
        "lp": "cups-client", "magick": "imagemagick", "mogrify": "imagemagick", "mutool": "mupdf-tools",
        "ocrmypdf": "ocrmypdf", "pandoc": "pandoc", "pdfinfo": "poppler-utils", "pdftoppm": "poppler-utils",
        "pdftotext": "poppler-utils", "perl": "perl", "php": "php-cli", "python3": "python3", "qpdf": "qpdf",
        "rclone": "rclone", "rsync": "rsync", "ruby": "ruby", "soffice": "libreoffice", "sox": "sox",
        "sqlite3": "sqlite3", "ssh": "openssh-client", "tesseract": "tesseract-ocr", "unar": "unar", "unzip": "unzip",
        "vips": "libvips-tools", "vipsthumbnail": "libvips-tools", "xz": "xz-utils", "zip": "zip", "zstd": "zstd",
    ]
}
