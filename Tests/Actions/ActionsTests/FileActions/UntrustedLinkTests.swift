import ActionAPI
import CAlightLinux
import FileActions
import Glibc
import Globbing
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Root does not write through a link that another user can replace.
@Suite(.enabled(if: geteuid() == 0, "only root has rights that others could use"))
struct UntrustedLinkTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        var handler: any Handler
        var parameters: [String] = []
        /// Whether the path names the file itself instead of its directory.
        var isFile = false
        var testDescription: String { handler.summary.reference.name }
    }

    static let destinations = [
        Kind(handler: TransferHandler.copy(), parameters: ["to"]),
        Kind(handler: TransferHandler.move(), parameters: ["to"]),
        Kind(handler: LinkHandler(), parameters: ["to"]),
        Kind(handler: ExtractHandler(trash: Trash(home: nil)), parameters: ["to"]),
        Kind(handler: ArchiveHandler(trash: Trash(home: nil)), parameters: ["to"], isFile: true),
        Kind(handler: TouchHandler(), parameters: ["path"], isFile: true),
    ]

    static let user: uid_t = 65_534

    static func own(_ path: PathBytes) { #expect(path.withCString { lchown($0, user, user) } == 0) }

    /// Creates a tree with an archive in `in`, a directory `drop` of another user, and a private directory of root.
    static func withDrop(_ body: (borrowing TemporaryTree) throws -> Void) rethrows {
        try withTempTree { tree in
            TestFile.write(tree.path("in/x"), "new")
            #expect(call("/usr/bin/tar", ["-cf", "a.tar", "x"], in: tree.path("in")).status == 0)
            #expect(tree.root.withCString { chmod($0, 0o755) } == 0)
            TestFile.makeDirectory(tree.path("drop"))
            own(tree.path("drop"))
            TestFile.write(tree.path("private/secret"), "old")
            #expect(tree.path("private").withCString { chmod($0, 0o700) } == 0)
            try body(tree)
        }
    }

    static func run(_ kind: Kind, _ tree: PathBytes, to directory: String) -> Outcome {
        var run = BuiltInRun(kind.handler)
        run.root = tree.appending("in")
        run.roots = [tree.appending("in")]
        if kind.parameters == ["path"] { run.further = ["create": .value(.bool(true))] }
        let path = tree.appending(kind.isFile ? directory + "result.zip" : directory)
        return run(tree.appending("in/a.tar"), Dictionary(uniqueKeysWithValues: kind.parameters.map { ($0, path) }))
    }

    @Test(arguments: destinations, ["drop/out/", "drop/out/new/deep/"])
    func `a destination behind another user's link is refused`(_ kind: Kind, to directory: String) {
        Self.withDrop { tree in
            let link = tree.path("drop/out")
            _ = link.withCString { symlink("../private", $0) }
            Self.own(link)
            let root = tree.root
            let outcome = Self.run(kind, root, to: directory)
            #expect(outcome.result == .failed && outcome.code == "outside", "\(outcome.message)")
            #expect(
                outcome.message.contains("the symbolic link '\(link)', which user 65534 could replace"),
                "\(outcome.message)")
            #expect(listing(tree.path("private")) == ["secret: old"])
            // Even a link of root could be replaced there.
            #expect(link.withCString { lchown($0, 0, 0) } == 0)
            #expect(Self.run(kind, root, to: directory).code == "outside")
            #expect(listing(tree.path("private")) == ["secret: old"])
        }
    }

    @Test(arguments: destinations)
    func `root's own link is followed where no other user can replace it`(_ kind: Kind) {
        Self.withDrop { tree in
            _ = tree.path("out").withCString { symlink("link//", $0) }
            _ = tree.path("link").withCString { symlink("drop/../private/./", $0) }
            let root = tree.root
            let outcome = Self.run(kind, root, to: "out/")
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(listing(tree.path("private")).count > 1)
        }
    }

    @Test(
        arguments: [
            TransferHandler.move(), TransferHandler.copy(), DeleteHandler(), TransferHandler.rename(), TouchHandler(),
            SetPermissionsHandler(),
            TagHandler(), LinkHandler(), ChecksumHandler(), TrashHandler(trash: Trash(home: nil)),
        ] as [any Handler])
    func `a root that is another user's link is refused`(_ handler: any Handler) {
        Self.withDrop { tree in
            _ = tree.path("drop/in").withCString { symlink("../private", $0) }
            Self.own(tree.path("drop/in"))
            var run = BuiltInRun(handler)
            run.root = tree.path("drop/in")
            let outcome = run(
                tree.path("drop/in/secret"),
                [
                    "to": tree.path("out/"), "name": "b", "mode": "0777", "time": "@1", "add": "x", "write": "sums",
                ])
            #expect(outcome.result == .failed && outcome.code == "outside", "\(outcome.message)")
            #expect(listing(tree.path("private")) == ["secret: old"])
        }
    }

    /// A script that repeatedly renames a directory and replaces it with a link and then with a new directory.
    static let swapper = """
        import os, sys
        outside, folder = sys.argv[1:]
        number = 0
        while True:
            number += 1
            for step in [
                lambda: os.rename(folder, f"{folder}.{number}"), lambda: os.symlink(outside, folder),
                lambda: os.unlink(folder), lambda: os.mkdir(folder),
            ]:
                try: step()
                except OSError: pass
        """

    @Test(.timeLimit(.minutes(5)), arguments: destinations)
    func `a user who swaps the directory for a link leads no write elsewhere`(_ kind: Kind) {
        Self.withDrop { tree in
            TestFile.makeDirectory(tree.path("drop/out"))
            Self.own(tree.path("drop/out"))
            let child = RunningProgram(
                "/usr/bin/setpriv",
                [
                    "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c",
                    Self.swapper, "\(tree.path("private"))", "\(tree.path("drop/out"))",
                ], in: tree.root, output: tree.path("swapper"))
            let root = tree.root
            var codes: [String: Int] = [:]
            func round() {
                let outcome = Self.run(kind, root, to: "drop/out/")
                codes[outcome.code ?? outcome.result.rawValue, default: 0] += 1
                // `move` removes it.
                if !TestFile.exists(root.appending("in/a.tar")) {
                    _ = call("/usr/bin/tar", ["-cf", "a.tar", "x"], in: root.appending("in"))
                }
            }
            for _ in 0..<200 { round() }
            let hasMet = Deadline.wait {
                if codes["outside"] != nil { return true }
                round()
                return false
            }
            child.signal(SIGKILL)
            _ = child.wait()
            #expect(hasMet, "\(codes) \(child.error)")
            #expect(listing(tree.path("private")) == ["secret: old"], "\(codes)")
        }
    }

    @Test func `opening by names behaves like the kernel`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a/b/c"), "x")
            _ = tree.path("a/up").withCString { symlink("../a/./b//", $0) }
            _ = tree.path("a/out").withCString { symlink("../../", $0) }
            _ = tree.path("a/root").withCString { symlink("/", $0) }
            _ = tree.path("a/loop").withCString { symlink("loop", $0) }
            _ = tree.path("a/none").withCString { symlink("missing", $0) }
            let base = OpenFile(tree.root.withCString { cal_open_root($0) })
            func identity(_ opened: Int32) throws -> String {
                guard opened >= 0 else { return "error \(-opened)" }
                return "\(try OpenFile(opened).snapshot().identity)"
            }
            let paths = [
                "a", "a/b", "a//b/", "a/up", "a/up/../b", "a/out", "a/root", "a/loop", "a/none", "a/missing/x",
                "a/b/c/d",
                "a/../a/b", "..", "a/../..", "a/up/c",
            ]
            for path in paths {
                for what in [CAL_OPEN_DIRECTORY, CAL_OPEN_ENTRY, CAL_OPEN_TARGET] {
                    let kernel = path.withCString { cal_open_beneath(base.descriptor, $0, what, 1) }
                    let names = path.withCString { cal_open_beneath_by_names(base.descriptor, $0, what, 1) }
                    let seen = try [identity(kernel), identity(names)]
                    #expect(seen[0] == seen[1], "\(path) \(what)")
                }
            }
        }
    }
}
