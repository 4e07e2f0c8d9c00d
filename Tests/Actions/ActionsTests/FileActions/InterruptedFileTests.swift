import FileActions
import Glibc
import Globbing
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Leftovers of a process that ended during a copy, a move or a removal.
struct InterruptedFileTests {
    static let dead = ".a.txt.0123456789abc.alight-tmp"
    static let taken = ".b.txt.0123456789abc.taken.alight-tmp"

    @Test func `a repeated job removes leftovers of a dead process, but not those of a live one`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.write(tree.path("out/\(Self.dead)"), "half")
            TestFile.write(tree.path("out/.live.0123456789abc.alight-tmp"), "half")
            TestFile.write(tree.path("out/\(Self.taken)"), "precious")
            TestFile.write(tree.path("out/.mine.alight-tmp"), "of somebody else")
            TestFile.write(tree.path("out/.d.0123456789abc.alight-tmp/x/y"), "half")
            let holder = RunningProgram(
                "/usr/bin/flock",
                // Without a child that outlives it.
                [
                    "--no-fork", "--shared", "out/.live.0123456789abc.alight-tmp", "sh", "-c",
                    "echo held; exec sleep 600",
                ],
                in: tree.root, output: tree.path("holder"))
            try #require(Deadline.wait { holder.lines.contains("held") })
            var run = BuiltInRun(TransferHandler.copy())
            // An ordinary attempt does not search for leftovers.
            _ = run(tree.path("in/a.txt"), ["to": tree.path("out/first")])
            #expect(TestFile.exists(tree.path("out/\(Self.dead)")))
            run.isInterrupted = true
            #expect(run(tree.path("in/a.txt"), ["to": tree.path("out/")]).result == .succeeded)
            #expect(
                listing(tree.path("out")) == [
                    ".live.0123456789abc.alight-tmp: half", ".mine.alight-tmp: of somebody else", "a.txt: new",
                    "b.txt: precious", "first: new",
                ])
            holder.signal(SIGKILL)
            _ = holder.wait()
        }
    }

    @Test func `a source that was set aside for removal is restored beside a newer one`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/\(Self.taken)"), "older")
            TestFile.write(tree.path("in/b.txt"), "newer")
            var run = BuiltInRun(DeleteHandler())
            run.isInterrupted = true
            TestFile.write(tree.path("in/x"), "x")
            #expect(run(tree.path("in/x"), [:]).result == .succeeded)
            #expect(listing(tree.path("in")) == ["b (1).txt: older", "b.txt: newer"])
        }
    }

    @Test func `the directories below the destinations are searched at startup`() {
        withTempTree { tree in
            TestFile.write(tree.path("out/2026/11/\(Self.dead)"), "half")
            TestFile.write(tree.path("elsewhere/\(Self.dead)"), "half")
            _ = tree.path("out/link").withCString { symlink("../elsewhere", $0) }
            let to = Template(parts: [
                .literal(Array("out/".utf8)), .placeholder(.mtime(format: "%Y")), .literal([0x2f]),
            ])
            let location = SourcePosition(file: "r.yaml", line: 1, column: 1)
            let action = Action(
                .use(HandlerReference(name: "move"), with: .object(["to": .text(to)])), location: location)
            let rule = Rule(
                name: "r", location: location, baseDirectory: tree.root, filter: PathFilter(globs: []),
                actions: [action])
            LeftoverSearch([rule]).clear()
            #expect(listing(tree.path("out")) == ["2026/11/", "link -> ../elsewhere"])
            #expect(listing(tree.path("elsewhere")) == ["\(Self.dead): half"])
        }
    }

    @Test func `the watched directories of an action that removes files are searched at startup`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/\(Self.dead)"), "half")
            TestFile.write(tree.path("in/a"), "a")
            let location = SourcePosition(file: "r.yaml", line: 1, column: 1)
            let handler = DeleteHandler().summary
            let action = Action(
                .use(handler.reference, with: .object([:])), location: location, traits: handler.traits)
            let globs = (try? Glob(tree.path("in/*").bytes)).map { [$0] } ?? []
            let rule = Rule(
                name: "r", location: location, baseDirectory: tree.root, filter: PathFilter(globs: globs),
                actions: [action])
            LeftoverSearch([rule]).clear()
            #expect(listing(tree.path("in")) == ["a: a"])
        }
    }

    @Test func `a move interrupted before its source was removed is finished, not started again`() {
        withTempTree { tree in
            guard let other = OtherFileSystem() else {
                print("skipped: no second file system")
                return
            }
            for conflict in ["rename", "skip", "fail", "trash", "rename_existing", "deduplicate", "overwrite"] {
                let source = other.root.appending("a")
                TestFile.write(source, "new \(conflict)")
                let to = tree.path("out/\(conflict)/")
                #expect(BuiltInRun(TransferHandler.copy())(source, ["to": to]).result == .succeeded)
                var run = BuiltInRun(TransferHandler.move())
                run.isInterrupted = true
                let outcome = run(source, ["to": to, "on_conflict": PathBytes(conflict)])
                #expect(outcome.result == .succeeded, "\(conflict): \(outcome.message)")
                #expect(listing(to.normalized) == ["a: new \(conflict)"])
                #expect(!TestFile.exists(source), "\(conflict)")
            }
        }
    }
}
