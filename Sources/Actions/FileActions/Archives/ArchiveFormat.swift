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
        let name = path.lastComponent.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
        func ends(_ words: [String]) -> Bool {
            words.contains { name.count > $0.utf8.count && name.suffix($0.utf8.count).elementsEqual($0.utf8) }
        }
        guard let format = Self.allCases.first(where: { ends($0.endings) }) else { return nil }
        self = format
    }

    private var endings: [String] {
        switch self {
        case .zip: [".zip"]
        case .tar: [".tar"]
        case .tarGz: [".tar.gz", ".tgz"]
        case .tarXz: [".tar.xz", ".txz"]
        case .tarZst: [".tar.zst", ".tzst"]
        case .tarBz2: [".tar.bz2", ".tbz2", ".tbz"]
        }
    }

    /// Returns a name without its archive extension: `a` for `a.tar.gz`; never empty, and not `.` or `..`.
    static func stem(of name: ArraySlice<UInt8>) -> [UInt8] {
        let lower = name.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
        let endings = allCases.flatMap(\.endings).sorted { $0.utf8.count > $1.utf8.count } + [".7z"]
        let ending = endings.first { lower.suffix($0.utf8.count).elementsEqual($0.utf8) }
        let stem = Array(name.dropLast(ending?.utf8.count ?? 0))
        return stem.allSatisfy { $0 == .dot } ? Array(name) + Array("-files".utf8) : stem
    }

    var container: cla_format { self == .zip ? CLA_ZIP : CLA_TAR }

    var filter: cla_filter {
        switch self {
        case .zip, .tar: CLA_PLAIN
        case .tarGz: CLA_GZIP
        case .tarXz: CLA_XZ
        case .tarZst: CLA_ZSTD
        case .tarBz2: CLA_BZIP2
        }
    }

    /// The reason why archives cannot be written or read; nil if they can.
    static var problem: String? {
        cla_load().map { "libarchive can't be loaded (\(String(cString: $0))); install the package libarchive13" }
    }
}
