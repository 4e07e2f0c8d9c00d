import CLibCrypto
import PluginProtocol

/// An algorithm of libcrypto.
enum Algorithm: String {
    case sha256, sha512, sha1, md5
}

/// A checksum that is computed block by block.
final class Digest {
    private let context: OpaquePointer

    init(_ algorithm: Algorithm) throws {
        guard let context = EVP_MD_CTX_new() else { throw PluginFailure.retry("out of memory") }
        self.context = context
        let kind =
            switch algorithm {
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            case .sha1: EVP_sha1()
            case .md5: EVP_md5()
            }
        guard EVP_DigestInit_ex(context, kind, nil) == 1 else {
            throw PluginFailure.failed("libcrypto doesn't compute \(algorithm.rawValue) here", code: "no-algorithm")
        }
    }

    deinit { EVP_MD_CTX_free(context) }

    func add(_ block: [UInt8]) throws {
        guard EVP_DigestUpdate(context, block, block.count) == 1 else { throw PluginFailure.retry("out of memory") }
    }

    func hexadecimal() throws -> String {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_DigestFinal_ex(context, &bytes, &count) == 1 else { throw PluginFailure.retry("out of memory") }
        return bytes.prefix(Int(count)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
