import ActionAPI
import FileActions
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Archives that `extract` unpacks.
struct ExtractHandlerTests {
    // MARK: Undo

    @Test func `undo removes unchanged entries, and nothing that was changed or added since`() throws {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make(
                """
                tar("in/a.tar", file("one"), hard("two", "one"), hard("d/three", "one"), link("d/link", "../one"),
                    file("d/e/f"), folder("empty"), file("mode"), file("moved"), file("written"), file("twin"))
                """, in: tree.root)
            let invocation = rule.invocation(rule.path("a.tar"), ["to": "out/"])
            let outcome = rule.handler.run(invocation)
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(outcome.changes.count == 2, "the folder that was made, and what was unpacked")
            let out = tree.path("out/a")
            _ = out.appending("mode").withCString { chmod($0, 0o600) }
            _ = out.appending("moved").withCString { from in
                out.appending("d/moved").withCString { rename(from, $0) }
            }
            _ = out.appending("twin").withCString { from in tree.path("twin").withCString { link(from, $0) } }
            TestFile.write(out.appending("written"), Array("x".utf8), appending: true)
            TestFile.makeDirectory(out.appending("mine"))
            let left = ["d/moved", "mine", "mode", "twin", "written"].map { out.appending($0) }
            let reason =
                "changed or added since, and not removed: '\(left[0])', '\(left[1])', '\(left[2])' and 2 more"
            for isDry in [true, false] {
                var undoing = Undoing(isDry: isDry)
                let reasons = outcome.changes.reversed().map { undoing.undo($0, of: invocation.job.event) }
                #expect(reasons == [reason, nil], "a folder that isn't empty is no fault")
            }
            #expect(left.allSatisfy { TestFile.exists($0) })
            #expect(TestFile.names(in: out).count == 5 && TestFile.names(in: out.appending("d")).count == 1)
        }
    }

    @Test func `undo leaves the files of an archive that no longer exists`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make("tar('in/a.tar', file('one'))", in: tree.root)
            let invocation = rule.invocation(rule.path("a.tar"), ["to": "out/"])
            let change = try #require(rule.handler.run(invocation).changes.last)
            _ = rule.path("a.tar").withCString { unlink($0) }
            var undoing = Undoing()
            let reason = undoing.undo(change, of: invocation.job.event)
            #expect(reason?.hasSuffix("may be the only copy") == true, "\(reason ?? "")")
            #expect(TestFile.exists(tree.path("out/a/one")))
        }
    }

    // MARK: Unpacking

    @Test(arguments: ["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "zip", "7z"])
    func `files, directories, modes, times and links are unpacked unchanged`(fileExtension: String) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("src/sub/b"), "bb")
            TestFile.write(tree.path("src/a"), "a")
            TestFile.makeDirectory(tree.path("src/empty"))
            _ = tree.path("src/sub/link").withCString { symlink("../a", $0) }
            _ = tree.path("src/a").withCString { chmod($0, 0o4750) }
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_234_567_890, tv_nsec: 0)]
            for name in ["src/a", "src/sub"] { _ = tree.path(name).withCString { utimensat(AT_FDCWD, $0, &times, 0) } }
            TestFile.makeDirectory(tree.path("in"))
            let format = fileExtension == "7z" ? "7zip" : fileExtension == "zip" ? "zip" : "pax"
            let packed = call(
                "/usr/bin/bsdtar",
                ["-caf", "in/x.\(fileExtension)", "--format", format, "-C", "src", "a", "empty", "sub"],
                in: tree.root)
            #expect(packed.status == 0, "\(packed.error)")
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            let outcome = rule.run("x.\(fileExtension)", ["to": "out/"])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(outcome.message == "5 entries unpacked into \(tree.root)/out/x")
            #expect(outcome.outputs == [tree.path("out/x")])
            #expect(listing(tree.path("out")) == ["x/a: a", "x/empty/", "x/sub/b: bb", "x/sub/link -> ../a"])
            let file = try metadata(tree.path("out/x/a"))
            #expect(file.mode == 0o750)
            #expect(file.modified.seconds == 1_234_567_890)
            try #expect(metadata(tree.path("out/x/sub")).modified.seconds == 1_234_567_890)
            try #expect(metadata(tree.path("out/x")).mode == 0o755)
        }
    }

    @Test func `a hard link is the same file, and the later of two entries wins`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make(
                """
                tar("in/x.tar", file("a", b"1"), hard("sub/b", "a"), link("c", "a"), hard("d", "c"), file("e", b"old"),
                    link("f", "a"), file("./e", b"new"), file("f", b"file"), folder("./"))
                """, in: tree.root)
            let outcome = rule.run("x.tar", ["to": "out"])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(
                listing(tree.path("out")) == ["a: 1", "c -> a", "d -> a", "e: new", "f: file", "sub/b: 1"])
            let identities = try ["out/a", "out/sub/b"].map { try metadata(tree.path($0)).identity }
            #expect(identities[0] == identities[1])
        }
    }

    @Test func `the owner can write to an unpacked directory, and no mode grants rights`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make(
                #"tar("in/x.tar", folder("d", 0o7000), file("d/a", mode=0o7000), file("w", mode=0o666))"#, in: tree.root
            )
            #expect(rule.run("x.tar", ["to": "out"]).result == .succeeded)
            try #expect(metadata(tree.path("out/d")).mode == 0o700)
            try #expect(metadata(tree.path("out/d/a")).mode == 0o600)
            try #expect(metadata(tree.path("out/w")).mode == 0o644)
        }
    }

    // MARK: Names

    /// A script that stores names in a ZIP unchanged: (the stored bytes, whether they are marked as UTF-8, and the name
    /// in the Unicode path field together with the name of its checksum).
    private static let stored = #"""
        import struct, zlib
        def names(*entries):
            class Info(zipfile.ZipInfo):
                def _encodeFilenameFlags(self): return self.raw, self.bits
            with zipfile.ZipFile("in/x.zip", "w") as archive:
                for number, (raw, bits, unicode) in enumerate(entries):
                    info = Info(f"{number}"); info.raw, info.bits = raw, bits
                    info.external_attr = 0o100644 << 16
                    if unicode:
                        field = struct.pack("<BI", 1, zlib.crc32(unicode[1])) + unicode[0].encode()
                        info.extra = struct.pack("<HH", 0x7075, len(field)) + field
                    archive.writestr(info, "text")

        """#

    static let names = [
        (#"(b"caf\x82", 0, None)"#, "café"),
        (#"(b"\x81ber/\x84\x94\xe1.txt", 0, None)"#, "über/äöß.txt"),
        (#"("é".encode(), 0, None)"#, "é"),
        (#"("日本".encode(), 0x800, None)"#, "日本"),
        (#"(b"plain", 0, ("日本", b"plain"))"#, "日本"),
        (#"(b"caf\x82", 0, ("日本", b"caf\x82"))"#, "日本"),
    ]

    @Test(arguments: names)
    func `a name in a ZIP is decoded as the format specifies`(entry: String, name: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(tree.path("in"))
            ArchiveMaker.make(Self.stored + "names(\(entry))", in: tree.root)
            let outcome = rule.run("x.zip", ["to": "out"])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(listing(tree.path("out")) == ["\(name): text"])
        }
    }

    static let macEntries = [
        #"zip("in/x", ("a", "1", 0o100644), ("__MACOSX/._a", "2", 0o100644), ("d/.DS_Store", "3", 0o100644), (".DS_Store", "", 0o100644))"#,
        #"tar("in/x", file("a", b"1"), folder("__MACOSX"), file("__MACOSX/._a"), file("d/.DS_Store"))"#,
    ]

    @Test(arguments: macEntries)
    func `metadata of macOS is not unpacked by default`(lines: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make(lines, in: tree.root)
            let exclude: JSONValue = ["**/__MACOSX", "**/.DS_Store"]
            #expect(rule.run("x", ["to": "out", "exclude": exclude]).result == .succeeded)
            #expect(listing(tree.path("out")) == ["a: 1"])
            #expect(rule.run("x", ["to": "all", "exclude": []]).result == .succeeded)
            #expect(listing(tree.path("all")).count > 2)
            #expect(rule.run("x", ["to": "none", "exclude": ["[a"]]).code == "bad-parameters")
        }
    }

    // MARK: Destination

    static let conflicts: [(String, Outcome.Result, [String])] = [
        ("rename", .succeeded, ["x/a: old", "x/other: kept", "x (1)/a: new"]),
        ("overwrite", .succeeded, ["x/a: new"]),
        ("skip", .skipped, ["x/a: old", "x/other: kept"]),
        ("fail", .failed, ["x/a: old", "x/other: kept"]),
    ]

    @Test(arguments: conflicts)
    func `an existing directory is handled as a whole`(word: String, result: Outcome.Result, after: [String]) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.write(tree.path("out/x/a"), "old")
            TestFile.write(tree.path("out/x/other"), "kept")
            ArchiveMaker.make(#"tar("in/x.tar.gz", file("a", b"new"), mode="w:gz")"#, in: tree.root)
            let outcome = rule.run("x.tar.gz", ["to": "out/", "on_conflict": .string(word)])
            #expect(outcome.result == result, "\(outcome.message)")
            #expect(listing(tree.path("out")) == after)
        }
    }

    @Test func `a second attempt finds the result of the first one`() {
        withTempTree { tree in
            var rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make(#"tar("in/x.tar", file("a"), link("l", "a"), folder("d"))"#, in: tree.root)
            #expect(rule.run("x.tar", ["to": "out/"]).outputs == [tree.path("out/x")])
            rule.attempt = 2
            #expect(rule.run("x.tar", ["to": "out/"]).message.contains("/out/x' already has the same contents"))
            TestFile.write(tree.path("out/x/a"), "else")
            #expect(rule.run("x.tar", ["to": "out/"]).outputs == [tree.path("out/x (1)")])
        }
    }

    @Test func `a stop and a timeout leave nothing behind`() {
        withTempTree { tree in
            var rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            ArchiveMaker.make(#"tar("in/x.tar", file("a"))"#, in: tree.root)
            rule.timeout = .zero
            #expect(rule.run("x.tar", ["to": "out/"]).code == "timed-out")
            rule.timeout = .seconds(60)
            rule.stop.raise()
            #expect(rule.run("x.tar", ["to": "out/"]).isInterrupted)
            #expect(TestFile.names(in: tree.path("out")).isEmpty)
            let other = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            #expect(other.run("missing", ["to": "out/"]).result == .skipped)
        }
    }

    @Test func `a full disk leads to a retry and nothing is left behind`() {
        guard geteuid() == 0 else {
            print("skipped: needs root")
            return
        }
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(tree.path("small"))
            ArchiveMaker.make(#"tar("in/x.tar", file("a", os.urandom(3 << 20)))"#, in: tree.root)
            let mounted = call("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", "small"], in: tree.root)
            guard mounted.status == 0 else {
                print("skipped: can't mount")
                return
            }
            let outcome = rule.run("x.tar", ["to": "small/"])
            #expect(outcome.result == .retry, "\(outcome.message)")
            #expect(outcome.message.contains("No space left on device"))
            #expect(TestFile.names(in: tree.path("small")).isEmpty)
            #expect(call("/bin/umount", ["small"], in: tree.root).status == 0)
        }
    }
}
