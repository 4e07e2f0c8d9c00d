import FileEvents
import Foundation
import Glibc
import Testing

@testable import Handling

/// The folders of attempts that were cut off, which are removed by the ids that a journal has.
struct ScratchFolderTests {
    let folder: TemporaryFolder
    let scratch: ScratchFolders

    init() throws {
        folder = try TemporaryFolder()
        scratch = ScratchFolders(base: try folder.folder("run/alight", mode: 0o700))
    }

    @Test func `what an attempt has left is removed with its folder`() throws {
        let id = "01JD8Z3T1WQ2V7N0C5M4K9R6XB"
        try folder.write("run/alight/keep", "x")
        try folder.folder("run/alight/\(id)/deep")
        try folder.write("run/alight/\(id)/deep/file", "x")
        scratch.discard(for: id)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.base)") == ["keep"])
    }

    @Test func `folders of a process that was killed are removed, and of one that lives none`() throws {
        let (living, other) = (ScratchFolders(base: scratch.base), ScratchFolders(base: scratch.base))
        let kept = try living.make()
        try folder.folder("run/alight/run-4-1/deep")
        try folder.write("run/alight/run-4-1/deep/file", "x")
        try folder.folder("run/alight/run-x-1")
        // A process that holds the lock of its folder, as an Alight does, and is killed.
        let holder = Process()
        holder.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
        try folder.folder("run/alight/run-5-1/deep")
        holder.arguments = ["\(scratch.base)/run-5-1", "sh", "-c", "echo; exec cat"]
        let (input, output) = (Pipe(), Pipe())
        holder.standardInput = input
        holder.standardOutput = output
        try holder.run()
        try #require(try output.fileHandleForReading.read(upToCount: 1) != nil)
        func left() throws -> Set<String> {
            Set(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.base)"))
        }
        let own = String(decoding: kept.parent.lastComponent, as: UTF8.self)
        other.removeAbandoned()
        #expect(try left() == [own, "run-5-1", "run-x-1"])
        #expect(FileManager.default.fileExists(atPath: "\(kept)"))
        kill(holder.processIdentifier, SIGKILL)
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        #expect(
            eventually {
                other.removeAbandoned()
                return (try? left()) == [own, "run-x-1"]
            })
        try living.remove(kept)
        living.giveUp()
        #expect(try left() == ["run-x-1"])
    }

    @Test func `a folder that was left as it was is given again, and any other is not`() throws {
        let first = try scratch.make()
        let second = try scratch.make()
        #expect(first != second)
        try scratch.remove(first)
        #expect(try scratch.make() == first)
        let changes: [(PathBytes) -> Bool] = [
            { $0.appending("a").withCString { mkdir($0, 0o700) } == 0 },
            { $0.appending("a").withCString { symlink("/etc", $0) } == 0 },
            { $0.withCString { chmod($0, 0o755) } == 0 },
            { $0.withCString { chown($0, .max, getegid()) } == 0 },
            { $0.withCString { rmdir($0) } == 0 },
        ]
        for change in changes {
            let folder = try scratch.make()
            // In another tick of the clock of files than that in which it was made.
            usleep(20_000)
            #expect(change(folder))
            try scratch.remove(folder)
            let next = try scratch.make()
            var status = stat()
            #expect(next.withCString { lstat($0, &status) } == 0 && status.st_mode & 0o7777 == 0o700)
            #expect(try FileManager.default.contentsOfDirectory(atPath: "\(next)") == [])
            if change(folder) == false { #expect(next != folder) }
            try scratch.remove(next)
        }
        // What is changed after it was given back.
        let late = try scratch.make()
        try scratch.remove(late)
        usleep(20_000)
        try Data().write(to: URL(fileURLWithPath: "\(late)/a"))
        #expect(try scratch.make() != late)
        scratch.giveUp()
    }

    @Test(
        arguments: ["", ".", "..", "../..", "../../x", "keep", "a/../../keep", String(repeating: ".", count: 26)])
    func `an id that is none removes nothing`(id: String) throws {
        for name in ["x", "run/x", "run/alight/x"] { try folder.folder(name) }
        for name in ["keep", "run/keep", "run/alight/keep", "x/file", "run/x/file"] { try folder.write(name, "x") }
        let before = try FileManager.default.subpathsOfDirectory(atPath: "\(folder.path)").sorted()
        scratch.discard(for: id)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: "\(folder.path)").sorted() == before)
    }
}
