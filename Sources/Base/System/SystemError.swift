import Glibc

/// The error of a system call, see errno(3).
package struct SystemError: Error, CustomStringConvertible {
    package var errno: Int32

    package init(errno: Int32) { self.errno = errno }

    /// The message of strerror(3), such as `No such file or directory`.
    package var description: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, strerror_r(errno, base, buffer.count) != ERANGE else { return "" }
            return String(cString: base)
        }
    }
}
