import Glibc
package import System

extension TestFile {
    private typealias SetAttribute =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32
        ) -> Int32

    /// Sets an extended attribute without following a link.
    ///
    /// Returns false if the file system refuses.
    ///
    /// Swift's Glibc module lacks the call, and Alight itself never makes it.
    package static func setAttribute(_ path: PathBytes, _ name: PathBytes, _ value: [UInt8]) -> Bool {
        guard let symbol = dlsym(nil, "lsetxattr") else { preconditionFailure("glibc has lsetxattr") }
        let set = unsafeBitCast(symbol, to: SetAttribute.self)
        return path.withCString { path in
            name.withCString { name in value.withUnsafeBytes { set(path, name, $0.baseAddress, $0.count, 0) } } == 0
        }
    }
}
