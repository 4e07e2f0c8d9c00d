import CAlightLinux
import Foundation
import Glibc
import Programs
import Rules
import System
import Testing
import TestKit

/// The scratch directories of attempts, and the removal of those that were abandoned.
struct ScratchDirectoryTests {
    let directory: TemporaryDirectory
    let scratch: ScratchDirectories

    init() throws {
        directory = TemporaryDirectory()
        scratch = ScratchDirectories(in: .first(try directory.directory("run/alight", mode: 0o700)))
    }

    @Test func `an empty directory is used again under another name, and no other one`() throws {
        var status = stat()
        func inode(_ path: PathBytes) -> UInt64 {
            #expect(path.withCString { lstat($0, &status) } == 0)
            return UInt64(status.st_ino)
        }
        let first = try scratch.make(for: JobID("1"))
        let number = inode(first)
        #expect(scratch.takeBack(first))
        let second = try scratch.make(for: JobID("2"))
        #expect(second != first && second.lastComponent.suffix(2).elementsEqual("-2".utf8))
        #expect(inode(second) == number)
        #expect(first.withCString { access($0, F_OK) } != 0)
        // A program that leaves a file, or permissions that others cannot use.
        try "x".write(toFile: second.appending("left").description, atomically: false, encoding: .utf8)
        #expect(!scratch.takeBack(second))
        try ScratchDirectories.remove(second)
        let third = try scratch.make(for: JobID("3"))
        #expect(chmod(third.description, 0o500) == 0)
        #expect(scratch.takeBack(third))
        #expect(third.withCString { access($0, F_OK) } != 0)
        scratch.removeInstanceDirectory()
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.base.description) == [])
    }

    @Test func `the service comes first, then run for root and the session for others, then temporary files`() {
        func list(_ service: PathBytes?, _ session: PathBytes?, _ temporary: PathBytes?, _ user: UInt32) -> [String] {
            RuntimeDirectories(service: service, session: session, temporary: temporary, user: user).forScratch
                .map(\.path.description)
        }
        let (root, other) = (["/tmp/alight-0", "/var/tmp/alight-0"], ["/tmp/alight-4711", "/var/tmp/alight-4711"])
        #expect(list("/srv/run:/srv/run/photos", "/run/user/0", nil, 0) == ["/srv/run", "/run/alight"] + root)
        #expect(list("/srv/run", "/run/user/4711", nil, 4711) == ["/srv/run", "/run/user/4711/alight"] + other)
        // Paths that are not absolute are ignored.
        #expect(list("run", "", "/srv", 0) == ["/run/alight", "/srv/alight-0"] + root)
        #expect(list("", "run", "/srv", 4711) == ["/srv/alight-4711"] + other)
        let sockets = RuntimeDirectories(service: "/srv", session: "/run/user/4711", temporary: "/srv", user: 4711)
        #expect(sockets.forSocket.map(\.path.description) == ["/run/user/4711/alight"] + other)
    }

    @Test func `a directory in which another user could replace files is not used`() throws {
        func problem(_ service: PathBytes) -> String? {
            RuntimeDirectories(service: service, session: nil, temporary: nil, user: geteuid()).forScratch
                .first { _ in true }?.problem
        }
        let parent = try directory.directory("parent")
        let own = parent.appending("alight")
        #expect(problem(own) == nil)
        #expect(chmod(parent.description, 0o777) == 0)
        #expect(problem(own)?.contains("'\(parent)'") == true)
        // Nor if it exists already.
        try directory.directory("parent/alight", mode: 0o700)
        #expect(problem(own)?.contains("'\(parent)'") == true)
        #expect(chmod(parent.description, 0o1777) == 0)
        #expect(problem(own) == nil)
        #expect(chmod(own.description, 0o777) == 0)
        #expect(problem(own) == "'\(own)' is not a private directory of this user")
        #expect(problem(parent.appending("missing/alight"))?.contains("No such file or directory") == true)
    }

    @Test func `a path that is not a private directory of the user is skipped, in the same way by all`() throws {
        let user = geteuid()
        let parent = try directory.directory("tmp")
        let first = parent.appending("alight-\(user)")
        func found() -> UserDirectory { UserDirectory(in: parent, user: user) }
        #expect(found().path == first)
        #expect(found().passedOver == nil)
        // A link, a file, and a directory that others may write to.
        try directory.directory("elsewhere")
        #expect(symlink("../elsewhere", first.description) == 0)
        try directory.write("tmp/alight-\(user)-2", "x")
        try directory.directory("tmp/alight-\(user)-3")
        #expect(chmod("\(first)-3", 0o777) == 0)
        #expect(found().path.description == "\(first)-4")
        #expect(found().passedOver == first)
        let candidates = RuntimeDirectories(session: nil, temporary: parent, user: user).forScratch.map(\.self)
        #expect(candidates.first { $0.path == first }?.problem == "'\(first)' is not a private directory of this user")
        #expect(candidates.first { $0.path.description == "\(first)-4" }?.problem == nil)
        try directory.directory("tmp/alight-\(user)-4", mode: 0o700)
        // The obstacle is gone, but another process already uses the directory.
        #expect(unlink(first.description) == 0)
        #expect(found().path.description == "\(first)-4")
        #expect(mkdir(first.description, 0o700) == 0)
        #expect(found() == UserDirectory(in: parent, user: user))
        #expect(found().path == first)
    }

    @Test func `the directories of a killed process are removed, and those of a live one are not`() throws {
        let (living, other) = (
            ScratchDirectories(in: .first(scratch.base)), ScratchDirectories(in: .first(scratch.base))
        )
        let retained = try living.make()
        try directory.directory("run/alight/run-4-1/deep")
        try directory.write("run/alight/run-4-1/deep/file", "x")
        try directory.directory("run/alight/run-x-1")
        // A process that holds the lock of its directory, as an instance of Alight does, and is killed.
        let holder = Process()
        holder.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
        try directory.directory("run/alight/run-5-1/deep")
        holder.arguments = ["\(scratch.base)/run-5-1", "sh", "-c", "echo; exec cat"]
        let (input, output) = (Pipe(), Pipe())
        holder.standardInput = input
        holder.standardOutput = output
        try holder.run()
        try #require(try output.fileHandleForReading.read(upToCount: 1) != nil)
        func left() throws -> Set<String> {
            Set(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.base)"))
        }
        let own = String(decoding: retained.parent.lastComponent, as: UTF8.self)
        other.removeAbandoned()
        #expect(try left() == [own, "run-5-1", "run-x-1"])
        #expect(FileManager.default.fileExists(atPath: "\(retained)"))
        kill(holder.processIdentifier, SIGKILL)
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        #expect(
            Deadline.wait {
                other.removeAbandoned()
                return (try? left()) == [own, "run-x-1"]
            })
        try ScratchDirectories.remove(retained)
        living.removeInstanceDirectory()
        #expect(try left() == ["run-x-1"])
    }

    @Test func `a process that knows an earlier directory cannot write into a later one`() throws {
        let first = try scratch.make()
        try ScratchDirectories.remove(first)
        let second = try scratch.make()
        #expect(throws: (any Error).self) { try Data().write(to: URL(fileURLWithPath: "\(first)/late")) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(second)") == [])
        scratch.removeInstanceDirectory()
    }

    @Test func `names that a program has created are skipped, and removed at the end`() throws {
        let first = try scratch.make()
        let own = first.parent
        for number in 2...5 { try directory.directory("run/alight/\(own.lastComponent.text)/\(number)/deep") }
        try directory.write("run/alight/\(own.lastComponent.text)/6", "x")
        let second = try scratch.make()
        #expect(second == own.appending("7"))
        try ScratchDirectories.remove(first)
        try ScratchDirectories.remove(second)
        scratch.removeInstanceDirectory()
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.base)") == [])
    }

    @Test(arguments: ["run-", "alight"])
    func `a removed directory of this instance is created again, and locked`(what: String) throws {
        let first = try scratch.make()
        try ScratchDirectories.remove(first)
        let gone = what == "alight" ? scratch.base : first.parent
        try FileManager.default.removeItem(atPath: "\(gone)")
        let second = try scratch.make()
        #expect(FileManager.default.fileExists(atPath: "\(second)"))
        ScratchDirectories(in: .first(scratch.base)).removeAbandoned()
        #expect(FileManager.default.fileExists(atPath: "\(second)"))
        try ScratchDirectories.remove(second)
        scratch.removeInstanceDirectory()
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.base)") == [])
    }

    @Test func `the next directory is used when this one can be neither used nor created again`() throws {
        let first = try scratch.make()
        // Another file has the name, as no other reason stops root.
        try FileManager.default.removeItem(atPath: "\(scratch.base)")
        try directory.write("run/alight", "x")
        let second = try scratch.make()
        #expect(!second.bytes.starts(with: directory.path.bytes))
        #expect(FileManager.default.fileExists(atPath: "\(second)"))
        #expect(!FileManager.default.fileExists(atPath: "\(first)"))
        scratch.removeInstanceDirectory()
        #expect(!FileManager.default.fileExists(atPath: "\(second.parent)"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can mount"), arguments: ["", "m", "deep/m", "abandoned/m"])
    func `a mount in a directory stays, with the directory`(location: String) throws {
        let precious = try directory.directory("precious/deep")
        try directory.write("precious/deep/file", "kept")
        let isAbandoned = location == "abandoned/m"
        let made = try isAbandoned ? directory.directory("run/alight/run-4-1") : scratch.make()
        let mounted = location.isEmpty ? made : made.appending(location)
        try FileManager.default.createDirectory(atPath: "\(mounted)", withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: "\(made)/own"))
        let source = precious.parent
        let error = source.withCString { from in mounted.withCString { mount(from, $0, nil, UInt(MS_BIND), nil) } }
        try #require(error == 0)
        defer { _ = mounted.withCString { umount2($0, Int32(MNT_DETACH)) } }
        if isAbandoned {
            scratch.removeAbandoned()
        } else {
            let failure = #expect(throws: ScratchFailure.self) { try ScratchDirectories.remove(made) }
            #expect(failure?.message.contains("mounted at '\(mounted)'; unmount it") == true)
            scratch.removeInstanceDirectory()
        }
        #expect(directory.text(of: "precious/deep/file") == "kept")
        #expect(FileManager.default.fileExists(atPath: "\(mounted)/deep/file"))
        try #require(mounted.withCString { umount2($0, Int32(MNT_DETACH)) } == 0)
        if !location.isEmpty { #expect(!FileManager.default.fileExists(atPath: "\(made)/own")) }
        try ScratchDirectories.remove(made)
        #expect(!FileManager.default.fileExists(atPath: "\(made)"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can mount"))
    func `a file with a mount stays, and a mount is detected without openat2 too`() throws {
        let made = try scratch.make()
        let precious = try directory.write("precious", "kept")
        let file = made.appending("file")
        let inner = made.appending("inner")
        try Data().write(to: URL(fileURLWithPath: "\(file)"))
        for name in ["inner", "plain"] { #expect(made.appending(name).withCString { mkdir($0, 0o700) } == 0) }
        for (from, to) in [(precious, file), (directory.path, inner)] {
            let error = from.withCString { from in to.withCString { mount(from, $0, nil, UInt(MS_BIND), nil) } }
            try #require(error == 0)
        }
        defer { for location in [file, inner] { _ = location.withCString { umount2($0, Int32(MNT_DETACH)) } } }
        let parent = made.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        defer { close(parent) }
        for open in [cal_open_unmounted, cal_open_unmounted_by_ids] {
            #expect(open(parent, "inner") == -EXDEV)
            let plain = open(parent, "plain")
            #expect(plain >= 0)
            close(plain)
            #expect(open(parent, "nothing") == -ENOENT)
        }
        #expect(throws: ScratchFailure.self) { try ScratchDirectories.remove(made) }
        #expect(directory.text(of: "precious") == "kept")
        for location in [file, inner] { try #require(location.withCString { umount2($0, Int32(MNT_DETACH)) } == 0) }
        try ScratchDirectories.remove(made)
        scratch.removeInstanceDirectory()
    }
}

extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}

extension ArraySlice<UInt8> {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
