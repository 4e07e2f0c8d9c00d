import ActionAPI
import FileActions
import FileEvents
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import TestKit
import Testing

/// Archives that `extract` unpacks, and those that it refuses.
struct ExtractHandlerTests {
    /// A Python script that creates archives.
    ///
    /// `file`, `folder`, `link`, `hard` and `device` add entries to a tar.
    private static let maker = """
        import io, sys, tarfile, zipfile, stat, os

        def tar(name, *entries, mode="w"):
            with tarfile.open(name, mode) as archive:
                for info, content in entries:
                    archive.addfile(info, io.BytesIO(content) if content is not None else None)

        def entry(name, kind, content=None, link="", mode=0o644):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.mtime = kind, link, mode, 1234567890
            info.size = len(content) if content is not None else 0
            return info, content

        def file(name, content=b"text", mode=0o644): return entry(name, tarfile.REGTYPE, content, mode=mode)
        def folder(name, mode=0o755): return entry(name, tarfile.DIRTYPE, mode=mode)
        def link(name, to): return entry(name, tarfile.SYMTYPE, link=to, mode=0o777)
        def hard(name, to): return entry(name, tarfile.LNKTYPE, link=to)
        def device(name, kind=tarfile.CHRTYPE): return entry(name, kind)

        def zip(name, *entries):
            with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
                for path, content, mode in entries:
                    info = zipfile.ZipInfo(path, (2009, 2, 13, 23, 31, 30))
                    info.create_system, info.external_attr = 3, mode << 16
                    archive.writestr(info, content)


        """

    private func make(_ lines: String, in folder: PathBytes) {
        let made = call("/usr/bin/python3", ["-c", Self.maker + lines], in: folder)
        #expect(made.status == 0, "\(made.error)")
    }

    // MARK: Undo

    @Test func `undo removes unchanged entries, and nothing that was changed or added since`() throws {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            make(
                """
                tar("in/a.tar", file("one"), hard("two", "one"), hard("d/three", "one"), link("d/link", "../one"),
                    file("d/e/f"), folder("empty"), file("mode"), file("moved"), file("written"), file("twin"))
                """, in: tree.root)
            let invocation = rule.invocation(rule.path("a.tar"), ["to": "out/"])
            let outcome = rule.handler.run(invocation)
            #expect(outcome.ending == .succeeded, "\(outcome.message)")
            #expect(outcome.changes.count == 2, "the folder that was made, and what was unpacked")
            let out = tree.path("out/a")
            _ = out.appending("mode").withCString { chmod($0, 0o600) }
            _ = out.appending("moved").withCString { from in
                out.appending("d/moved").withCString { rename(from, $0) }
            }
            _ = out.appending("twin").withCString { from in tree.path("twin").withCString { link(from, $0) } }
            TestFile.write(out.appending("written"), Array("x".utf8), appending: true)
            TestFile.makeFolder(out.appending("mine"))
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

    @Test func `undo keeps what was unpacked from an archive that no longer exists`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            make("tar('in/a.tar', file('one'))", in: tree.root)
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
    func `files, directories, modes, times and links are unpacked unchanged`(ending: String) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("src/sub/b"), "bb")
            TestFile.write(tree.path("src/a"), "a")
            TestFile.makeFolder(tree.path("src/empty"))
            _ = tree.path("src/sub/link").withCString { symlink("../a", $0) }
            _ = tree.path("src/a").withCString { chmod($0, 0o4750) }
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_234_567_890, tv_nsec: 0)]
            for name in ["src/a", "src/sub"] { _ = tree.path(name).withCString { utimensat(AT_FDCWD, $0, &times, 0) } }
            TestFile.makeFolder(tree.path("in"))
            let format = ending == "7z" ? "7zip" : ending == "zip" ? "zip" : "pax"
            let packed = call(
                "/usr/bin/bsdtar", ["-caf", "in/x.\(ending)", "--format", format, "-C", "src", "a", "empty", "sub"],
                in: tree.root)
            #expect(packed.status == 0, "\(packed.error)")
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            let outcome = rule.run("x.\(ending)", ["to": "out/"])
            #expect(outcome.ending == .succeeded, "\(outcome.message)")
            #expect(outcome.message == "5 entries unpacked into \(tree.root)/out/x")
            #expect(outcome.outputs == [tree.path("out/x")])
            #expect(listing(tree.path("out")) == ["x/a: a", "x/empty/", "x/sub/b: bb", "x/sub/link -> ../a"])
            let file = try facts(tree.path("out/x/a"))
            #expect(file.mode == 0o750)
            #expect(file.modified.seconds == 1_234_567_890)
            try #expect(facts(tree.path("out/x/sub")).modified.seconds == 1_234_567_890)
            try #expect(facts(tree.path("out/x")).mode == 0o755)
        }
    }

    @Test func `a hard link is the same file, and the later of two entries wins`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            make(
                """
                tar("in/x.tar", file("a", b"1"), hard("sub/b", "a"), link("c", "a"), hard("d", "c"), file("e", b"old"),
                    link("f", "a"), file("./e", b"new"), file("f", b"file"), folder("./"))
                """, in: tree.root)
            let outcome = rule.run("x.tar", ["to": "out"])
            #expect(outcome.ending == .succeeded, "\(outcome.message)")
            #expect(
                listing(tree.path("out")) == ["a: 1", "c -> a", "d -> a", "e: new", "f: file", "sub/b: 1"])
            let identities = try ["out/a", "out/sub/b"].map { try facts(tree.path($0)).identity }
            #expect(identities[0] == identities[1])
        }
    }

    @Test func `the owner can write to an unpacked directory, and no mode grants rights`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            make(
                #"tar("in/x.tar", folder("d", 0o7000), file("d/a", mode=0o7000), file("w", mode=0o666))"#, in: tree.root
            )
            #expect(rule.run("x.tar", ["to": "out"]).ending == .succeeded)
            try #expect(facts(tree.path("out/d")).mode == 0o700)
            try #expect(facts(tree.path("out/d/a")).mode == 0o600)
            try #expect(facts(tree.path("out/w")).mode == 0o644)
        }
    }

    // MARK: Refused archives

    static let hostile: [(String, String, String)] = [
        ("an absolute name", #"tar("in/x", file("ok"), file("/tmp/alight-evil"))"#, "has an absolute name"),
        ("a name with ..", #"tar("in/x", file("ok"), file("../evil"))"#, "leads out of the directory by '..'"),
        ("a hidden ..", #"tar("in/x", file("ok"), file("a/b/../../../evil"))"#, "leads out of the directory by '..'"),
        ("a name that ends in ..", #"tar("in/x", file("ok"), file("a/.."))"#, "leads out of the directory by '..'"),
        ("a name that stays inside by ..", #"tar("in/x", file("a/../b"))"#, "leads out of the directory by '..'"),
        ("a name with .. in a zip", #"zip("in/x", ("ok", "1", 0o100644), ("../evil", "2", 0o100644))"#, "by '..'"),
        (
            "an absolute link", #"tar("in/x", file("ok"), link("l", "/etc"))"#,
            "is a link out of the directory, to '/etc'"
        ),
        ("a link with ..", #"tar("in/x", file("ok"), link("a/l", "../../evil"))"#, "is a link out of the directory"),
        ("a link out in a zip", #"zip("in/x", ("ok", "1", 0o100644), ("l", "../evil", 0o120777))"#, "is a link out of"),
        (
            "a link through a link", #"tar("in/x", folder("d"), link("d/l", "."), link("m", "d/l/../../evil"))"#,
            "is a link out of the directory"
        ),
        (
            "a link through what is not there", #"tar("in/x", link("m", "no/../../evil"), file("ok"))"#,
            "is a link out of"
        ),
        ("links in a circle", #"tar("in/x", link("a", "b"), link("b", "a"), file("ok"))"#, "is a link out of"),
        ("a file behind a link", #"tar("in/x", link("l", "sub"), file("l/evil"))"#, "is behind a link"),
        ("a file behind a link out", #"tar("in/x", link("l", ".."), file("l/evil"))"#, "is behind a link"),
        (
            "a hard link out", #"tar("in/x", file("ok"), hard("h", "../../etc/passwd"))"#,
            "leads out of the directory by '..'"
        ),
        ("an absolute hard link", #"tar("in/x", file("ok"), hard("h", "/etc/passwd"))"#, "has an absolute name"),
        (
            "a hard link out that is written", #"tar("in/x", hard("h", "../../etc/passwd"), file("h"))"#,
            "leads out of the directory by '..'"
        ),
        ("a hard link to nothing", #"tar("in/x", hard("h", "missing"))"#, "which is not a file before it"),
        (
            "a hard link behind a link", #"tar("in/x", link("l", "d"), file("d/a"), hard("h", "l/a"))"#,
            "which is not a file"
        ),
        ("a character device", #"tar("in/x", file("ok"), device("d"))"#, "is a device, a pipe or a socket"),
        ("a block device", #"tar("in/x", device("d", tarfile.BLKTYPE))"#, "is a device"),
        ("a pipe", #"tar("in/x", device("d", tarfile.FIFOTYPE))"#, "is a device, a pipe"),
        ("a file below a file", #"tar("in/x", file("a"), file("a/b"))"#, "is below a file"),
        (
            "a file in the place of a folder", #"tar("in/x", file("a/b"), file("a"))"#,
            "is a directory and something else"
        ),
        ("a folder in the place of a file", #"tar("in/x", file("a"), folder("a"))"#, "is a directory and a file"),
        ("a folder in the place of a link", #"tar("in/x", link("a", "b"), folder("a"))"#, "is a directory and a link"),
        ("a long name", #"tar("in/x", file("x" * 256))"#, "has a name that is too long"),
        ("too deep a path", #"tar("in/x", file("x/" * 3000 + "x"))"#, "has a name that is too long"),
        ("nothing in it", #"tar("in/x")"#, "the archive is empty"),
        ("no archive", #"open("in/x", "w").write("text" * 1000)"#, "it is not an archive that can be unpacked"),
        ("an empty file", #"open("in/x", "w")"#, "it is not an archive that can be unpacked"),
        (
            "an mtree", ##"open("in/x", "w").write("#mtree\n./evil type=file contents=/etc/passwd\n")"##,
            "it is not an archive"
        ),
        (
            "a compressed mtree",
            ##"import lzma; open("in/x", "wb").write(lzma.compress(b"#mtree\n./evil type=file contents=/etc/passwd\n"))"##,
            "it is not an archive"
        ),
        (
            "half an archive",
            #"tar("in/y", file("a", os.urandom(50000)), file("b"), mode="w:gz"); open("in/x", "wb").write(open("in/y", "rb").read()[:30000]); os.remove("in/y")"#,
            "the archive is damaged"
        ),
        (
            "a zip with a wrong sum",
            #"zip("in/x", ("a", "text", 0o100644)); b = bytearray(open("in/x", "rb").read()); b[14] ^= 1; i = b.find(b"PK\x01\x02"); b[i + 16] ^= 1; open("in/x", "wb").write(b)"#,
            "the archive is damaged"
        ),
    ]

    @Test(arguments: hostile)
    func `a harmful archive leaves nothing behind`(what: String, lines: String, message: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root.appending("deep"), ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeFolder(tree.path("deep/out"))
            make(lines, in: tree.path("deep"))
            let outcome = rule.run("x", ["to": "out/unpacked"])
            #expect(outcome.ending == .failed, "\(outcome.message)")
            #expect(outcome.message.contains(message), "\(outcome.message)")
            #expect(TestFile.names(in: tree.path("deep/out")).isEmpty)
            #expect(TestFile.names(in: tree.path("deep")).count == 2)
            #expect(TestFile.names(in: tree.root).count == 1)
            #expect(!TestFile.exists("/tmp/alight-evil"))
        }
    }

    @Test(arguments: ["zipcrypt", "aes256"])
    func `an encrypted archive is reported as encrypted`(kind: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.write(tree.path("secret"), "text")
            let packed = call(
                "/usr/bin/bsdtar",
                [
                    "--format", "zip", "--options", "zip:encryption=\(kind)", "--passphrase", "x", "-cf", "in/x.zip",
                    "secret",
                ],
                in: tree.root)
            #expect(packed.status == 0, "\(packed.error)")
            let outcome = rule.run("x.zip", ["to": "out/"])
            #expect(outcome.ending == .failed)
            #expect(outcome.code == "encrypted")
            #expect(outcome.message == "the archive is encrypted, and can't be unpacked without its password")
            #expect(TestFile.names(in: tree.path("out")).isEmpty)
        }
    }

    static let bombs: [(String, JSONValue, String)] = [
        (
            #"tar("in/x", file("a", b"\0" * (40 << 20)), mode="w:gz")"#, [:],
            "more than 200 times its own size ('limits.ratio')"
        ),
        (
            #"tar("in/x", file("a", b"12345"), file("b", b"678901"))"#, ["size": "10 B"],
            "more than 10 B ('limits.size')"
        ),
        (#"tar("in/x", file("a/b/c/d"))"#, ["files": 3], "more than 3 files and directories ('limits.files')"),
        (
            #"zip("in/x", *[(f"f{i}", "", 0o100644) for i in range(100)])"#, ["files": 99],
            "more than 99 files and directories"
        ),
        // A hole of one terabyte.
        (
            #"f = open("sparse", "wb"); f.truncate(1 << 40); f.close(); import subprocess; subprocess.run(["bsdtar", "-cf", "in/x", "sparse"], check=True); os.remove("sparse")"#,
            [:], "more than 4 GiB ('limits.size')"
        ),
        // Entries other than files count as well.
        (
            #"tar("in/x", *([file("d", b"")] * 200000), mode="w:gz")"#,
            ["files": 1_000_000], "more than 200 times its own size"
        ),
    ]

    @Test(arguments: bombs)
    func `an archive that exceeds a limit is refused midway`(lines: String, limits: JSONValue, message: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            make(lines, in: tree.root)
            let outcome = rule.run("x", ["to": "out/x", "limits": limits])
            #expect(outcome.ending == .failed)
            #expect(outcome.code == "too-large")
            #expect(outcome.message.contains("refused: the archive contains \(message)"), "\(outcome.message)")
            #expect(TestFile.names(in: tree.path("out")).isEmpty)
        }
    }

    /// For any bytes, nothing is written outside, nothing is left incomplete, and nothing crashes.
    @Test(arguments: ["tar", "tar.gz", "tar.xz", "zip", "7z"])
    func `a damaged archive is unpacked completely or not at all`(ending: String) throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            for name in ["a", "sub/b", "sub/c"] { TestFile.write(tree.path("src/\(name)"), "content of \(name)") }
            _ = tree.path("src/link").withCString { symlink("sub/b", $0) }
            let format = ending == "7z" ? "7zip" : ending == "zip" ? "zip" : "pax"
            let packed = call(
                "/usr/bin/bsdtar", ["-caf", "in/x.\(ending)", "--format", format, "-C", "src", "."], in: tree.root)
            #expect(packed.status == 0, "\(packed.error)")
            let whole = try #require(TestFile.read(rule.path("x.\(ending)")))
            TestFile.makeFolder(tree.path("out"))
            for round in 0..<Fuzzing.rounds(60) {
                var generator = SeededGenerator(seed: Fuzzing.seed(UInt64(round)))
                var bytes = whole
                for _ in 0...generator.below(4) { bytes[generator.below(bytes.count)] = UInt8(generator.below(256)) }
                if generator.isOne(in: 4) { bytes.removeLast(generator.below(bytes.count)) }
                TestFile.write(rule.path("y"), bytes)
                let outcome = rule.run("y", ["to": "out/y"])
                #expect(outcome.ending == .succeeded || outcome.ending == .failed, "\(outcome.message)")
                let isThere = TestFile.names(in: tree.path("out")) == [Array("y".utf8)]
                #expect(isThere == (outcome.ending == .succeeded), "\(outcome.message)")
                #expect(TestFile.names(in: tree.root).count == 3)
                TestFile.removeTree(tree.path("out/y"))
            }
        }
    }

    // MARK: Destination

    static let conflicts: [(String, Outcome.Ending, [String])] = [
        ("rename", .succeeded, ["x/a: old", "x/other: kept", "x (1)/a: new"]),
        ("overwrite", .succeeded, ["x/a: new"]),
        ("skip", .skipped, ["x/a: old", "x/other: kept"]),
        ("fail", .failed, ["x/a: old", "x/other: kept"]),
    ]

    @Test(arguments: conflicts)
    func `an existing directory is handled as a whole`(word: String, ending: Outcome.Ending, after: [String]) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.write(tree.path("out/x/a"), "old")
            TestFile.write(tree.path("out/x/other"), "kept")
            make(#"tar("in/x.tar.gz", file("a", b"new"), mode="w:gz")"#, in: tree.root)
            let outcome = rule.run("x.tar.gz", ["to": "out/", "on_conflict": .string(word)])
            #expect(outcome.ending == ending, "\(outcome.message)")
            #expect(listing(tree.path("out")) == after)
        }
    }

    @Test func `a second attempt finds the result of the first one`() {
        withTempTree { tree in
            var rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            make(#"tar("in/x.tar", file("a"), link("l", "a"), folder("d"))"#, in: tree.root)
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
            make(#"tar("in/x.tar", file("a"))"#, in: tree.root)
            rule.timeout = .zero
            #expect(rule.run("x.tar", ["to": "out/"]).code == "timed-out")
            rule.timeout = .seconds(60)
            rule.stop.raise()
            #expect(rule.run("x.tar", ["to": "out/"]).isInterrupted)
            #expect(TestFile.names(in: tree.path("out")).isEmpty)
            #expect(rule.run("missing", ["to": "out/"]).ending == .skipped)
        }
    }

    @Test func `a full disk leads to a retry and nothing is left behind`() {
        guard geteuid() == 0 else {
            print("skipped: needs root")
            return
        }
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeFolder(tree.path("small"))
            make(#"tar("in/x.tar", file("a", os.urandom(3 << 20)))"#, in: tree.root)
            let mounted = call("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", "small"], in: tree.root)
            guard mounted.status == 0 else {
                print("skipped: can't mount")
                return
            }
            let outcome = rule.run("x.tar", ["to": "small/"])
            #expect(outcome.ending == .retry, "\(outcome.message)")
            #expect(outcome.message.contains("No space left on device"))
            #expect(TestFile.names(in: tree.path("small")).isEmpty)
            #expect(call("/bin/umount", ["small"], in: tree.root).status == 0)
        }
    }
}
