import FileActions
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Archives that `extract` refuses.
struct HarmfulArchiveTests {
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
        (
            "a zip without its directory",
            #"zip("in/x", ("a", "text", 0o100644)); b = open("in/x", "rb").read(); open("in/x", "wb").write(b[:b.find(b"PK\x01\x02")])"#,
            "the archive is damaged: the directory at its end is missing"
        ),
        (
            "a zip with the end of its directory only",
            #"zip("in/x", ("a", "text", 0o100644)); b = open("in/x", "rb").read(); open("in/x", "wb").write(b[:b.find(b"PK\x01\x02")] + b[b.find(b"PK\x05\x06"):])"#,
            "the archive is damaged"
        ),
    ]

    @Test(arguments: hostile)
    func `a harmful archive leaves nothing behind`(what: String, lines: String, message: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root.appending("deep"), ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(tree.path("deep/out"))
            ArchiveMaker.make(lines, in: tree.path("deep"))
            let outcome = rule.run("x", ["to": "out/unpacked"])
            #expect(outcome.result == .failed, "\(outcome.message)")
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
            #expect(outcome.result == .failed)
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
            ArchiveMaker.make(lines, in: tree.root)
            let outcome = rule.run("x", ["to": "out/x", "limits": limits])
            #expect(outcome.result == .failed)
            #expect(outcome.code == "too-large")
            #expect(outcome.message.contains("refused: the archive contains \(message)"), "\(outcome.message)")
            #expect(TestFile.names(in: tree.path("out")).isEmpty)
        }
    }

    /// Long names and metadata beyond 8 GiB and 1970 require extended headers, after which a tar may also be cut.
    private static let cuttable = #"""
        import subprocess
        long = "n" * 150
        entries = [file("a", b"\0" * 1000), folder("d"), file("d/" + long, b"text"), file("é", b""), link("l", "a")]

        """#

    static let containers = [
        ("pax", #"tarfile.DEFAULT_FORMAT = tarfile.PAX_FORMAT; tar("whole", *entries)"#),
        ("gnu", #"tarfile.DEFAULT_FORMAT = tarfile.GNU_FORMAT; tar("whole", *entries)"#),
        ("cpio", #"open("f", "w").write("text"); os.system("bsdtar -cf whole --format newc f")"#),
    ]

    @Test(arguments: containers)
    func `an archive that is cut at any block is refused`(what: String, lines: String) throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(tree.path("in"))
            TestFile.makeDirectory(tree.path("out"))
            let make = Self.cuttable + lines + #"; print(len(open("whole", "rb").read().rstrip(b"\0")))"#
            let length = ArchiveMaker.make(make, in: tree.root)
            let whole = try #require(TestFile.read(tree.path("whole")))
            let step = what == "cpio" ? 4 : 512
            let end = try #require(Int(length.prefix { $0.isNumber }))
            for size in stride(from: step, through: end, by: step) {
                TestFile.write(rule.path("x"), Array(whole.prefix(size)))
                let outcome = rule.run("x", ["to": "out/x"])
                #expect(outcome.result == .failed, "\(size) of \(end): \(outcome.message)")
                #expect(TestFile.names(in: tree.path("out")).isEmpty)
                TestFile.removeTree(tree.path("out/x"))
            }
            TestFile.write(rule.path("x"), whole)
            #expect(rule.run("x", ["to": "out/x"]).result == .succeeded)
        }
    }

    @Test(arguments: ["gz", "bz2", "xz", "zst", "7z", "zip"])
    func `a compressed archive that lacks its last bytes is refused`(ending: String) throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(tree.path("in"))
            TestFile.makeDirectory(tree.path("out"))
            TestFile.write(tree.path("a"), "content of a")
            TestFile.write(tree.path("b"), "content of b")
            let format = ["7z": "7zip", "zip": "zip"][ending] ?? "ustar"
            let name = format == "ustar" ? "whole.tar.\(ending)" : "whole.\(ending)"
            let packed = call("/usr/bin/bsdtar", ["-caf", name, "--format", format, "a", "b"], in: tree.root)
            #expect(packed.status == 0, "\(packed.error)")
            let whole = try #require(TestFile.read(tree.path(name)))
            for missing in 1..<whole.count {
                TestFile.write(rule.path("x"), Array(whole.dropLast(missing)))
                let outcome = rule.run("x", ["to": "out/x"])
                #expect(outcome.result == .failed, "without \(missing) of \(whole.count): \(outcome.message)")
                #expect(TestFile.names(in: tree.path("out")).isEmpty)
                TestFile.removeTree(tree.path("out/x"))
            }
        }
    }

    @Test(arguments: ["w", "w:gz", "w:bz2", "w:xz"])
    func `a tar that is cut between two entries is refused, compressed or not`(mode: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ExtractHandler(trash: Trash(home: nil)))
            TestFile.makeDirectory(tree.path("in"))
            TestFile.makeDirectory(tree.path("out"))
            let lines = """
                tar("whole", file("a"), file("b")); part = open("whole", "rb").read()[:1024]
                import gzip, bz2, lzma
                part = {"w": bytes, "w:gz": gzip.compress, "w:bz2": bz2.compress, "w:xz": lzma.compress}["\(mode)"](part)
                open("in/x", "wb").write(part)
                """
            ArchiveMaker.make(lines, in: tree.root)
            let outcome = rule.run("x", ["to": "out/x"])
            #expect(outcome.code == "damaged", "\(outcome.message)")
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
            TestFile.makeDirectory(tree.path("out"))
            for round in 0..<Fuzzing.rounds(60) {
                var generator = SeededGenerator(seed: Fuzzing.seed(UInt64(round)))
                var bytes = whole
                for _ in 0...generator.below(4) { bytes[generator.below(bytes.count)] = UInt8(generator.below(256)) }
                if generator.isOne(in: 4) { bytes.removeLast(generator.below(bytes.count)) }
                TestFile.write(rule.path("y"), bytes)
                let outcome = rule.run("y", ["to": "out/y"])
                #expect(outcome.result == .succeeded || outcome.result == .failed, "\(outcome.message)")
                let isThere = TestFile.names(in: tree.path("out")) == [Array("y".utf8)]
                #expect(isThere == (outcome.result == .succeeded), "\(outcome.message)")
                #expect(TestFile.names(in: tree.root).count == 3)
                TestFile.removeTree(tree.path("out/y"))
            }
        }
    }
}
