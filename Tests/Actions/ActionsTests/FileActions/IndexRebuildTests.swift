import ActionAPI
import FileActions
import FileEvents
import Glibc
import Globbing
import PluginProtocol
import Rules
import System
import TestKit
import Testing

/// Lists that `index` builds by a scan, and those that it cannot build or write.
struct IndexRebuildTests {
    @Test func `existing files are found at the first event, and after each restart`() throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            TestFile.write(bench.path("old"), "x")
            TestFile.write(bench.path("new"), "x")
            bench.run(.created, "new")
            #expect(bench.names() == ["new", "old"])
            // No event reports the changes between two runs.
            _ = bench.path("old").withCString { unlink($0) }
            TestFile.write(bench.path("meanwhile"), "x")
            bench.handler = IndexHandler()
            bench.run(.modified, "new")
            #expect(bench.names() == ["meanwhile", "new"])
        }
    }

    @Test(arguments: ["delete", "garbage", "foreign", "folder gone"])
    func `a list that was changed by others is rebuilt`(_ damage: String) throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            TestFile.write(bench.path("a"), "x")
            TestFile.write(bench.path("b"), "x")
            bench.run(.created, "a")
            switch damage {
            case "delete": _ = bench.to.withCString { unlink($0) }
            case "garbage": TestFile.write(bench.to, "no list")
            case "foreign": TestFile.write(bench.to, "[]\n")
            default: TestFile.removeTree(bench.to.parent)
            }
            // The file exists, but no event reports it.
            TestFile.write(bench.path("c"), "x")
            bench.run(.modified, "a")
            #expect(bench.names() == ["a", "b", "c"])
        }
    }

    @Test func `the end of a scan and the return of a root rebuild the list`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            #expect(bench.handler.run(bench.invocation(.scanEnded, bench.path(""))).result == .succeeded)
            #expect(bench.names() == [])
            TestFile.write(bench.path("a"), "x")
            bench.handler.run(bench.invocation(.rootBack, tree.path("in"))).outputs.forEach { #expect($0 == bench.to) }
            #expect(bench.names() == ["a"])
        }
    }

    @Test func `files that cannot be seen are not treated as deleted`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            TestFile.write(bench.path("a"), "x")
            bench.run(.created, "a")
            let away = tree.path("away")
            _ = tree.path("in").withCString { from in away.withCString { rename(from, $0) } }
            let gone = bench.handler.run(bench.invocation(.scanEnded, tree.path("in")))
            #expect(gone.result == .skipped)
            #expect(gone.code == "root-missing")
            #expect(bench.names() == ["a"])
        }
    }

    @Test func `a missing root keeps its entries while another root exists`() throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            bench.filter.globs.append(try Glob(tree.path("more/*").bytes))
            TestFile.write(bench.path("a"), "x")
            TestFile.write(tree.path("more/a"), "x")
            bench.run(.created, "a")
            #expect(bench.names() == ["a", "a"])
            #expect(bench.entries()?.map { $0["root"] as? String } == ["\(tree.root)/in", "\(tree.root)/more"])
            TestFile.removeTree(tree.path("more"))
            bench.handler.run(bench.invocation(.scanEnded, tree.path("in"))).outputs.forEach { #expect($0 == bench.to) }
            #expect(bench.names() == ["a", "a"])
        }
    }

    @Test func `a list that cannot be written is an error, and complete at the next event`() throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            TestFile.write(bench.path("a"), "x")
            TestFile.makeDirectory(tree.path("taken"))
            bench.to = tree.path("taken")
            #expect(bench.run(.created, "a").result == .failed)
            #expect(TestFile.names(in: tree.root).count == 2, "nothing is left behind")
            bench.to = tree.root.appending(Array("out/".utf8))
            #expect(bench.run(.created, "a").message.contains("must name a file"))
            bench.to = tree.path("taken")
            TestFile.removeTree(tree.path("taken"))
            #expect(bench.run(.created, "a").result == .succeeded)
            #expect(bench.names() == ["a"])
        }
    }

    @Test func `a stop interrupts the scan`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            bench.stop.raise()
            #expect(bench.run(.created, "a").isInterrupted)
            #expect(!TestFile.exists(bench.to))
        }
    }
}
