import Glibc
import System
import Testing
import TestKit

/// Files that are copied and moved while the program is killed repeatedly.
struct FileKillTests {
    /// The content of each file encodes its number and length, so an incomplete file is detected.
    private static func content(_ number: Int) -> [UInt8] {
        let line = Array("file \(number)\n".utf8)
        var bytes: [UInt8] = []
        while bytes.count < (256 << 10) + number * 1000 { bytes += line }
        return bytes
    }

    @Test(.timeLimit(.minutes(10)), arguments: ["move", "copy"])
    func `kill -9 at any time leaves each file complete, once, and nothing else`(action: String) throws {
        try withTempTree { tree in
            var template = Array("/dev/shm/alight-kill-XXXXXX".utf8CString)
            try #require(mkdtemp(&template) != nil)
            let memory = PathBytes(template.dropLast().map { UInt8(bitPattern: $0) })
            defer { TestFile.removeTree(memory) }
            let count = 60
            let contents = (0..<count).map(Self.content)
            for number in 0..<count { TestFile.write(memory.appending("in/f\(number)"), contents[number]) }
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: r
                    path: \(memory)/in/*
                    existing: process
                    settle: 0
                    concurrency: 3
                    retry: { attempts: 100, delay: 10ms }
                    action: { use: \(action), with: { to: out/ } }
                """)
            let out = tree.path("out")
            func check() {
                for name in TestFile.names(in: out) {
                    let text = PathBytes(name).description
                    if text.hasSuffix(".alight-tmp") { continue }
                    let number = Int(text.dropFirst())
                    #expect(
                        number.map { TestFile.read(out.appending(name)) == contents[$0] } == true,
                        "\(text)")
                }
            }
            var lives = 0
            for round in 0..<30 {
                let program = RunningProgram.alight(["run", "rules.yaml", "--journal", "journal.db"], in: tree.root)
                #expect(Deadline.wait { program.error.contains("ready: watching") || program.exitStatus() != nil })
                // The time of the kill is what varies here. No expectation depends on it.
                usleep(useconds_t(round * 1700 % 25_000))
                program.signal(SIGKILL)
                _ = program.wait()
                lives += 1
                check()
                if TestFile.names(in: out).count >= count { break }
            }
            let program = RunningProgram.alight(
                ["run", "rules.yaml", "--journal", "journal.db"], in: tree.root, output: "last")
            let names = Set((0..<count).map { Array("f\($0)".utf8) })
            let isDone = Deadline.wait {
                Set(TestFile.names(in: out)) == names
                    && (action == "copy" || TestFile.names(in: memory.appending("in")).isEmpty)
            }
            let found = TestFile.names(in: out).map { PathBytes($0).description }
            #expect(isDone, "after \(lives) lives: \(found) \(program.output)\(program.error)")
            #expect(program.waitUntilReady())
            #expect(program.stop() == 0)
            check()
            if action == "copy" { #expect(Set(TestFile.names(in: memory.appending("in"))) == names) }
        }
    }
}
