import ActionAPI
import FileActions
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Tests for the `archive` handler.
struct ArchiveHandlerTests {
    static let endings = ["zip", "tar", "tar.gz", "tgz", "tar.xz", "tar.zst", "tar.bz2"]

    /// Unpacks an archive with `bsdtar` and returns the listing of the result.
    private func content(of archive: PathBytes, in directory: PathBytes) -> [String] {
        let target = directory.appending("unpacked")
        TestFile.removeTree(target)
        TestFile.makeDirectory(target)
        let done = call("/usr/bin/bsdtar", ["-xpf", archive.description, "-C", target.description], in: directory)
        #expect(done.status == 0, "\(done.error)")
        return listing(target)
    }

    @Test(arguments: endings)
    func `a file and a directory are packed in the format that the extension names`(ending: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("sub/b.txt"), "bb")
            TestFile.write(rule.path("sub/deep/a.txt"), "a")
            TestFile.makeDirectory(rule.path("sub/empty"))
            _ = rule.path("sub/link").withCString { symlink("/etc/passwd", $0) }
            let file = rule.run("sub/b.txt", ["to": .string("out/${stem}.\(ending)")])
            #expect(file.result == .succeeded, "\(file.message)")
            #expect(file.outputs == [tree.path("out/b.\(ending)")])
            #expect(file.message == "1 file packed into \(tree.root)/out/b.\(ending)")
            #expect(content(of: tree.path("out/b.\(ending)"), in: tree.root) == ["sub/b.txt: bb"])
            let outcome = rule.run("sub", ["to": .string("out/all.\(ending)"), "name": "top/${name}"])
            #expect(outcome.values == ["files": 3, "bytes": 3])
            #expect(
                content(of: tree.path("out/all.\(ending)"), in: tree.root)
                    == [
                        "top/sub/b.txt: bb", "top/sub/deep/a.txt: a", "top/sub/empty/", "top/sub/link -> /etc/passwd",
                    ])
        }
    }

    @Test func `the format can be set and must be known`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("a"), "text")
            #expect(rule.run("a", ["to": "out/x", "format": "tar.zst"]).result == .succeeded)
            #expect((TestFile.read(tree.path("out/x")) ?? []).starts(with: [0x28, 0xB5, 0x2F, 0xFD]))
            let unknown = rule.run("a", ["to": "out/x.rar"])
            #expect(unknown.result == .failed)
            #expect(unknown.message.contains("out/x.rar' doesn't have the extension of an archive; end it with .zip, "))
        }
    }

    @Test(arguments: ["zip", "tar", "tar.gz", "tar.xz", "tar.zst", "tar.bz2"])
    func `the same files produce the same archive, sorted by name`(ending: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            // Created in an order other than the order of the names.
            for name in ["c", "a", "b/z", "b/y", "ä"] { TestFile.write(rule.path("set/\(name)"), name) }
            #expect(rule.run("set", ["to": .string("out/1.\(ending)")]).result == .succeeded)
            // The same content with the same times, as other files.
            let copied = call("/bin/cp", ["-a", "in/set", "in/other"], in: tree.root)
            #expect(copied.status == 0)
            // Some formats store times in whole seconds, so a stored current time would differ only after one second.
            Deadline.pause(.milliseconds(1100))
            #expect(rule.run("other", ["to": .string("out/2.\(ending)"), "name": "set"]).result == .succeeded)
            #expect(
                TestFile.read(tree.path("out/1.\(ending)")) == TestFile.read(tree.path("out/2.\(ending)"))
            )
            let list = call(
                "/usr/bin/bsdtar", ["-tf", "out/1.\(ending)"], in: tree.root, environment: ["LANG": "C.UTF-8"])
            #expect(
                list.output.split(separator: "\n")
                    == ["set/", "set/a", "set/b/", "set/b/y", "set/b/z", "set/c", "set/ä"], "\(list.output)")
        }
    }

    @Test func `all files of a batch go into one archive, and missing files are skipped`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            for name in ["c.txt", "a.txt", "sub/a.txt"] { TestFile.write(rule.path(name), name) }
            let outcomes = rule.run(["c.txt", "gone.txt", "a.txt", "sub/a.txt"], ["to": "out/all.zip"])
            #expect(outcomes.map(\.result) == [.succeeded, .skipped, .succeeded, .succeeded])
            #expect(outcomes[0].message == "3 files packed into \(tree.root)/out/all.zip")
            #expect(TestFile.names(in: tree.path("out")).count == 1)
            #expect(
                content(of: tree.path("out/all.zip"), in: tree.root)
                    == ["a.txt: a.txt", "c.txt: c.txt", "sub/a.txt: sub/a.txt"])
            let same = rule.run(["a.txt", "sub/a.txt"], ["to": "out/same.zip", "name": "${name}"])
            #expect(same.map(\.result) == [.succeeded, .failed])
            #expect(same[1].message.contains("two files would be 'a.txt' in"))
            let nothing = rule.run(["gone"], ["to": "out/nothing.zip"])
            #expect(nothing.map(\.result) == [.skipped])
            #expect(!TestFile.exists(tree.path("out/nothing.zip")))
        }
    }

    @Test(arguments: ["zip", "tar.gz"])
    func `odd names and modes survive a round trip, except set-user-id`(ending: String) throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            let names: [[UInt8]] = [
                Array("new\nline".utf8), Array("-dash".utf8), Array("back\\slash".utf8), Array("ünï".utf8),
                [0x66, 0xFF, 0xFE], Array(repeating: UInt8(ascii: "x"), count: 255),
            ]
            for name in names { TestFile.write(rule.path("set").appending(name), "text") }
            let program = rule.path("set/program")
            TestFile.write(program, "text")
            _ = program.withCString { chmod($0, 0o6751) }
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_234_567_890, tv_nsec: 0)]
            _ = program.withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            #expect(rule.run("set", ["to": .string("in/set.\(ending)")]).result == .succeeded)
            let back = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            let outcome = back.run("set.\(ending)", ["to": "back"])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            // A zip has no other encoding than UTF-8 and code page 437.
            let decoded = ending == "zip" ? Array("f\u{A0}■".utf8) : names[4]
            let expected = names.map { $0 == names[4] ? decoded : $0 } + [Array("program".utf8)]
            #expect(Set(TestFile.names(in: tree.path("back/set"))) == Set(expected))
            let there = try metadata(tree.path("back/set/program"))
            #expect(there.mode == 0o751)
            #expect(there.modified.seconds == 1_234_567_890)
        }
    }

    @Test func `entries that are not files, directories or links are skipped with a warning`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("set/a"), "text")
            _ = rule.path("set/pipe").withCString { mkfifo($0, 0o600) }
            #expect(rule.run("set", ["to": "out/a.tar"]).result == .succeeded)
            #expect(content(of: tree.path("out/a.tar"), in: tree.root) == ["set/a: text"])
            #expect(rule.log.all.contains { $0.contains("/set/pipe' is not a file, directory or link") })
        }
    }

    @Test(.enabled(if: geteuid() == 0)) func `a mount inside a directory is skipped with a warning`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("set/a"), "text")
            TestFile.makeDirectory(rule.path("set/disk"))
            let disk = rule.path("set/disk")
            try #require(disk.withCString { mount("alight-test", $0, "tmpfs", 0, "size=1m") } == 0)
            defer { _ = disk.withCString { umount2($0, Int32(MNT_DETACH)) } }
            TestFile.write(disk.appending("other"), "text")
            #expect(rule.run("set", ["to": "out/a.tar"]).result == .succeeded)
            #expect(content(of: tree.path("out/a.tar"), in: tree.root) == ["set/a: text"])
            #expect(
                rule.log.all.contains {
                    $0.contains("/set/disk' is not a file, directory or link, or is a mount point")
                })
        }
    }

    @Test func `directories that are nested too deeply are refused`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(rule.path("set/" + Array(repeating: "d", count: 300).joined(separator: "/")))
            let outcome = rule.run("set", ["to": "out/a.tar"])
            #expect(outcome.result == .failed)
            #expect(outcome.code == "too-deep")
            #expect(!TestFile.exists(tree.path("out/a.tar")))
        }
    }

    @Test func `an archive inside the directory that it packs does not contain itself`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("set/a"), "text")
            let with: JSONValue = ["to": "in/set/a.tar", "on_conflict": "overwrite"]
            #expect(rule.run("set", with).result == .succeeded)
            #expect(content(of: rule.path("set/a.tar"), in: tree.root) == ["set/a: text"])
        }
    }

    @Test(arguments: ["../x", "a/../../x", "/"])
    func `an entry name that leads out of the archive is refused`(name: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("a"), "text")
            let outcome = rule.run("a", ["to": "out/a.zip", "name": .string(name)])
            #expect(outcome.result == .failed)
            #expect(outcome.message.contains("can't be a path in an archive"))
            #expect(!TestFile.exists(tree.path("out")))
        }
    }

    static let conflicts = [
        ContentRow(
            "rename", before: ["in/a.txt": "text", "out/a.zip": "old"], with: ["to": "out/a.zip"],
            message: "1 file packed into @/out/a (1).zip",
            after: ["in/a.txt: text", "out/a (1).zip: 178 bytes", "out/a.zip: old"]),
        ContentRow(
            "overwrite", before: ["in/a.txt": "text", "out/a.zip": "old"],
            with: ["to": "out/a.zip", "on_conflict": "overwrite"],
            after: ["in/a.txt: text", "out/a.zip: 178 bytes"]),
        ContentRow(
            "skip", before: ["in/a.txt": "text", "out/a.zip": "old"],
            with: ["to": "out/a.zip", "on_conflict": "skip"], outcome: .skipped,
            after: ["in/a.txt: text", "out/a.zip: old"]),
        ContentRow(
            "fail", before: ["in/a.txt": "text", "out/a.zip": "old"],
            with: ["to": "out/a.zip", "on_conflict": "fail"], outcome: .failed,
            after: ["in/a.txt: text", "out/a.zip: old"]),
    ]

    @Test(arguments: conflicts)
    func `an archive action leaves these files`(row: ContentRow) { row.play(ArchiveHandler(trash: Trash(home: nil))) }

    @Test func `a second attempt finds the archive of the first one`() {
        withTempTree { tree in
            var rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("a"), "text")
            TestFile.write(tree.path("out/a.zip"), "another")
            #expect(rule.run("a", ["to": "out/a.zip"]).outputs == [tree.path("out/a (1).zip")])
            rule.attempt = 2
            let second = rule.run("a", ["to": "out/a.zip"])
            #expect(second.outputs == [tree.path("out/a (1).zip")])
            #expect(second.message.contains("an earlier attempt created it at"))
            #expect(TestFile.names(in: tree.path("out")).count == 2)
        }
    }

    @Test func `a stop and a timeout leave nothing behind`() {
        withTempTree { tree in
            var rule = ContentRule(tree.root, ArchiveHandler(trash: Trash(home: nil)))
            TestFile.write(rule.path("a"), "text")
            rule.timeout = .zero
            #expect(rule.run("a", ["to": "out/a.zip"]).code == "timed-out")
            rule.timeout = .seconds(60)
            rule.stop.raise()
            #expect(rule.run("a", ["to": "out/a.zip"]).isInterrupted)
            #expect(TestFile.names(in: tree.path("out")).isEmpty)
        }
    }
}
