import FileEvents
import Glibc
import TestKit

/// What must not be there when Alight has ended.
struct Leftovers {
    let folder: PathBytes
    let log: RunLog
    /// Whether the journal may have forgotten jobs that ran, as when the power fails.
    let mayForget: Bool

    func findings() -> [Finding] { temporaries() + scratch() + processes() }

    private func temporaries() -> [Finding] {
        // A copy that takes another file's place needs a name for a moment, and a kill in it leaves that behind.
        TreeContents.temporaries(folder.appending("hot"))
            .map { Finding(text: "a temporary file was left: \($0)") }
    }

    /// The folders that attempts work in; none is left when this has looked.
    ///
    /// Where the power fails, nothing is left of them, for they lie in memory.
    private func scratch() -> [Finding] {
        let base: PathBytes = geteuid() == 0 ? "/run/alight" : PathBytes("/tmp/alight-\(geteuid())")
        let jobs = Set(log.runs.map(\.job))
        var findings: [Finding] = []
        // Each Alight has a folder of its own in there.
        for folder in TestFile.names(in: base).map(base.appending) {
            for name in TestFile.names(in: folder) {
                let job = String(decoding: name, as: UTF8.self)
                guard jobs.contains(job) else { continue }
                TestFile.removeTree(folder.appending(name))
                findings.append(Finding(text: "a scratch folder was left: \(folder)/\(job)", job: job))
            }
        }
        return mayForget ? [] : findings
    }

    /// The recorders have this play's folder in their arguments.
    private func processes() -> [Finding] {
        let mark = folder.appending("runs.log").description
        return TestFile.names(in: "/proc").compactMap { name in
            let process = String(decoding: name, as: UTF8.self)
            guard Int32(process) != nil, let line = TestFile.read(PathBytes("/proc/\(process)/cmdline")) else {
                return nil
            }
            let text = String(decoding: line.map { $0 == 0 ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
            return text.contains(mark) ? Finding(text: "process \(process) is still there: \(text)") : nil
        }
    }
}
