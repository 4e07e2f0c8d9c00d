import ActionAPI
import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// The trash, according to the specification of freedesktop.org.
struct TrashTests {
    /// Creates a trash that uses local time in a zone two hours ahead of UTC.
    static func trash(_ home: PathBytes?) -> Trash { Trash(home: home, clock: LocalClock { _ in 7200 }) }

    /// Reads the original path and the deletion date from a `.trashinfo` file, as a desktop does.
    static func original(_ info: PathBytes) -> (path: [UInt8], date: String)? {
        guard let bytes = TestFile.read(info) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard lines.first == "[Trash Info]", lines.count == 3, lines[1].hasPrefix("Path="),
            lines[2].hasPrefix("DeletionDate=")
        else { return nil }
        var path: [UInt8] = []
        var rest = lines[1].dropFirst(5).utf8[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "%"),
                let hex = UInt8(String(decoding: rest.dropFirst().prefix(2), as: UTF8.self), radix: 16)
            {
                path.append(hex)
                rest = rest.dropFirst(3)
            } else {
                guard byte < 0x80, byte > 0x20 else { return nil }
                path.append(byte)
                rest = rest.dropFirst()
            }
        }
        return (path, String(lines[2].dropFirst(13)))
    }

    @Test func `a file goes to the home trash of its file system, and can be restored`() throws {
        try withTempTree { tree in
            let name: [UInt8] = Array("ä b%\n".utf8) + [0xff]
            let source = tree.path("in").appending(name)
            TestFile.write(source, "new")
            let before = time(nil)
            let outcome = BuiltInRun(TrashHandler(trash: Self.trash(tree.path("data/Trash"))))(source, [:])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(!TestFile.exists(source))
            let there = tree.path("data/Trash/files").appending(name)
            #expect(TestFile.read(there) == Array("new".utf8))
            let info = tree.path("data/Trash/info").appending(name + Array(".trashinfo".utf8))
            let original = try #require(Self.original(info))
            #expect(original.path == source.bytes)
            // The date is local time, in the format of the specification.
            var parts = tm()
            let match = try #require(original.date.wholeMatch(of: /(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)/)?.output)
            func number(_ text: Substring) -> Int32 { Int32(text) ?? 0 }
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (
                number(match.1) - 1900, number(match.2) - 1, number(match.3)
            )
            (parts.tm_hour, parts.tm_min, parts.tm_sec) = (number(match.4), number(match.5), number(match.6))
            #expect(abs(timegm(&parts) - 7200 - before) < 60)
            let change = try #require(outcome.changes.first)
            #expect(change.kind == .trashed(from: source, to: there, info: info))
            #expect(change.left == FileMark(try metadata(there)))
            for directory in ["data/Trash", "data/Trash/files", "data/Trash/info"] {
                let mode = try metadata(tree.path(directory)).mode
                #expect(mode == 0o700)
            }
        }
    }

    @Test func `a name that is already used in the trash is not reused`() throws {
        withTempTree { tree in
            let run = BuiltInRun(TrashHandler(trash: Self.trash(tree.path("Trash"))))
            for number in 0..<3 {
                TestFile.write(tree.path("in/a.txt"), "\(number)")
                #expect(run(tree.path("in/a.txt"), [:]).result == .succeeded)
            }
            // One entry without its file, and one without its information.
            TestFile.write(tree.path("Trash/info/b.trashinfo"), "[Trash Info]\n")
            TestFile.write(tree.path("Trash/files/b.2"), "of somebody else")
            TestFile.write(tree.path("in/b"), "b")
            #expect(run(tree.path("in/b"), [:]).result == .succeeded)
            TestFile.write(tree.path("in/d/x"), "x")
            #expect(run(tree.path("in/d"), [:]).result == .succeeded)
            #expect(
                listing(tree.path("Trash/files")) == [
                    "a.txt: 0", "a.txt.2: 1", "a.txt.3: 2", "b.2: of somebody else", "b.3: b", "d/x: x",
                ])
            #expect(listing(tree.path("Trash/info")).count == 6)
        }
    }

    @Test(arguments: ["none", "sticky", "not sticky", "a link"])
    func `on another file system the trash is a directory at its top`(shared: String) throws {
        try withTempTree { tree in
            guard let disk = FileErrorTests.Mounted(tree.path("disk")) else { return }
            let common = disk.path.appending(".Trash")
            switch shared {
            case "sticky", "not sticky":
                TestFile.makeDirectory(common)
                _ = common.withCString { chmod($0, shared == "sticky" ? 0o1777 : 0o777) }
            case "a link":
                TestFile.makeDirectory(tree.path("elsewhere"))
                _ = tree.path("elsewhere").withCString { chmod($0, 0o1777) }
                _ = common.withCString { symlink("../elsewhere", $0) }
            default: break
            }
            let source = disk.path.appending("in/deep/a b")
            TestFile.write(source, "new")
            let outcome = BuiltInRun(TrashHandler(trash: Self.trash(tree.path("data/Trash"))))(source, [:])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            let trash = shared == "sticky" ? ".Trash/\(geteuid())" : ".Trash-\(geteuid())"
            #expect(TestFile.read(disk.path.appending("\(trash)/files/a b")) == Array("new".utf8))
            let original = try #require(Self.original(disk.path.appending("\(trash)/info/a b.trashinfo")))
            // The path is relative to the top directory, so that the disk can be mounted elsewhere.
            #expect(original.path == Array("in/deep/a b".utf8))
            #expect(listing(tree.path("elsewhere")).isEmpty && !TestFile.exists(tree.path("data")))
        }
    }

    @Test func `without a trash the file stays, and the message gives the reason`() {
        withTempTree { tree in
            guard let disk = FileErrorTests.Mounted(tree.path("disk")) else { return }
            TestFile.write(disk.path.appending("a"), "new")
            TestFile.write(disk.path.appending(".Trash-\(geteuid())"), "no folder")
            let outcome = BuiltInRun(TrashHandler(trash: Self.trash(nil)))(disk.path.appending("a"), [:])
            #expect(outcome.result == .failed)
            #expect(outcome.message.contains(".Trash-\(geteuid())'"), "\(outcome.message)")
            #expect(TestFile.exists(disk.path.appending("a")))
        }
    }

    @Test(arguments: BuiltInLocationTests.kinds)
    func `an existing file goes to the trash if on_conflict specifies it`(_ kind: BuiltInLocationTests.Kind) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a"), "new")
            TestFile.write(tree.path("out/a"), "old")
            let trash = Self.trash(tree.path("Trash"))
            let handler: any Handler =
                kind.takes ? TransferHandler.move(trash: trash) : TransferHandler.copy(trash: trash)
            let outcome = BuiltInRun(handler)(tree.path("in/a"), ["to": tree.path("out/"), "on_conflict": "trash"])
            #expect(outcome.outputs == [tree.path("out/a")], "\(outcome.message)")
            #expect(listing(tree.path("out")) == ["a: new"])
            #expect(listing(tree.path("Trash/files")) == ["a: old"])
            let root = tree.root
            #expect(
                outcome.changes.map { $0.text(below: root) } == [
                    "trashed out/a Trash/files/a", kind.takes ? "moved in/a out/a" : "made out/a of in/a",
                ])
            let original = try #require(Self.original(tree.path("Trash/info/a.trashinfo")))
            #expect(original.path == tree.path("out/a").bytes)
        }
    }

    @Test func `trash-cli finds the trashed file`() throws {
        guard TestFile.exists("/usr/bin/trash-list") else {
            print("skipped: trash-cli is not installed")
            return
        }
        try withTempTree { tree in
            TestFile.write(tree.path("in/a b"), "new")
            _ = BuiltInRun(TrashHandler(trash: Self.trash(tree.path("data/Trash"))))(tree.path("in/a b"), [:])
            let list = RunningProgram(
                "/usr/bin/trash-list", [], in: tree.root, environment: ["XDG_DATA_HOME": "\(tree.path("data"))"],
                output: tree.path("list"))
            #expect(list.wait() == 0)
            let found = try #require(list.lines.first)
            #expect(found.hasSuffix(" \(tree.path("in/a b"))"))
        }
    }
}
