import CLibArchive
import System

/// An archive format that can be written.
enum ArchiveFormat: String, CaseIterable {
    case zip
    case tar
    case tarGz = "tar.gz"
    case tarXz = "tar.xz"
    case tarZst = "tar.zst"
    case tarBz2 = "tar.bz2"

    /// Returns the format for the extension of a path; nil if it is unknown.
    init?(of path: PathBytes) {
        let name = path.lastComponent
        let format = Self.allCases.first { format in
            format.traits.endings.contains { $0.utf8.count < name.count && Self.ends(name, with: $0) }
        }
        guard let format else { return nil }
        self = format
    }

    /// Returns a name without its archive extension: `a` for `a.tar.gz`; never empty, and not `.` or `..`.
    static func stem(of name: ArraySlice<UInt8>) -> [UInt8] {
        let endings = allCases.flatMap(\.traits.endings).sorted { $0.utf8.count > $1.utf8.count } + [".7z"]
        let ending = endings.first { ends(name, with: $0) }
        let stem = Array(name.dropLast(ending?.utf8.count ?? 0))
        return stem.allSatisfy { $0 == .dot } ? Array(name) + Array("-files".utf8) : stem
    }

    private static func ends(_ name: ArraySlice<UInt8>, with ending: String) -> Bool {
        String(decoding: name.suffix(ending.utf8.count), as: UTF8.self).lowercased() == ending
    }

    /// The extensions, and the format as libarchive knows it.
    var traits: (endings: [String], container: cla_format, filter: cla_filter) {
        switch self {
        case .zip: ([".zip"], CLA_ZIP, CLA_PLAIN)
        case .tar: ([".tar"], CLA_TAR, CLA_PLAIN)
        case .tarGz: ([".tar.gz", ".tgz"], CLA_TAR, CLA_GZIP)
        case .tarXz: ([".tar.xz", ".txz"], CLA_TAR, CLA_XZ)
        case .tarZst: ([".tar.zst", ".tzst"], CLA_TAR, CLA_ZSTD)
        case .tarBz2: ([".tar.bz2", ".tbz2", ".tbz"], CLA_TAR, CLA_BZIP2)
        }
    }

    /// Loads libarchive, without which archives can be neither written nor read.
    static func loadLibrary() throws(FileError) {
        guard let reason = cla_load() else { return }
        throw .failed(
            "libarchive can't be loaded (\(String(cString: reason))); install the package libarchive13",
            code: "no-library")
    }
}
