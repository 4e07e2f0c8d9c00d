import Glibc
import System
import Testing
import TestKit

/// Content handlers in the built program.
struct ContentHandlerTests {
    @Test func `secrets of a webhook appear in no log and no journal`() {
        withTempTree { tree in
            let root = tree.root
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: tell
                    path: in/*
                    existing: process
                    settle: 0
                    retry: { attempts: 1 }
                    action:
                      use: webhook
                      with:
                        url: http://127.0.0.1:1/hook/url-key?key=url-key
                        secret: ${env:SIGNING}
                        headers: { Authorization: "Bearer ${env:TOKEN}" }
                """)
            TestFile.write(tree.path("in/a"), "text")
            let variables = ["SIGNING": "signing-key", "TOKEN": "token-key"]
            func run(_ arguments: [String]) -> String {
                let program = RunningProgram.alight(arguments, in: root, environment: variables, output: "log")
                _ = program.wait()
                return program.output + program.error
            }
            var output = run(["run", "rules.yaml", "--once", "--journal", "journal.db", "--log-format", "json"])
            #expect(output.contains("http://127.0.0.1:1: "), "\(output)")
            output += run(["run", "rules.yaml", "--once", "--dry-run", "--journal", ":memory:"])
            #expect(output.contains("***"), "\(output)")
            output += run(["explain", "rules.yaml", "in/a"])
            output += run(["jobs", "--journal", "journal.db"])
            for name in TestFile.names(in: tree.root) where PathBytes(name).description.hasPrefix("journal.db") {
                output += TestFile.text(tree.root.appending(name)) ?? ""
            }
            #expect(output.contains("tell"))
            #expect(!output.contains("signing-key"))
            #expect(!output.contains("token-key"))
        }
    }

    @Test(.timeLimit(.minutes(10))) func `kill -9 at any time leaves only complete directories and archives`() {
        withTempTree { tree in
            let root = tree.root
            let count = 12
            for number in 0..<60 { TestFile.write(tree.path("src/f\(number)"), "content \(number)\n") }
            let list = TestFile.names(in: tree.path("src"))
            for number in 0..<count {
                let arguments = ["--create", "--file", "in/x\(number).tar", "-C", "src", "."]
                TestFile.makeDirectory(tree.path("in"))
                let made = RunningProgram("/bin/tar", arguments, in: tree.root, output: tree.path("tar"))
                #expect(made.wait() == 0, "\(made.error)")
            }
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: r
                    path: in/*
                    existing: process
                    settle: 0
                    concurrency: 2
                    retry: { attempts: 20, delay: 10ms }
                    action:
                      - { use: extract, with: { to: out/ } }
                      - { use: archive, with: { to: "packed/${name}.zip" } }
                """)
            func check() {
                for name in TestFile.names(in: root.appending("out")) {
                    if PathBytes(name).description.hasSuffix(".alight-tmp") { continue }
                    #expect(TestFile.names(in: root.appending("out").appending(name)) == list)
                }
            }
            func start(_ output: String) -> RunningProgram {
                let program = RunningProgram(
                    Places.alight, ["run", "rules.yaml", "--journal", "journal.db"], in: root,
                    output: root.appending(output))
                #expect(Deadline.wait { program.error.contains("ready: watching") || program.exitStatus() != nil })
                return program
            }
            for round in 0..<12 {
                let program = start("run")
                // The time of the kill is what varies here. No expectation depends on it.
                usleep(useconds_t(round * 2300 % 25_000))
                program.signal(SIGKILL)
                _ = program.wait()
                check()
            }
            let program = start("last")
            let directories = (0..<count).map { Array("x\($0)".utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
            let archives = (0..<count).map { Array("x\($0).tar.zip".utf8) }
                .sorted { $0.lexicographicallyPrecedes($1) }
            let isDone = Deadline.wait {
                TestFile.names(in: tree.path("out")) == directories
                    && TestFile.names(in: tree.path("packed")) == archives
            }
            #expect(isDone, "\(program.error)\(TestFile.names(in: tree.path("out")).map { PathBytes($0) })")
            check()
            #expect(program.stop() == 0)
            for name in archives {
                let tested = RunningProgram(
                    "/usr/bin/python3", ["-m", "zipfile", "-t", "packed/\(PathBytes(name))"], in: tree.root,
                    output: tree.path("zip"))
                #expect(tested.wait() == 0)
            }
        }
    }
}
