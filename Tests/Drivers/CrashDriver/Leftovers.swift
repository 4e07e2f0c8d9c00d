import Glibc
import System
import TestKit

/// Files and processes that must not remain after Alight has exited.
struct Leftovers {
    let directory: PathBytes

    func findings() -> [Finding] { temporaries() + scratch() + processes() }

    private func temporaries() -> [Finding] {
        // A copy that replaces another file needs a temporary name, which a kill leaves behind.
        TreeContents.temporaries(directory.appending("hot"))
            .map { Finding(text: "a temporary file remains: \($0)") }
    }

    /// Finds scratch directories; Alight removes its own when it exits, and those of killed instances.
    private func scratch() -> [Finding] {
        let base = directory.appending(".run")
        return TestFile.names(in: base).filter { $0.starts(with: "run-".utf8) }
            .map { Finding(text: "a scratch directory remains: \(base.appending($0))") }
    }

    /// Finds recorders by the path of this run's log in their arguments.
    private func processes() -> [Finding] {
        let mark = directory.appending("runs.log").description
        return TestFile.names(in: "/proc").compactMap { name in
            let process = String(decoding: name, as: UTF8.self)
            guard Int32(process) != nil, let line = TestFile.read(PathBytes("/proc/\(process)/cmdline")) else {
                return nil
            }
            let text = String(decoding: line.map { $0 == 0 ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
            return text.contains(mark) ? Finding(text: "process \(process) still runs: \(text)") : nil
        }
    }
}
