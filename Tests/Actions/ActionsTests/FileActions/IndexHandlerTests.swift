import ActionAPI
import FileActions
import FileEvents
import Foundation
import Glibc
import Globbing
import JSON
import PluginProtocol
import Rules
import System
import TestKit
import Testing

/// The list that `index` maintains.
struct IndexHandlerTests {
    @Test func `an entry has the metadata of the file`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            TestFile.write(bench.path("x/a.txt"), "hello")
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_234_567_890, tv_nsec: 500_000_000)]
            _ = bench.path("x/a.txt").withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            bench.waitForWriters("x/a.txt")
            let outcome = bench.run(.created, "x/a.txt")
            #expect(outcome.result == .succeeded)
            #expect(outcome.message == "1 file in \(bench.to)")
            #expect(outcome.outputs == [bench.to])
            #expect(outcome.values == ["files": 1])
            let text = String(decoding: try #require(TestFile.read(bench.to)), as: UTF8.self)
            #expect(
                text == """
                    [
                    {"copying":false,"mtime":"2009-02-13T23:31:30.5Z","path":"x/a.txt","size":5,"type":"file"}
                    ]

                    """)
        }
    }

    @Test func `created, modified, moved and deleted files change the list`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            for name in ["b", "a", "c"] {
                TestFile.write(bench.path(name), name)
                bench.run(.created, name)
            }
            #expect(bench.names() == ["a", "b", "c"])
            TestFile.write(bench.path("b"), "longer")
            bench.run(.modified, "b")
            #expect(bench.entries()?.map { $0["size"] as? Int } == [1, 6, 1])
            _ = bench.path("a").withCString { from in bench.path("z").withCString { rename(from, $0) } }
            bench.run(.moved, "z", from: "a")
            #expect(bench.names() == ["b", "c", "z"])
            _ = bench.path("c").withCString { unlink($0) }
            bench.run(.deleted, "c")
            #expect(bench.names() == ["b", "z"])
            for name in ["b", "z"] {
                _ = bench.path(name).withCString { unlink($0) }
                bench.run(.deleted, name)
            }
            #expect(TestFile.text(bench.to) == "[]\n")
        }
    }

    static let orders: [(String, [String])] = [
        ("name", ["a", "b", "c", "d"]), ("-name", ["d", "c", "b", "a"]), ("size", ["c", "a", "d", "b"]),
        ("-size", ["b", "a", "d", "c"]), ("mtime", ["d", "b", "a", "c"]), ("-mtime", ["a", "c", "b", "d"]),
    ]

    @Test(arguments: orders)
    func `the list is sorted, and equal files are sorted by name`(_ sort: String, _ expected: [String]) throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            bench.sort = sort
            func make(_ name: String, size: Int, time: Int) {
                TestFile.write(bench.path(name), String(repeating: "x", count: size))
                var times = [timespec(tv_sec: time, tv_nsec: 0), timespec(tv_sec: time, tv_nsec: 0)]
                _ = bench.path(name).withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            }
            // The scan finds some of the files, events report the others.
            make("a", size: 2, time: 30)
            make("d", size: 2, time: 10)
            bench.run(.created, "a")
            make("c", size: 1, time: 30)
            bench.run(.created, "c")
            make("b", size: 3, time: 20)
            bench.run(.created, "b")
            #expect(bench.names() == expected)
            make("b", size: 4, time: 20)
            bench.run(.modified, "b")
            #expect(bench.names() == expected)
        }
    }

    @Test func `names that are not UTF-8 are stored in base64`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            let odd = tree.path("in").appending([0x61, 0xE9, 0x0A, 0x22])
            TestFile.write(odd, "x")
            _ = bench.handler.run(bench.invocation(.created, odd))
            let entry = try #require(bench.entries()?.first)
            #expect(entry["path"] as? String == "a\u{FFFD}\n\"")
            #expect(
                (entry["path_base64"] as? String).flatMap { Data(base64Encoded: $0) }.map { Array($0) } == [
                    0x61, 0xE9, 0x0A, 0x22,
                ])
        }
    }

    @Test func `the list does not contain itself`() throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            _ = tree.path("in").withCString { target in tree.path("link").withCString { symlink(target, $0) } }
            for to in [bench.path("list.json"), tree.path("link/list.json")] {
                bench.to = to
                TestFile.write(bench.path("a"), "x")
                bench.run(.created, "a")
                bench.run(.created, "list.json")
                #expect(bench.names() == ["a"])
            }
        }
    }

    @Test func `a file that is being written is marked until the next check`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            TestFile.write(bench.path("a"), "x")
            TestFile.write(bench.path("b"), "x")
            let writer = bench.path("b").withCString { open($0, O_WRONLY | O_CLOEXEC) }
            bench.waitForWriters("a")
            bench.run(.created, "a")
            #expect(bench.entries()?.map { $0["copying"] as? Bool } == [false, true])
            close(writer)
            bench.waitForWriters("b")
            bench.run(.modified, "a")
            #expect(bench.entries()?.map { $0["copying"] as? Bool } == [false, false])
        }
    }

    @Test func `the selection of the rule applies, also to directories and links`() throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            bench.filter.exclude = GlobSet([try Glob("skip")])
            bench.filter.depth = 1
            for name in ["a", "x/b", "x/y/c", "skip/d", ".e"] { TestFile.write(bench.path(name), "x") }
            _ = "x".withCString { target in bench.path("link").withCString { symlink(target, $0) } }
            bench.run(.created, "a")
            #expect(bench.names() == ["a", "x/b"])
            bench.types = Set(FileType.allCases)
            bench.run(.created, "a")
            #expect(bench.names() == ["a", "link", "x", "x/b", "x/y"])
            #expect(
                bench.entries()?.map { $0["type"] as? String } == ["file", "symlink", "directory", "file", "directory"])
        }
    }

    @Test func `a new list keeps the permissions of the old one`() throws {
        try withTempTree { tree in
            let bench = try IndexBench(tree.root)
            TestFile.write(bench.path("a"), "x")
            bench.run(.created, "a")
            _ = bench.to.withCString { chmod($0, 0o604) }
            TestFile.write(bench.path("b"), "x")
            bench.run(.created, "b")
            #expect(try metadata(bench.to).mode == 0o604)
        }
    }

    @Test func `several events of a batch are written to one list`() throws {
        try withTempTree { tree in
            var bench = try IndexBench(tree.root)
            var invocations: [Invocation] = []
            for name in ["a", "b", "c"] {
                TestFile.write(bench.path(name), "x")
                invocations.append(bench.invocation(.created, bench.path(name)))
            }
            bench.to = tree.path("other.json")
            invocations.append(bench.invocation(.created, bench.path("a")))
            bench.to = tree.path("out/list.json")
            let outcomes = bench.handler.run(invocations)
            #expect(outcomes.map(\.result) == [.succeeded, .succeeded, .succeeded, .succeeded])
            #expect(outcomes.map(\.outputs) == [[bench.to], [bench.to], [bench.to], [tree.path("other.json")]])
            #expect(bench.names() == ["a", "b", "c"])
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `the list is correct after any changes, in any order of events`(seed: UInt64) throws {
        try withTempTree { tree in
            var generator = SeededGenerator(seed: seed)
            var bench = try IndexBench(tree.root)
            bench.sort = ["name", "-name", "size", "-mtime"].randomElement(using: &generator) ?? "name"
            let names = ["a", "b", "x/a", "x/b", "x/y/c", ".h", "d"]
            func pick() -> String { names.randomElement(using: &generator) ?? "a" }
            for _ in 0..<40 {
                var invocations: [Invocation] = []
                for _ in 0...Int.random(in: 0...4, using: &generator) {
                    let (name, other) = (pick(), pick())
                    switch Int.random(in: 0..<4, using: &generator) {
                    case 0, 1:
                        let size = Int.random(in: 0...9, using: &generator)
                        TestFile.write(bench.path(name), String(repeating: "x", count: size))
                        invocations.append(
                            bench.invocation(Bool.random(using: &generator) ? .created : .modified, bench.path(name)))
                    case 2:
                        _ = bench.path(name).withCString { unlink($0) }
                        invocations.append(bench.invocation(.deleted, bench.path(name)))
                    default:
                        TestFile.makeDirectory(bench.path(other).parent)
                        let error = bench.path(name).withCString { from in
                            bench.path(other).withCString { rename(from, $0) }
                        }
                        if error == 0 {
                            invocations.append(bench.invocation(.moved, bench.path(other), from: bench.path(name)))
                        }
                    }
                }
                invocations.shuffle(using: &generator)
                switch Int.random(in: 0..<10, using: &generator) {
                case 0: _ = bench.to.withCString { unlink($0) }
                case 1: TestFile.write(bench.to, "[")
                case 2: bench.handler = IndexHandler()
                case 3:
                    // A failure in between: the directory of the list is a file.
                    TestFile.removeTree(bench.to.parent)
                    TestFile.write(bench.to.parent, "x")
                    for outcome in bench.handler.run(invocations) { #expect(outcome.result == .failed) }
                    _ = bench.to.parent.withCString { unlink($0) }
                default: break
                }
                if Bool.random(using: &generator) {
                    for outcome in bench.handler.run(invocations) { #expect(outcome.result == .succeeded) }
                } else {
                    for invocation in invocations { #expect(bench.handler.run(invocation).result == .succeeded) }
                }
                guard !invocations.isEmpty else { continue }
                let expected = names.filter { !$0.hasPrefix(".") }.filter { TestFile.exists(bench.path($0)) }
                let sizes = try expected.map { try metadata(bench.path($0)).size }
                #expect(bench.names()?.sorted() == expected.sorted())
                let listed = Dictionary(
                    (bench.entries() ?? []).map { ($0["path"] as? String ?? "", $0["size"] as? Int ?? -1) }
                ) { $1 }
                #expect(listed == Dictionary(zip(expected, sizes.map { Int($0) })) { $1 })
                // The order is the same too: a new instance writes the same bytes for the same files.
                let text = TestFile.read(bench.to)
                bench.to = tree.path("fresh.json")
                _ = IndexHandler().run(bench.invocation(.scanEnded, tree.path("in")))
                #expect(TestFile.read(bench.to) == text)
                bench.to = tree.path("out/list.json")
            }
        }
    }
}
