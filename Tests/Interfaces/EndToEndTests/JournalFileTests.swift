import FileEvents
import Glibc
import System
import TestKit
import Testing

/// What becomes of the journal's file in bad company, and of the program with it.
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
        TestFile.makeFolder(tree.path("in"))
        TestFile.write(tree.path("rules.yaml"), rules)
        return RunningProgram(
            Places.alight, ["run", "rules.yaml", "--journal", journal], in: tree.root, output: tree.path(output))
    }

    static func awaitReady(_ program: RunningProgram) {
        #expect(Deadline.wait { program.error.contains("ready: watching") }, "\(program.error)")
    }

    static func stop(_ program: RunningProgram) {
        program.signal(SIGTERM)
        #expect(program.wait() == 0, "\(program.error)")
    }

    /// Lets a journal come about that has something in it.
    private static func fill(_ tree: borrowing TemporaryTree) -> PathBytes {
        let program = start(tree, as: "first")
        awaitReady(program)
        for number in 0..<40 { TestFile.write(tree.path("in/file \(number)"), "x") }
        #expect(Deadline.wait { program.lines.count == 40 }, "\(program.error)")
        stop(program)
        return tree.path("state/journal.db")
    }

    /// Starts with the journal as it is: it has to be refused, with a way out, and left as it is.
    private static func expectRefusal(
        _ tree: borrowing TemporaryTree, _ message: String, _ journal: String = "state/journal.db",
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let folder = tree.path(journal).parent
        let before = contents(folder)
        let program = start(tree, journal)
        let status = program.wait()
        let error = program.error
        #expect(status == 1, "\(error)", sourceLocation: sourceLocation)
        #expect(error.hasPrefix("error: "), "\(error)", sourceLocation: sourceLocation)
        #expect(error.contains(message), "\(error)", sourceLocation: sourceLocation)
        #expect(error.contains("\n    help: "), "\(error)", sourceLocation: sourceLocation)
        #expect(!error.contains("ready: "), "\(error)", sourceLocation: sourceLocation)
        #expect(contents(folder) == before, sourceLocation: sourceLocation)
    }

    /// What lies in a folder but for the lock, which holds a number of its own.
    private static func contents(_ folder: PathBytes) -> [[UInt8]: [UInt8]] {
        var contents: [[UInt8]: [UInt8]] = [:]
        for name in TestFile.names(in: folder) where !name.suffix(5).elementsEqual("-lock".utf8) {
            contents[name] = TestFile.read(folder.appending(name)) ?? []
        }
        return contents
    }

    // MARK: Files that are no journal, or not a sound one

    @Test func `a journal of a newer version is left alone`() {
        withTempTree { tree in
            let journal = Self.fill(tree)
            // SQLite's header has the user version there.
            Self.overwrite(journal, at: 60, [0, 0, 0x03, 0xE7])
            Self.expectRefusal(tree, "has version 999, of a newer release")
        }
    }

    @Test func `a damaged journal is left alone`() {
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

            // And as it was, it is taken again.
            TestFile.write(journal, good)
            let program = Self.start(tree)
            Self.awaitReady(program)
            Self.stop(program)
        }
    }

    @Test func `a file that is no journal is left alone`() {
        withTempTree { tree in
            TestFile.write(tree.path("state/journal.db"), "Dear diary, this is not for machines.\n")
            Self.expectRefusal(tree, "not a journal")
            TestFile.makeFolder(tree.path("folder/journal.db"))
            Self.expectRefusal(tree, "is a directory", "folder/journal.db")
        }
    }

    @Test func `an empty file becomes a journal, but not if its log is there`() {
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

    private static func overwrite(_ path: PathBytes, at place: Int, _ bytes: [UInt8]) {
        let file = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
        #expect(pwrite(file, bytes, bytes.count, off_t(place)) == bytes.count)
        close(file)
    }

    // MARK: Places

    @Test func `a folder that does not exist is made, for this user alone`() {
        withTempTree { tree in
            let program = Self.start(tree, "deep/down/journal.db")
            Self.awaitReady(program)
            Self.stop(program)
            var status = stat()
            for path in ["deep", "deep/down"] {
                #expect(tree.path(path).withCString { lstat($0, &status) } == 0)
                #expect(status.st_mode & 0o777 == 0o700)
            }
            #expect(tree.path("deep/down/journal.db").withCString { lstat($0, &status) } == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test func `a second Alight on the same journal is told of the first`() {
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
            // A lock that a dead process has left is none.
            let third = Self.start(tree, as: "third")
            Self.awaitReady(third)
            third.signal(SIGKILL)
            #expect(third.wait() == 137)
            let fourth = Self.start(tree, as: "fourth")
            Self.awaitReady(fourth)
            Self.stop(fourth)
        }
    }

    @Test func `a journal in the watched folder is no news, and keeps its locks`() {
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
            TestFile.makeFolder(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), rules)
            let program = RunningProgram(
                Places.alight, ["run", "rules.yaml", "--journal", "in/journal.db"], in: tree.root,
                output: tree.path("run"))
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
            // The next run finds it there, and tells nothing of it either.
            let next = RunningProgram(
                Places.alight, ["run", "rules.yaml", "--journal", "in/journal.db"], in: tree.root,
                output: tree.path("next"))
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
    func `a journal that may not be written is told at the start`(_ what: String) {
        withTempTree { tree in
            let journal = Self.fill(tree)
            let folder = journal.parent
            let names = TestFile.names(in: folder)
            _ = tree.root.withCString { chmod($0, 0o755) }
            for path in [folder] + names.map({ folder.appending($0) }) {
                if geteuid() == 0 { _ = path.withCString { lchown($0, 65534, 65534) } }
            }
            _ = what == "file" ? journal.withCString { chmod($0, 0o400) } : folder.withCString { chmod($0, 0o500) }
            if what == "folder" {
                // Without the lock of the run before it would have to be made.
                _ = PathBytes(journal.bytes + Array("-lock".utf8)).withCString { unlink($0) }
            }
            let before = Self.contents(folder)
            let asOrdinaryUser =
                geteuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
            let words = [Places.alight.description, "run", "rules.yaml", "--journal", "state/journal.db"]
            let program = RunningProgram(
                "/usr/bin/env", asOrdinaryUser + words, in: tree.root, output: tree.path("run"))
            #expect(program.wait() == 1, "\(program.error)")
            #expect(program.error.contains("can't be written: Permission denied\n    help: "), "\(program.error)")
            #expect(Self.contents(folder) == before)
        }
    }

    // MARK: What a stop and a kill leave

    @Test func `what comes in a storm while it is stopped is told once`() {
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

    @Test func `the folder of an attempt that was cut off is removed, though nothing is run in it again`() {
        withTempTree { tree in
            let rules = """
                rules:
                  - name: sleeper
                    path: in/*
                    settle: 60ms
                    action: { exec: [sh, -c, "echo $ALIGHT_SCRATCH >\(tree.root)/scratch; sleep 60"] }
                """
            TestFile.makeFolder(tree.path("in"))
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
                    scratch = String(decoding: TestFile.read(tree.path("scratch")) ?? [], as: UTF8.self)
                    return scratch.hasSuffix("\n")
                })
            let folder = PathBytes(scratch.filter { $0 != "\n" })
            #expect(TestFile.exists(folder))
            first.signal(SIGKILL)
            #expect(first.wait() == 137)
            // The rule of that name is no more: its job waits.
            TestFile.write(tree.path("rules.yaml"), rules.replacing("sleeper", with: "other"))
            let second = run(tree.root, "second")
            Self.awaitReady(second)
            #expect(second.error.contains("1 job interrupted by the last exit"), "\(second.error)")
            #expect(!TestFile.exists(folder))
            Self.stop(second)
        }
    }

    /// The inodes on which a process has locks by fcntl(2), and of which kind.
    private static func locks(of process: pid_t) -> Set<String> {
        let text = String(decoding: TestFile.read("/proc/locks") ?? [], as: UTF8.self)
        var locks: Set<String> = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            // A lock for writing is there for the moment of a commit alone.
            guard words.count == 8, words[1] == "POSIX", words[3] == "READ", words[4] == "\(process)" else { continue }
            locks.insert("\(words[3]) \(words[5])")
        }
        return locks
    }
}
