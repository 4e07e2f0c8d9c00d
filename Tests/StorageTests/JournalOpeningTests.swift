import FileEvents
import Foundation
import Glibc
import GRDB
import Reconciling
import Records
import Storage
import Synchronization
import System
import Testing
import TestKit

/// A journal that cannot be used: the error has the reason and a remedy, and the journal is not changed.
struct JournalOpeningTests {
    let bench = StoreBench("deep/down/journal.db")

    private func refusal(of path: PathBytes? = nil) -> JournalError? {
        do {
            _ = try DiskStore(at: path ?? bench.path, now: .early)
            return nil
        } catch {
            return error
        }
    }

    /// Returns the error for a file with these bytes, which must not change.
    private func refusal(ofBytes bytes: [UInt8]) -> JournalError? {
        TestFile.write(bench.path, bytes)
        defer { #expect(TestFile.read(bench.path) == bytes) }
        return refusal()
    }

    private func makeJournal(_ rows: Int = 0) throws -> [UInt8] {
        try bench.commit { changes in
            for number in 0..<UInt64(rows) {
                let row = LedgerRow(.sample(file: number))
                changes.rows[StoreBench.rule, default: [:]][PathBytes("/in/\(number)")] = row
            }
        }
        try bench.end(isClean: true)
        return try #require(TestFile.read(bench.path))
    }

    @Test func `the directory and the file are created for this user alone`() throws {
        _ = try bench.store
        func mode(_ path: PathBytes) -> mode_t {
            var status = stat()
            return path.withCString { stat($0, &status) } == 0 ? status.st_mode & 0o777 : 0
        }
        #expect(mode(bench.path.parent) == 0o700)
        #expect(mode(bench.path.parent.parent) == 0o700)
        for name in ["", "-wal", "-shm", "-lock"] {
            #expect(mode(PathBytes("\(bench.path)\(name)")) == 0o600)
        }
    }

    @Test func `a name can have any bytes`() throws {
        let name: [UInt8] = [0x2f, 0xff, 0x25, 0x34, 0x3f, 0x23, 0x20]
        for name in [PathBytes(bench.root.bytes + name), bench.root.appending("file:x?mode=memory")] {
            try DiskStore(at: name, now: .early).close(at: .early)
            #expect(TestFile.exists(name))
        }
        #expect(TestFile.names(in: bench.root).count == 4)
    }

    @Test func `only one instance has a journal, and the next one reports its process`() throws {
        _ = try bench.store
        #expect(refusal() == .held(bench.path, pid: getpid()))
        #expect(
            refusal()?.description
                == "the journal '\(bench.path)' is in use by another instance (process \(getpid()))")
        bench.kill()
        #expect(refusal() == nil)
        // The lock file of a killed process blocks no other process.
        TestFile.write(PathBytes("\(bench.path)-lock"), "12345\n")
        #expect(refusal() == nil)
    }

    @Test func `a journal has one lock, whatever links lead to it`() throws {
        _ = try bench.store
        let link = bench.root.appending("link.db")
        let directory = bench.root.appending("folder")
        try #require(symlink("\(bench.path)", "\(link)") == 0 && symlink("\(bench.path.parent)", "\(directory)") == 0)
        for name in [link, directory.appending("journal.db")] {
            #expect(refusal(of: name) == .held(bench.path, pid: getpid()))
        }
        bench.kill()
        #expect(refusal(of: link) == nil)
        #expect(!TestFile.exists(PathBytes("\(link)-lock")) && !TestFile.exists(PathBytes("\(link)-wal")))
    }

    @Test func `a journal is opened once under all its names, also without its lock file`() throws {
        _ = try bench.store
        let other = bench.root.appending("other.db")
        try #require(link("\(bench.path)", "\(other)") == 0)
        #expect(refusal(of: other) == .held(other, pid: nil))
        try #require(unlink("\(other)") == 0)
        try #require(unlink("\(bench.path)-lock") == 0)
        #expect(refusal() == .held(bench.path, pid: nil))
        try bench.commit(.leased(1))
        try bench.end(isClean: true)
        #expect(refusal() == nil)
    }

    @Test(arguments: ["-wal", "-journal", "-shm", "-lock"])
    func `a file beside it that is a link, has two names or is not a file is refused`(ending: String) throws {
        _ = try makeJournal()
        let file = PathBytes("\(bench.path)\(ending)")
        let other = bench.root.appending("other")
        func isRefused() -> Bool {
            (try? DiskStore(inMemory: bench.path, now: .early)) == nil && (try? JournalReader(bench.path)) == nil
                && refusal() == .untrusted(file)
        }
        TestFile.write(other, "")
        _ = unlink("\(file)")
        try #require(symlink("\(other)", "\(file)") == 0)
        #expect(isRefused())
        try #require(unlink("\(file)") == 0 && link("\(other)", "\(file)") == 0)
        #expect(isRefused())
        try #require(unlink("\(file)") == 0)
        TestFile.makeDirectory(file)
        #expect(isRefused())
        #expect(TestFile.read(other) == [])
        try #require(rmdir("\(file)") == 0)
        #expect(refusal() == nil)
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root can give a file away"),
        arguments: ["-wal", "-journal", "-shm", "-lock"])
    func `a file of another user beside it is refused`(ending: String) throws {
        _ = try makeJournal()
        let file = PathBytes("\(bench.path)\(ending)")
        TestFile.write(file, "")
        try #require(chown("\(file)", 65_534, 65_534) == 0)
        #expect(refusal() == .untrusted(file))
        // Beside a journal of that user the file is correct.
        try #require(chown("\(bench.path)", 65_534, 65_534) == 0)
        #expect(refusal() == nil)
    }

    @Test func `a file that is not a journal is refused`() throws {
        #expect(refusal(ofBytes: Array("no journal at all".utf8)) == .notJournal(bench.path))
        #expect(refusal(ofBytes: [UInt8](repeating: 0, count: 9_000)) == .notJournal(bench.path))
        #expect(refusal(of: bench.root) == .isDirectory(bench.root))
        #expect(refusal(of: "/dev/null") == .notJournal("/dev/null") || geteuid() != 0)
        let inFile = bench.path.appending("x")
        #expect(refusal(of: inFile) == .noDirectory(bench.path, errno: ENOTDIR))
        #expect(!TestFile.exists(PathBytes("\(bench.path)-wal")))
    }

    @Test(arguments: [0, 7]) func `a file of another program is refused`(application: Int) throws {
        TestFile.makeDirectory(bench.path.parent)
        try bench.inspect {
            try $0.execute(sql: "PRAGMA application_id = \(application); CREATE TABLE music (title TEXT)")
        }
        let bytes = try #require(TestFile.read(bench.path))
        #expect(refusal(ofBytes: bytes) == .foreign(bench.path))
    }

    @Test func `a journal of a newer version is refused`() throws {
        _ = try makeJournal()
        try bench.inspect { try $0.execute(sql: "PRAGMA user_version = 999; PRAGMA wal_checkpoint(TRUNCATE)") }
        let bytes = try #require(TestFile.read(bench.path))
        let error = try #require(refusal(ofBytes: bytes))
        #expect(error == .newer(bench.path, version: 999, known: 1))
        #expect(error.description.contains("version 999") && error.description.contains("up to 1"))
        #expect(error.help.contains("newer release") && error.help.contains("--journal"))
    }

    @Test func `an empty file becomes a journal, unless its log has content`() throws {
        TestFile.write(bench.path, "")
        #expect(refusal() == nil)
        TestFile.write(bench.path, "")
        TestFile.write(PathBytes("\(bench.path)-wal"), "something")
        guard case .damaged = refusal() else {
            Issue.record("not refused")
            return
        }
        #expect(TestFile.read(PathBytes("\(bench.path)-wal")) == Array("something".utf8))
    }

    @Test func `a truncated or overwritten journal is refused`() throws {
        let bytes = try makeJournal(3_000)
        #expect(bytes.count > 200_000)
        for count in [1, 99, 100, 4_095, 4_096, bytes.count / 2, bytes.count - 1] {
            let error = refusal(ofBytes: Array(bytes[..<count]))
            switch error {
            case .notJournal where count < 100: break
            case .damaged(_, let detail): #expect(!detail.isEmpty)
            default: Issue.record("\(count) bytes: \(error.debugDescription)")
            }
        }
        var generator = SeededGenerator(seed: 1)
        for start in [100, 4_096, bytes.count / 2] {
            var broken = bytes
            for location in start..<(start + 8_192) { broken[location] = .random(in: 0 ... .max, using: &generator) }
            guard case .damaged(_, let detail) = refusal(ofBytes: broken) else {
                Issue.record("overwritten at \(start): not refused")
                continue
            }
            #expect(!detail.isEmpty)
        }
        TestFile.write(bench.path, bytes)
        #expect(refusal() == nil)
    }

    @Test func `a directory is refused, and nothing is created beside it`() throws {
        let directory = bench.root.appending("folder")
        TestFile.makeDirectory(directory)
        #expect(refusal(of: directory) == .isDirectory(directory))
        #expect(refusal(of: "/etc") == .isDirectory("/etc"))
        #expect(TestFile.names(in: bench.root).count == 1)
    }

    @Test func `a process that has the journal only briefly is waited for`() throws {
        let brief = try DiskStore(at: bench.path, now: .early, isBrief: true)
        let path = bench.path
        let isOpened = Mutex(false)
        let other = Thread {
            let store = try? DiskStore(at: path, now: .early)
            isOpened.withLock { $0 = store != nil }
            store?.close(at: .early)
        }
        other.start()
        // Longer than the wait for a process that has the journal permanently.
        Deadline.pause(.milliseconds(600))
        #expect(!isOpened.withLock { $0 } && !other.isFinished)
        brief.close(at: .early)
        #expect(Deadline.wait { other.isFinished })
        #expect(isOpened.withLock { $0 })
    }

    @Test func `a file without write permission is refused`() throws {
        _ = try makeJournal()
        guard geteuid() == 0 else { return }
        // Root can write to anything except a read-only mount.
        let directory = bench.path.parent
        guard directory.withCString({ mount($0, $0, nil, UInt(MS_BIND), nil) }) == 0 else {
            print("skipped: can't mount (errno \(errno))")
            return
        }
        defer { _ = directory.withCString { umount2($0, Int32(MNT_DETACH)) } }
        let flags = UInt(MS_BIND) | UInt(MS_REMOUNT) | UInt(MS_RDONLY)
        let isReadOnly = directory.withCString { mount($0, $0, nil, flags, nil) } == 0
        try #require(isReadOnly)
        let error = try #require(refusal())
        #expect(error == .noAccess(PathBytes("\(bench.path)-lock"), errno: EROFS))
        #expect(error.description.hasSuffix("can't be written: Read-only file system"))
        #expect(
            refusal(of: directory.appending("new/journal.db")) == .noDirectory(directory.appending("new"), errno: EROFS)
        )
    }

    @Test func `a full disk is reported, and nothing is lost`() throws {
        let directory = bench.root.appending("small")
        TestFile.makeDirectory(directory)
        guard directory.withCString({ mount("alight-test", $0, "tmpfs", 0, "size=384k") }) == 0 else {
            print("skipped: can't mount a small file system (errno \(errno))")
            return
        }
        defer { _ = directory.withCString { umount2($0, Int32(MNT_DETACH)) } }
        let path = directory.appending("journal.db")
        let filler = directory.appending("filler")
        // Fills the disk to the last byte.
        func fill() {
            let descriptor = filler.withCString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600) }
            let block = [UInt8](repeating: 1, count: 4_096)
            while write(descriptor, block, block.count) > 0 {}
            close(descriptor)
        }
        fill()
        #expect(refusal(of: path) == .full(path))
        _ = filler.withCString { unlink($0) }
        do {
            let store = try DiskStore(at: path, now: .early)
            _ = store.register(StoreBench.rules, isWatching: true, at: .early)
            #expect(store.close(at: .early) == nil)
        }
        fill()
        #expect(refusal(of: path) == .full(path))
        _ = filler.withCString { unlink($0) }
        #expect(refusal(of: path) == nil)
    }
}
