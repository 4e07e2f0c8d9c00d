import FileEvents
import Glibc
import System
import Testing
import TestKit

@testable import Watching

/// The processes that write files, as reported by the kernel.
@Suite(.enabled(if: writerProblem == nil, "\(writerProblem ?? "")"))
struct WriterRecorderTests {
    @discardableResult private static func enter(_ path: PathBytes, _ recorder: WriterRecorder) -> Int32 {
        do throws(SystemError) {
            let reader = try DirectoryReader(path, below: path)
            return recorder.recording.enter(reader, at: path, isRoot: true)
        } catch {
            return error.errno
        }
    }

    /// Returns the last process that changed the path.
    private static func writer(
        _ recorder: WriterRecorder, _ kind: EventKind, _ path: PathBytes, isTree: Bool = false
    ) -> Writer {
        var event = FileEvent.sample(kind, path)
        var status = stat()
        if path.withCString({ lstat($0, &status) }) == 0 {
            let time = { (time: timespec) in
                Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
            }
            event.snapshot.modified = time(status.st_mtim)
            event.snapshot.changed = time(status.st_ctim)
        }
        return recorder.writer(of: event, isTree: isTree)
    }

    private static func shell(_ line: String, in tree: borrowing TemporaryTree) -> RunningProgram {
        RunningProgram("/bin/sh", ["-c", line], in: tree.root, output: tree.path("log"))
    }

    @Test func `programs that write, move and delete are distinguished by their names`() throws {
        try withTempTree { tree in
            let recorder = try WriterRecorder()
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("two"), "old")
            #expect(mkfifo("\(tree.path("wait"))", 0o600) == 0)
            Self.enter(tree.path("in"), recorder)
            // Each program lives until it is queried: cp waits for input from the pipe, mv for an answer.
            let copy = RunningProgram(
                "/bin/cp", ["/etc/passwd", "wait", "in"], in: tree.root, output: tree.path("log-cp"))
            #expect(Deadline.wait { Self.writer(recorder, .created, tree.path("in/passwd")).process?.name != nil })
            let copier = try #require(Self.writer(recorder, .created, tree.path("in/passwd")).process)
            #expect(copier.name == "cp")
            #expect(copier.executable?.lastComponent.elementsEqual("cp".utf8) == true)
            #expect(copier.uid == geteuid())
            let shell = Self.shell("exec 3>in/b; echo x >&3; exec 3>&-; rm -f in/none; read line <wait", in: tree)
            #expect(Deadline.wait { Self.writer(recorder, .created, tree.path("in/b")).process != nil })
            let creator = try #require(Self.writer(recorder, .created, tree.path("in/b")).process)
            #expect(creator.pid == shell.pid)
            #expect(creator.name == "sh")
            #expect(creator != copier)
            // Both have opened the pipe for reading and exit when it is closed.
            let writer = open("\(tree.path("wait"))", O_WRONLY | O_CLOEXEC)
            put(writer, "x\n")
            close(writer)
            #expect(copy.wait() != nil)
            TestFile.write(tree.path("wait-end"), "")
            kill(shell.pid, SIGTERM)
            #expect(shell.wait() != nil)

            Machine.move(tree.path("two"), tree.path("in/c"))
            #expect(Self.writer(recorder, .moved, tree.path("in/c")).process?.pid == getpid())
            _ = tree.path("in/b").withCString { unlink($0) }
            #expect(Self.writer(recorder, .deleted, tree.path("in/b")).process?.pid == getpid())
            _ = tree.path("in/c").withCString { chmod($0, 0o600) }
            #expect(Self.writer(recorder, .attributes, tree.path("in/c")).process?.pid == getpid())
            recorder.stop()
        }
    }

    private func put(_ descriptor: Int32, _ text: String) { TestFile.put(descriptor, Array(text.utf8)) }

    @Test func `an exited writer is known only by its process ID`() throws {
        try withTempTree { tree in
            let recorder = try WriterRecorder(isUnlimited: true, isReading: false)
            TestFile.makeDirectory(tree.path("in"))
            Self.enter(tree.path("in"), recorder)
            let shell = Self.shell("echo x >in/a", in: tree)
            #expect(shell.wait() == 0)
            #expect(
                Self.writer(recorder, .created, tree.path("in/a")) == .process(WritingProcess(pid: shell.pid)))
        }
    }

    @Test func `changes outside are not recorded, and those in a new or moved-in directory are`() throws {
        try withTempTree { tree in
            let recorder = try WriterRecorder(isUnlimited: true, isReading: false)
            for directory in ["in", "out/deep"] { TestFile.makeDirectory(tree.path(directory)) }
            Self.enter(tree.path("in"), recorder)
            let path = tree.path("out/deep/a")
            TestFile.write(path, "x")
            #expect(Self.writer(recorder, .created, path) == .unknown(.unseen))
            Machine.move(tree.path("out"), tree.path("in/out"))
            guard recorder.recording.isWhole else { return }
            TestFile.write(tree.path("in/out/deep/b"), "x")
            #expect(Self.writer(recorder, .created, tree.path("in/out/deep/b")).process?.pid == getpid())
            TestFile.write(tree.path("in/1/2/3/c"), "x")
            #expect(Self.writer(recorder, .created, tree.path("in/1/2/3/c")).process?.pid == getpid())
            // The directory is identified by its handle, not by its name.
            Machine.move(tree.path("in/1"), tree.path("in/one"))
            #expect(Self.writer(recorder, .created, tree.path("in/one/2/3/c")).process?.pid == getpid())
        }
    }

    @Test func `roots that are links or behind links are recorded`() throws {
        try withTempTree { tree in
            let recorder = try WriterRecorder(isUnlimited: true, isReading: false)
            TestFile.makeDirectory(tree.path("real/in"))
            #expect(symlink("real", "\(tree.path("way"))") == 0)
            #expect(symlink("real/in", "\(tree.path("link"))") == 0)
            Self.enter(tree.path("way/in"), recorder)
            Self.enter(tree.path("link"), recorder)
            TestFile.write(tree.path("real/in/a"), "x")
            for path in ["way/in/a", "link/a", "real/in/a"] {
                #expect(Self.writer(recorder, .created, tree.path(path)).process?.pid == getpid())
            }
        }
    }

    @Test func `for a directory handled as one unit, the last writer of any of its entries is reported`() throws {
        try withTempTree { tree in
            let recorder = try WriterRecorder(isUnlimited: true, isReading: false)
            TestFile.makeDirectory(tree.path("in"))
            Self.enter(tree.path("in"), recorder)
            guard recorder.recording.isWhole else { return }
            TestFile.makeDirectory(tree.path("in/unit/deep"))
            let shell = Self.shell("echo x >in/unit/deep/a", in: tree)
            #expect(shell.wait() == 0)
            let unit = tree.path("in/unit")
            #expect(Self.writer(recorder, .created, unit).process?.pid == getpid())
            #expect(Self.writer(recorder, .created, unit, isTree: true).process?.pid == shell.pid)
        }
    }

    @Test func `a write after the last event of the kernel has an unknown writer`() throws {
        try withTempTree { tree in
            let recorder = try WriterRecorder(isUnlimited: true, isReading: false)
            TestFile.makeDirectory(tree.path("in"))
            Self.enter(tree.path("in"), recorder)
            let path = tree.path("in/a")
            TestFile.write(path, "x")
            #expect(Self.writer(recorder, .created, path).process?.pid == getpid())
            let descriptor = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            // The file is still open, so the kernel has reported nothing; the file clock is slightly behind.
            #expect(
                Deadline.wait {
                    put(descriptor, "y")
                    return Self.writer(recorder, .modified, path) == .unknown(.unseen)
                })
            close(descriptor)
            #expect(Self.writer(recorder, .modified, path).process?.pid == getpid())
        }
    }

    @Test func `after an overflow, earlier writers are unknown and later ones are known`() throws {
        try withTempTree { tree in
            let setting = TestFile.read("/proc/sys/fs/fanotify/max_queued_events") ?? []
            let limit = Int(String(decoding: setting, as: UTF8.self).filter(\.isNumber)) ?? 16_384
            guard limit <= 100_000 else { return }
            let recorder = try WriterRecorder(isUnlimited: false, isReading: false)
            TestFile.makeDirectory(tree.path("in"))
            Self.enter(tree.path("in"), recorder)
            let first = tree.path("in/first")
            TestFile.write(first, "x")
            #expect(Self.writer(recorder, .created, first).process?.pid == getpid())
            for number in 0...limit { TestFile.write(tree.path("in/\(number % 1_000)/\(number)"), "") }
            #expect(Self.writer(recorder, .created, first) == .unknown(.overflow))
            let later = tree.path("in/later")
            TestFile.write(later, "x")
            #expect(Self.writer(recorder, .created, later).process?.pid == getpid())
        }
    }
}
