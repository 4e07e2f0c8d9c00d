import Glibc
import System
import Testing
import TestKit

/// Actions whose result does not fit on the disk.
@Suite(.enabled(if: SmallDisk.problem == nil, "\(SmallDisk.problem ?? "")"))
struct FullDiskTests {
    private static let actions = [
        #"{ use: copy, with: { to: "../disk/${name}" } }"#,
        #"{ use: copy, with: { to: "../disk/${name}", verify: true, durable: false } }"#,
        #"{ use: move, with: { to: "../disk/${name}" } }"#,
        #"{ use: archive, with: { to: "../disk/a.tar" } }"#, #"{ use: archive, with: { to: "../disk/a.zip" } }"#,
        #"{ use: extract, with: { to: "../disk/x" } }"#,
    ]

    @Test(arguments: actions)
    func `a result that does not fit is retried, and no part of it is left`(_ action: String) throws {
        withTempTree { tree in
            TestFile.write(
                tree.path("rules/rules.yaml"),
                """
                rules:
                  - name: full
                    path: ../in/*
                    settle: 100ms
                    existing: process
                    retry: false
                    action: \(action)

                """)
            TestFile.makeDirectory(tree.path("disk"))
            // Random bytes, which no archive can compress.
            var random: UInt64 = 1
            var bytes: [UInt8] = []
            for _ in 0..<(4 << 17) {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                withUnsafeBytes(of: random) { bytes.append(contentsOf: $0) }
            }
            TestFile.write(tree.path("in/a"), bytes)
            if action.contains("extract") {
                let made = RunningProgram(
                    "/usr/bin/tar", ["-cf", "packed", "-C", "in", "a"], in: tree.root, output: tree.path("tar"))
                #expect(made.wait() == 0)
                _ = rename(tree.path("packed").description, tree.path("in/a").description)
            }
            let words = SmallDisk.words(on: tree.path("disk"), options: "size=1m", script: ":")
            let line = #""$0" run --once --journal journal.db; echo "status $?"; ls -A disk"#
            let program = RunningProgram(
                "/usr/bin/env", words + ["sh", "-c", line, Places.alight.description], in: tree.root,
                environment: JournalCommand.environment, output: tree.path("output"))
            #expect(program.wait() == 0)
            let lines = program.output.split(separator: "\n")
            #expect(lines.first?.contains("No space left on device") == true, "\(program.output)\(program.error)")
            let there = lines.drop { !$0.hasPrefix("status ") }.dropFirst()
            #expect(Array(there) == [], "\(program.output)")
            #expect(TestFile.exists(tree.path("in/a")))
        }
    }
}
