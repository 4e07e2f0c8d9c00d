import CAlightLinux
import Glibc
import System

/// The reason that the kernel does not report writers here; nil if it does.
package let writerProblem: String? = {
    let queue = cal_fanotify_open(1)
    guard queue >= 0 else {
        return "the kernel does not report writers to this user: \(SystemError(errno: -queue))"
    }
    defer { close(queue) }
    let directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return "there is no /tmp" }
    defer { close(directory) }
    var error = cal_fanotify_mark(queue, directory, 1, 0)
    if error != 0 { error = cal_fanotify_mark(queue, directory, 0, 0) }
    guard error == 0 else { return "the file system of /tmp does not report writers" }
    var key = [UInt8](repeating: 0, count: Int(CAL_DIRECTORY_KEY_SIZE))
    return cal_directory_key_descriptor(directory, &key) > 0 ? nil : "directories of /tmp have no handles"
}()
