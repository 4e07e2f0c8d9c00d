import Glibc
import System
import Testing
import TestKit

/// A journal on a full disk, or on a disk that cannot be written.
///
/// The disk is a small file system in a mount namespace of the program.
@Suite(.enabled(if: SmallDisk.problem == nil, "\(SmallDisk.problem ?? "")"))
struct JournalDiskTests {
    private static func start(
        _ tree: borrowing TemporaryTree, as output: String = "run", options: String = "size=2m",
        script: String = ":"
    ) -> RunningProgram {
        TestFile.makeDirectory(tree.path("in"))
        TestFile.makeDirectory(tree.path("disk"))
        TestFile.write(tree.path("rules.yaml"), JournalFileTests.rules)
        let words =
            SmallDisk.words(on: tree.path("disk"), options: options, script: script)
            + [Places.alight.description, "run", "rules.yaml", "--journal", "disk/journal.db"]
        return RunningProgram("/usr/bin/env", words, in: tree.root, output: tree.path(output))
    }

    /// Returns the path of the disk from outside the namespace.
    private static func disk(_ tree: borrowing TemporaryTree, _ program: RunningProgram) -> PathBytes {
        PathBytes("/proc/\(program.pid)/root").appending(tree.path("disk").bytes.dropFirst())
    }

    /// Writes files until the program reports that the disk is full, and returns their number.
    ///
    /// The amount that fits into the existing log is not known.
    private static func writeUntilFull(_ tree: borrowing TemporaryTree, error: () -> String) -> Int {
        var written = 0
        let isFull = Deadline.wait {
            TestFile.write(tree.path("in/file \(written)"), "x")
            written += 1
            Deadline.pause(.milliseconds(20))
            return error().contains("the disk is full")
        }
        #expect(isFull, "\(error())")
        return written
    }

    @Test func `on a full disk no action starts, and all of them run when there is space again`() {
        withTempTree { tree in
            let program = Self.start(tree)
            JournalFileTests.awaitReady(program)
            TestFile.write(tree.path("in/before"), "x")
            #expect(Deadline.wait { program.lines.count == 1 })
            let disk = Self.disk(tree, program)
            SmallDisk.fill(disk)
            let written = Self.writeUntilFull(tree) { program.error }
            #expect(program.error.contains("no action starts until it can be written again"), "\(program.error)")
            #expect(program.error.contains("help: free space on the disk"), "\(program.error)")
            let started = program.lines.count
            for number in 0..<50 { TestFile.write(tree.path("in/late \(number)"), "x") }
            // The program retries each second. It must report the error only once.
            Deadline.pause(.milliseconds(2500))
            #expect(program.lines.count == started)
            #expect(program.error.components(of: "the disk is full") == 1, "\(program.error)")
            #expect(program.exitStatus() == nil)
            for command in ["pause", "resume"] {
                let asked = RunningProgram(Places.alight, [command], in: tree.root, output: tree.path(command))
                #expect(asked.wait() == 1)
                #expect(asked.error.contains("but this cannot be written to the journal"), "\(asked.error)")
            }
            SmallDisk.empty(disk)
            #expect(Deadline.wait { program.lines.count == 1 + written + 50 }, "\(program.error)")
            #expect(program.error.contains("the journal can be written again"))
            #expect(Set(program.lines.map { $0.split(separator: ":").last }).count == 1 + written + 50)
            JournalFileTests.stop(program)
        }
    }

    @Test func `events that arrive on a full disk are handled after the next start`() {
        withTempTree { tree in
            // Two programs share the disk only if it is mounted once, so the second runs in the same namespace.
            TestFile.makeDirectory(tree.path("in"))
            TestFile.makeDirectory(tree.path("disk"))
            TestFile.write(tree.path("rules.yaml"), JournalFileTests.rules)
            let alight = "\"\(Places.alight)\" run rules.yaml --journal disk/journal.db"
            let script = """
                \(alight) >one.out 2>one.err & echo $! >pid; wait $!; echo $? >one.status
                rm disk/filler; exec \(alight)
                """
            let words =
                SmallDisk.words(on: tree.path("disk"), options: "size=2m") + ["sh", "-c", script]
            let program = RunningProgram("/usr/bin/env", words, in: tree.root, output: tree.path("two"))
            let root = tree.root
            func text(_ name: String) -> String {
                TestFile.text(root.appending(name)) ?? ""
            }
            #expect(Deadline.wait { text("one.err").contains("ready: watching") }, "\(program.error)")
            SmallDisk.fill(Self.disk(tree, program))
            let written = Self.writeUntilFull(tree) { text("one.err") }
            let pid = pid_t(text("pid").filter(\.isNumber)) ?? 0
            #expect(kill(pid, SIGTERM) == 0)
            #expect(Deadline.wait { !text("one.status").isEmpty })
            // The state could not be stored, so this is not a clean exit.
            #expect(text("one.status") == "1\n", "\(text("one.err"))")
            JournalFileTests.awaitReady(program)
            func done() -> Int { (text("one.out") + program.output).split(separator: "\n").count }
            #expect(Deadline.wait { done() >= written }, "\(done()) of \(written)\n\(program.error)")
            for number in 0..<written {
                #expect((text("one.out") + program.output).contains("created file \(number)\n"))
            }
            JournalFileTests.stop(program)
        }
    }

    @Test func `a stop is clean when there is space again`() {
        withTempTree { tree in
            let program = Self.start(tree)
            JournalFileTests.awaitReady(program)
            SmallDisk.fill(Self.disk(tree, program))
            _ = Self.writeUntilFull(tree) { program.error }
            SmallDisk.empty(Self.disk(tree, program))
            // This is before the next retry.
            JournalFileTests.stop(program)
            #expect(program.error.components(of: "the disk is full") == 1, "\(program.error)")
        }
    }

    @Test func `a start on a full disk is an error`() {
        withTempTree { tree in
            let program = Self.start(tree, script: "cat /dev/zero >filler 2>/dev/null || :")
            #expect(program.wait() == 1, "\(program.error)")
            #expect(program.error.contains("the disk is full\n    help: free space on the disk"), "\(program.error)")
        }
    }

    @Test func `a read-only disk is reported at the start`() {
        withTempTree { tree in
            let program = Self.start(tree, script: "mount -o remount,ro .")
            #expect(program.wait() == 1, "\(program.error)")
            #expect(program.error.contains("can't be written: Read-only file system\n    help: "), "\(program.error)")
        }
    }
}

extension String {
    /// Returns the number of occurrences of the text.
    fileprivate func components(of text: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: text) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
