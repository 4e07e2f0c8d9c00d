import ActionAPI
import Digests
import Glibc
import System

typealias Checksum = Digest.Algorithm

extension Checksum {
    /// The name of the file with the checksums of a directory.
    var listName: String { "\(rawValue.uppercased())SUMS" }
    /// The number of hexadecimal digits.
    var digits: Int {
        switch self {
        case .md5, .xxh128: 32
        case .sha1: 40
        case .sha256: 64
        case .sha512, .b2: 128
        }
    }

    /// Whether the name is that of a list of any kind.
    static func isList(_ path: PathBytes) -> Bool {
        allCases.contains { path.lastComponent.elementsEqual($0.listName.utf8) }
    }

    private static let blockSize = 1 << 18

    /// Reads an open file from start to end and returns the checksum in hexadecimal digits.
    func reading(of file: OpenFile, _ path: PathBytes, within limit: WorkLimit) throws(FileError) -> String {
        guard let digest = Digest(self) else {
            throw FileError(ENOTSUP, "this system's libcrypto does not support \(rawValue)")
        }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
        defer { block.deallocate() }
        var offset: Int64 = 0
        while true {
            try limit.check("reading")
            let count = FileIO.read(file.descriptor, into: block[...], at: offset)
            guard count >= 0 else { throw FileError(errno, "cannot read '\(path)'") }
            if count == 0 { return String(hexadecimal: digest.finish()) }
            digest.add(UnsafeRawBufferPointer(rebasing: block[..<count]))
            offset += Int64(count)
        }
    }
}
