import Glibc
import System
import Testing
import TestKit

/// Journal files that are damaged, foreign or in use, and the program's reaction.
struct JournalFileTests {
    static let rules = """
        rules:
          - name: notes
            path: in/*
            settle: 60ms
            action: { use: log, with: { message: "${event} ${name}" } }
        """

    static func start(
        _ tree: borrowing TemporaryTree, _ journal: String = "state/journal.db", as output: String = "run"
    ) -> RunningProgram {
        TestFile.makeDirectory(tree.path("in"))
        TestFile.makeDirectory(tree.path(journal).parent)
        TestFile.write(tree.path("rules.yaml"), rules)
        return RunningProgram(
            Places.alight, ["run", "rules.yaml", "--journal", journal], in: tree.root, output: tree.path(output))
    }

    static func awaitReady(_ program: RunningProgram) {
        #expect(program.waitUntilReady(), "\(program.error)")
    }

    static func stop(_ program: RunningProgram) {
        #expect(program.stop() == 0, "\(program.error)")
    }

    /// Creates a journal with content and returns its path.
    private static func fill(_ tree: borrowing TemporaryTree) -> PathBytes {
        let program = start(tree, as: "first")
        awaitReady(program)
        for number in 0..<40 { TestFile.write(tree.path("in/file \(number)"), "x") }
        #expect(Deadline.wait { program.lines.count == 40 }, "\(program.error)")
        stop(program)
        return tree.path("state/journal.db")
    }

    /// Starts with the journal as it is.
    ///
    /// The journal must be refused with a remedy, and must not change.
    private static func expectRefusal(
        _ tree: borrowing TemporaryTree, _ message: String, _ journal: String = "state/journal.db",
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let directory = tree.path(journal).parent
        let before = contents(directory)
        let program = start(tree, journal)
        let status = program.wait()
        let error = program.error
        #expect(status == 1, "\(error)", sourceLocation: sourceLocation)
        #expect(error.hasPrefix("error: "), "\(error)", sourceLocation: sourceLocation)
        #expect(error.contains(message), "\(error)", sourceLocation: sourceLocation)
        #expect(error.contains("\n    help: "), "\(error)", sourceLocation: sourceLocation)
        #expect(!error.contains("ready: "), "\(error)", sourceLocation: sourceLocation)
        #expect(contents(directory) == before, sourceLocation: sourceLocation)
    }

    /// Returns the contents of a directory, except the lock file, which contains a process ID.
    private static func contents(_ directory: PathBytes) -> [[UInt8]: [UInt8]] {
        var contents: [[UInt8]: [UInt8]] = [:]
        for name in TestFile.names(in: directory) where !name.suffix(5).elementsEqual("-lock".utf8) {
            contents[name] = TestFile.read(directory.appending(name)) ?? []
        }
        return contents
    }

    // MARK: Invalid and damaged files

    @Test func `a journal of a newer version is not changed`() {
        withTempTree { tree in
            let journal = Self.fill(tree)
            // The user version in the header of SQLite.
            Self.overwrite(journal, at: 60, [0, 0, 0x03, 0xE7])
            Self.expectRefusal(tree, "has version 999, of a newer release")
        }
    }

    @Test func `a damaged journal is not changed`() {
        withTempTree { tree in
            let journal = Self.fill(tree)
            let good = TestFile.read(journal) ?? []
            #expect(good.count > 40_000)
            let noise = (0..<6000).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ 11) }

            Self.overwrite(journal, at: 0, noise)
            Self.expectRefusal(tree, "'\(journal)' is not an SQLite file")

            TestFile.write(journal, good)
            Self.overwrite(journal, at: good.count / 2, noise)
            Self.expectRefusal(tree, "the journal '\(journal)' is damaged: ")

            TestFile.write(journal, Array(good[..<(good.count / 2 + 100)]))
            Self.expectRefusal(tree, "the journal '\(journal)' is damaged: ")

            TestFile.write(journal, Array(good[..<50]))
            Self.expectRefusal(tree, "'\(journal)' is not an SQLite file")

            // With its original content, the journal is accepted again.
            TestFile.write(journal, good)
            let program = Self.start(tree)
            Self.awaitReady(program)
            Self.stop(program)
        }
    }

    @Test func `a file that is not a journal is not changed`() {
        withTempTree { tree in
            TestFile.write(tree.path("state/journal.db"), "Dear diary, this is not for machines.\n")
            Self.expectRefusal(tree, "not a journal")
            TestFile.makeDirectory(tree.path("folder/journal.db"))
            Self.expectRefusal(tree, "is a directory", "folder/journal.db")
        }
    }

    @Test func `an empty file becomes a journal, but not if its log exists`() {
        withTempTree { tree in
            let journal = Self.fill(tree)
            TestFile.write(journal, "")
            TestFile.write(tree.path("state/journal.db-wal"), "something")
            Self.expectRefusal(tree, "it is empty, but its log '\(journal)-wal' is not")
            _ = tree.path("state/journal.db-wal").withCString { unlink($0) }
            let program = Self.start(tree)
            Self.awaitReady(program)
            Self.stop(program)
            #expect((TestFile.read(journal) ?? []).count > 10_000)
        }
    }

    private static func overwrite(_ path: PathBytes, at location: Int, _ bytes: [UInt8]) {
        let file = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
        #expect(pwrite(file, bytes, bytes.count, off_t(location)) == bytes.count)
        close(file)
    }

    // MARK: Locations

    @Test func `the default directory is created, for this user alone`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), Self.rules)
            let program = RunningProgram.alight(
                ["run", "rules.yaml"], in: tree.root, environment: ["XDG_STATE_HOME": "\(tree.path("deep"))"])
            Self.awaitReady(program)
            Self.stop(program)
            var status = stat()
            for path in ["deep", "deep/alight"] {
                #expect(tree.path(path).withCString { lstat($0, &status) } == 0)
                #expect(status.st_mode & 0o777 == 0o700)
            }
            #expect(tree.path("deep/alight/journal.db").withCString { lstat($0, &status) } == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test func `a second instance on the same journal reports the first`() {
        withTempTree { tree in
            let first = Self.start(tree, as: "first")
            Self.awaitReady(first)
            let second = Self.start(tree, as: "second")
            #expect(second.wait() == 1)
            #expect(
                second.error.contains("in use by another instance (process \(first.pid))\n    help: "),
                "\(second.error)")
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { first.lines.count == 1 })
            Self.stop(first)
            // A lock file of a dead process does not count.
            let third = Self.start(tree, as: "third")
            Self.awaitReady(third)
            third.signal(SIGKILL)
            #expect(third.wait() == 137)
            let fourth = Self.start(tree, as: "fourth")
            Self.awaitReady(fourth)
            Self.stop(fourth)
        }
    }

    @Test func `a journal in the watched directory is not reported, and keeps its locks`() {
        withTempTree { tree in
            let rules = """
                rules:
                  - name: all
                    path: in/**
                    types: [any]
                    hidden: true
                    ignore_defaults: false
                    events: [created, modified, moved, deleted, attributes, arriving]
                    locks: wait
                    settle: 60ms
                    action: { use: log, with: { message: "${event} ${name}" } }
                """
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), rules)
            let program = RunningProgram.alight(["run", "rules.yaml", "--journal", "in/journal.db"], in: tree.root)
            Self.awaitReady(program)
            let locks = Self.locks(of: program.pid)
            #expect(!locks.isEmpty)
            for round in 0..<5 {
                TestFile.write(tree.path("in/file"), "round \(round)")
                #expect(Deadline.wait { program.lines.count { !$0.contains("arriving") } == round + 1 })
            }
            program.signal(SIGUSR1)
            TestFile.write(tree.path("in/last"), "x")
            #expect(Deadline.wait { program.output.contains("created last") })
            #expect(!program.output.contains("journal.db"), "\(program.output)")
            #expect(Self.locks(of: program.pid).isSuperset(of: locks))
            Self.stop(program)
            #expect(!program.output.contains("journal.db"), "\(program.output)")
            // The next run finds it there, and does not report it either.
            let next = RunningProgram.alight(
                ["run", "rules.yaml", "--journal", "in/journal.db"], in: tree.root, output: "next")
            Self.awaitReady(next)
            TestFile.write(tree.path("in/later"), "x")
            #expect(Deadline.wait { next.output.contains("created later") })
            Self.stop(next)
            #expect(!next.output.contains("journal.db"), "\(next.output)")
        }
    }

    @Test(
        .enabled(if: ScenarioRunner.ordinaryUserProblem == nil || geteuid() != 0),
        arguments: ["file", "folder"])
    func `a journal without write permission is reported at the start`(_ what: String) {
        withTempTree { tree in
            let journal = Self.fill(tree)
            let directory = journal.parent
            let names = TestFile.names(in: directory)
            _ = tree.root.withCString { chmod($0, 0o755) }
            for path in [directory] + names.map({ directory.appending($0) }) {
                if geteuid() == 0 { _ = path.withCString { lchown($0, 65534, 65534) } }
            }
            _ = what == "file" ? journal.withCString { chmod($0, 0o400) } : directory.withCString { chmod($0, 0o500) }
            if what == "folder" {
                // Without the lock file of the previous run, a new one would have to be created.
                _ = PathBytes(journal.bytes + Array("-lock".utf8)).withCString { unlink($0) }
            }
            let before = Self.contents(directory)
            let asOrdinaryUser =
                geteuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
            let words = [Places.alight.description, "run", "rules.yaml", "--journal", "state/journal.db"]
            let program = RunningProgram(
                "/usr/bin/env", asOrdinaryUser + words, in: tree.root, output: tree.path("run"))
            #expect(program.wait() == 1, "\(program.error)")
            #expect(program.error.contains("can't be written: Permission denied\n    help: "), "\(program.error)")
            #expect(Self.contents(directory) == before)
        }
    }

    // MARK: After a stop and a kill

    @Test func `files written in a storm while the program is stopped are reported once`() {
        withTempTree { tree in
            let program = Self.start(tree)
            Self.awaitReady(program)
            program.signal(SIGSTOP)
            for number in 0..<3000 { TestFile.write(tree.path("in/file \(number)"), "x") }
            program.signal(SIGCONT)
            for number in 3000..<4000 { TestFile.write(tree.path("in/file \(number)"), "x") }
            #expect(Deadline.wait(within: .seconds(60)) { program.lines.count >= 4000 }, "\(program.error)")
            Self.stop(program)
            let names = program.lines.compactMap { $0.split(separator: ":").last.map(String.init) }
            #expect(names.count == 4000)
            #expect(Set(names).count == 4000)
        }
    }

    @Test func `the directory of an interrupted attempt is removed, even if nothing runs in it again`() {
        withTempTree { tree in
            let rules = """
                rules:
                  - name: sleeper
                    path: in/*
                    settle: 60ms
                    action: { exec: [sh, -c, "echo $ALIGHT_SCRATCH >\(tree.root)/scratch; sleep 60"] }
                """
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), rules)
            func run(_ root: PathBytes, _ output: String) -> RunningProgram {
                RunningProgram(
                    Places.alight, ["run", "rules.yaml", "--journal", "journal.db"], in: root,
                    output: root.appending(output))
            }
            let first = run(tree.root, "first")
            Self.awaitReady(first)
            TestFile.write(tree.path("in/a"), "x")
            var scratch = ""
            #expect(
                Deadline.wait {
                    scratch = TestFile.text(tree.path("scratch")) ?? ""
                    return scratch.hasSuffix("\n")
                })
            let directory = PathBytes(scratch.filter { $0 != "\n" })
            #expect(TestFile.exists(directory))
            first.signal(SIGKILL)
            #expect(first.wait() == 137)
            // The rule of that name no longer exists, so its job waits.
            TestFile.write(tree.path("rules.yaml"), rules.replacing("sleeper", with: "other"))
            let second = run(tree.root, "second")
            Self.awaitReady(second)
            #expect(second.error.contains("1 job interrupted by the last exit"), "\(second.error)")
            #expect(!TestFile.exists(directory))
            Self.stop(second)
        }
    }

    /// Returns the inodes on which a process has locks by fcntl(2), and the types of the locks.
    private static func locks(of process: pid_t) -> Set<String> {
        let text = TestFile.text("/proc/locks") ?? ""
        var locks: Set<String> = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            // A write lock exists only during a commit.
            guard words.count == 8, words[1] == "POSIX", words[3] == "READ", words[4] == "\(process)" else { continue }
            locks.insert("\(words[3]) \(words[5])")
        }
        return locks
    }
}
