import CLibCrypto
import CLibXXHash
import FileEvents
import Glibc
import System

/// A checksum algorithm, named as in the names of checksum files.
enum Checksum: String, CaseIterable {
    case sha256, sha512, sha1, md5
    /// BLAKE2b with 512 bits, as computed by `b2sum`.
    case b2
    /// XXH3 with 128 bits: very fast, but no protection against tampering.
    case xxh128

    /// The suffix that a sidecar adds to the name of its file.
    var suffix: String { ".\(rawValue)" }
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

    /// Whether the name is that of a file with checksums of any kind.
    static func isList(_ path: PathBytes) -> Bool {
        let name = path.lastComponent
        return allCases.contains { sum in
            name.elementsEqual(sum.listName.utf8)
                || name.count > sum.suffix.utf8.count
                    && name.suffix(sum.suffix.utf8.count).elementsEqual(sum.suffix.utf8)
        }
    }

    private static let blockSize = 1 << 18

    /// Reads an open file from start to end and returns the checksum in hexadecimal digits.
    func reading(of file: OpenFile, _ path: PathBytes, within limit: WorkLimit) throws(FileFault) -> String {
        guard let state = DigestState(self) else {
            throw FileFault(ENOTSUP, "this system's libcrypto makes no \(rawValue)")
        }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
        defer { block.deallocate() }
        while true {
            try limit.check("reading")
            let count = read(file.descriptor, block.baseAddress, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw FileFault(errno, "cannot read '\(path)'") }
            if count == 0 { return Hexadecimal.text(state.finish()) }
            state.add(UnsafeRawBufferPointer(rebasing: block[..<count]))
        }
    }
}

/// A checksum computation in progress.
private final class DigestState {
    private enum Kind {
        case crypto(OpaquePointer)
        case xxh(OpaquePointer)
    }

    private let kind: Kind

    init?(_ sum: Checksum) {
        let algorithm: OpaquePointer?
        switch sum {
        case .xxh128:
            guard let state = XXH3_createState() else { return nil }
            _ = XXH3_128bits_reset(state)
            kind = .xxh(state)
            return
        case .sha256: algorithm = EVP_sha256()
        case .sha512: algorithm = EVP_sha512()
        case .sha1: algorithm = EVP_sha1()
        case .md5: algorithm = EVP_md5()
        case .b2: algorithm = EVP_blake2b512()
        }
        guard let context = EVP_MD_CTX_new() else { return nil }
        kind = .crypto(context)
        // A system that permits only some algorithms may refuse others.
        guard EVP_DigestInit_ex(context, algorithm, nil) == 1 else { return nil }
    }

    deinit {
        switch kind {
        case .crypto(let context): EVP_MD_CTX_free(context)
        case .xxh(let state): XXH3_freeState(state)
        }
    }

    func add(_ bytes: UnsafeRawBufferPointer) {
        switch kind {
        case .crypto(let context): EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        case .xxh(let state): _ = XXH3_128bits_update(state, bytes.baseAddress, bytes.count)
        }
    }

    func finish() -> [UInt8] {
        switch kind {
        case .crypto(let context):
            var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var length: UInt32 = 0
            EVP_DigestFinal_ex(context, &digest, &length)
            return Array(digest.prefix(Int(length)))
        case .xxh(let state):
            let hash = XXH3_128bits_digest(state)
            return [hash.high64, hash.low64].flatMap { half in
                (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) }
            }
        }
    }
}

enum Hexadecimal {
    static func text(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
