import CTestKit
import Glibc
import System
import TestKit

/// The child processes of this process.
enum Descendants {
    /// Makes this process the parent of orphaned descendants.
    static func adopt() { ctk_become_subreaper() }

    static func children() -> [pid_t] {
        let text = TestFile.read(PathBytes("/proc/self/task/\(getpid())/children")) ?? []
        return String(decoding: text, as: UTF8.self).split(separator: " ").compactMap { pid_t($0) }
    }
}
