/// The error of a system call, see errno(3).
package struct SystemError: Error {
    package var errno: Int32

    package init(errno: Int32) { self.errno = errno }
}
