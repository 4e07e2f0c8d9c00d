import CAlightLinux
import Glibc

/// The reason that the kernel does not report writers here; nil if it does.
package let authorProblem: String? = {
    let queue = cal_fanotify_open(1)
    guard queue >= 0 else { return "this user is not told who writes: \(String(cString: strerror(-queue)))" }
    defer { close(queue) }
    let folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { return "there is no /tmp" }
    defer { close(folder) }
    var error = cal_fanotify_mark(queue, folder, 1, 0)
    if error != 0 { error = cal_fanotify_mark(queue, folder, 0, 0) }
    guard error == 0 else { return "the file system of /tmp does not say who writes" }
    var key = [UInt8](repeating: 0, count: Int(CAL_FOLDER_KEY_SIZE))
    return cal_folder_key_descriptor(folder, &key) > 0 ? nil : "folders of /tmp have no handles"
}()
