import CLibCrypto
import CLibXXHash

/// A message digest of libcrypto or xxHash, computed over blocks of bytes; used by one thread.
package final class Digest {
    /// An algorithm, named as in the names of checksum files.
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha256, sha512, sha1, md5
        /// BLAKE2b with 512 bits, as computed by `b2sum`.
        case b2
        /// XXH3 with 128 bits: very fast, but no protection against tampering.
        case xxh128
    }

    private enum Context {
        case crypto(OpaquePointer)
        case xxHash(OpaquePointer)
    }

    private let context: Context

    /// Creates a digest of no bytes; nil if libcrypto does not provide the algorithm, as in FIPS mode.
    package init?(_ algorithm: Algorithm) {
        if algorithm == .xxh128 {
            guard let state = XXH3_createState() else { return nil }
            _ = XXH3_128bits_reset(state)
            context = .xxHash(state)
        } else {
            guard let state = EVP_MD_CTX_new() else { return nil }
            context = .crypto(state)
            let function = EVP_get_digestbyname(algorithm == .b2 ? "blake2b512" : algorithm.rawValue)
            guard EVP_DigestInit_ex(state, function, nil) == 1 else { return nil }
        }
    }

    deinit {
        switch context {
        case .crypto(let state): EVP_MD_CTX_free(state)
        case .xxHash(let state): XXH3_freeState(state)
        }
    }

    package func add(_ bytes: UnsafeRawBufferPointer) {
        switch context {
        case .crypto(let state): EVP_DigestUpdate(state, bytes.baseAddress, bytes.count)
        case .xxHash(let state): _ = XXH3_128bits_update(state, bytes.baseAddress, bytes.count)
        }
    }

    /// Returns the digest of all bytes that were added; call it once.
    package func finish() -> [UInt8] {
        switch context {
        case .crypto(let state):
            var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var length: UInt32 = 0
            EVP_DigestFinal_ex(state, &digest, &length)
            return Array(digest.prefix(Int(length)))
        case .xxHash(let state):
            let hash = XXH3_128bits_digest(state)
            return [hash.high64, hash.low64].flatMap { half in
                (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) }
            }
        }
    }

    /// Returns the HMAC-SHA256 of a message, see HMAC(3).
    package static func hmacSHA256(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        // HMAC(3) uses the key of the previous call if the address is nil, as that of an empty array may be.
        let padded = key.isEmpty ? [0] : key
        _ = HMAC(EVP_sha256(), padded, Int32(key.count), message, message.count, &digest, &length)
        return Array(digest.prefix(Int(length)))
    }
}

extension String {
    /// Creates the lower-case hexadecimal digits of bytes.
    package init(hexadecimal bytes: [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        self.init(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
