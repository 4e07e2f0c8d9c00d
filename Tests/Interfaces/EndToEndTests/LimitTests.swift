import Glibc
import System
import Testing
import TestKit

/// The program with exhausted system resources, or with output that is not read.
struct LimitTests {
    private static let rules = """
        rules:
          - name: copies
            path: in/*
            settle: 100ms
            existing: process
            concurrency: 4
            retry: { attempts: 1 }
            action: { exec: [cp, "${path}", "${root}/../out/"] }
        """

    private static func run(_ tree: borrowing TemporaryTree, _ script: String) -> RunningProgram {
        RunningProgram("/bin/sh", ["-c", script, Places.alight.description], in: tree.root, output: tree.path("run"))
    }

    private static func prepare(_ tree: borrowing TemporaryTree, _ rules: String = Self.rules, files: Int) {
        TestFile.write(tree.path("rules.yaml"), rules)
        TestFile.makeDirectory(tree.path("out"))
        TestFile.makeDirectory(tree.path("in"))
        for number in 0..<files { TestFile.write(tree.path("in/\(number)"), "x") }
    }

    @Test func `a limit of open files that is too low is an error at the start`() {
        withTempTree { tree in
            Self.prepare(tree, files: 0)
            for limit in [8, 40, 200] {
                let program = Self.run(tree, "ulimit -n \(limit); exec \"$0\" check rules.yaml")
                #expect(program.wait() == 1)
                #expect(
                    program.error.hasPrefix("error: the limit of open files is \(limit), and 256 are needed\n"),
                    "\(program.error)")
            }
        }
    }

    @Test func `the lowest limit of open files is enough for four programs at once`() {
        withTempTree { tree in
            Self.prepare(tree, files: 20)
            let program = Self.run(
                tree, "ulimit -n 256; exec \"$0\" run rules.yaml --once --jobs 4 --journal journal.db")
            #expect(program.wait() == 0, "\(program.error)")
            #expect(TestFile.names(in: tree.path("out")).count == 20, "\(program.output)")
        }
    }

    @Test func `without proc the program reports an error instead of an empty command line`() {
        withTempTree { tree in
            Self.prepare(tree, files: 0)
            let program = Self.run(
                tree,
                "exec unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /proc && exec \"$0\" check rules.yaml' \"$0\""
            )
            #expect(program.wait() == 1)
            #expect(program.error.hasPrefix("error: cannot read '/proc/self/cmdline'"), "\(program.error)")
            #expect(program.output.isEmpty)
        }
    }

    @Test func `the file size limit fails the job and not the program`() {
        withTempTree { tree in
            Self.prepare(
                tree,
                Self.rules.replacing(
                    "exec: [cp, \"${path}\", \"${root}/../out/\"]", with: "use: copy, with: { to: out/ }"),
                files: 1)
            TestFile.write(tree.path("in/large"), String(repeating: "x", count: 1 << 20))
            let program = Self.run(
                tree, "ulimit -f 64; exec \"$0\" run rules.yaml --once --journal :memory:")
            #expect(program.wait() == 5, "\(program.output)\(program.error)")
            #expect(TestFile.names(in: tree.path("out")).count == 1)
        }
    }

    @Test func `unread output is dropped and blocks nothing`() {
        withTempTree { tree in
            let message = String(repeating: "m", count: 4_000)
            Self.prepare(
                tree,
                Self.rules.replacing(
                    "{ exec: [cp, \"${path}\", \"${root}/../out/\"] }",
                    with: """

                              - { use: copy, with: { to: out/ } }
                              - { use: log, with: { message: "\(message)" } }
                        """), files: 1_500)
            #expect(mkfifo(tree.path("fifo").description, 0o600) == 0)
            let reader = open(tree.path("fifo").description, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            defer { close(reader) }
            let program = Self.run(tree, "exec \"$0\" run rules.yaml --journal :memory: >fifo")
            #expect(Deadline.wait { TestFile.names(in: tree.path("out")).count == 1_500 }, "\(program.error)")
            #expect(
                Deadline.wait {
                    program.error.contains("warning: standard output is not being read: further lines are dropped")
                }, "\(program.error)")
            program.signal(SIGTERM)
            #expect(program.wait(within: .seconds(60)) == 0)
        }
    }

    @Test func `a reader that continues gets the waiting lines, and the number of dropped ones`() {
        withTempTree { tree in
            let message = String(repeating: "m", count: 4_000)
            Self.prepare(
                tree,
                Self.rules.replacing(
                    "exec: [cp, \"${path}\", \"${root}/../out/\"]", with: "use: log, with: { message: \"\(message)\" }"),
                files: 1_500)
            #expect(mkfifo(tree.path("fifo").description, 0o600) == 0)
            let reader = open(tree.path("fifo").description, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            defer { close(reader) }
            let program = Self.run(tree, "exec \"$0\" run rules.yaml --journal :memory: >fifo")
            #expect(Deadline.wait { program.error.contains("is not being read") }, "\(program.error)")
            var lines = 0
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            #expect(
                Deadline.wait {
                    while case let count = read(reader, &buffer, buffer.count), count > 0 {
                        lines += buffer[..<count].count { $0 == 0x0A }
                    }
                    return program.error.contains("for standard output were dropped")
                }, "\(program.error)")
            #expect(lines > 900)
            program.signal(SIGTERM)
            #expect(program.wait(within: .seconds(60)) == 0)
        }
    }
}
