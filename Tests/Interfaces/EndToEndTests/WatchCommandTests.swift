import Foundation
import Glibc
import System
import Testing
import TestKit

/// `alight watch` as the built program.
struct WatchCommandTests {
    private static func start(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> RunningProgram {
        let program = RunningProgram.alight(["watch"] + arguments, in: tree.root, output: "watch")
        #expect(program.waitUntilReady(), "\(program.error)")
        return program
    }

    private static func objects(_ program: RunningProgram) throws -> [[String: Any]] {
        try program.lines.map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
    }

    private static func summary(_ object: [String: Any]) -> String {
        "\(object["event"] ?? "") \(object["relative"] ?? "")"
    }

    @Test func `S48 every event is one line of JSON, whatever the name is`() throws {
        try withTempTree { tree in
            let directory = tree.path("in")
            TestFile.makeDirectory(directory)
            let program = Self.start(tree, ["in", "--json", "--settle", "50ms"])
            let odd = directory.appending([0x63, 0xE9, 0x0A] as [UInt8])
            TestFile.write(odd, "123")
            #expect(Deadline.wait { program.lines.count == 1 })
            TestFile.write(directory.appending("new/\u{1B}[31m\"quoted\""), "1")
            #expect(Deadline.wait { program.lines.count == 3 })
            _ = odd.withCString { from in directory.appending("b").withCString { rename(from, $0) } }
            #expect(Deadline.wait { program.lines.count == 4 })
            TestFile.write(directory.appending("b"), [1, 2, 3, 4], appending: true)
            #expect(Deadline.wait { program.lines.count == 5 })
            TestFile.removeTree(directory.appending("b"))
            #expect(Deadline.wait { program.lines.count == 6 })

            let objects = try Self.objects(program)
            #expect(objects[0]["path_base64"] as? String == Data(odd.bytes).base64EncodedString())
            #expect(objects[0]["size"] as? Int == 3 && objects[0]["type"] as? String == "file")
            #expect(objects[3]["from_base64"] as? String == Data(odd.bytes).base64EncodedString())
            #expect(objects[4]["changed"] as? [String] == ["extended"])
            let names = objects.map(Self.summary)
            #expect(
                Set(names[1...2]) == ["created new", "created new/\u{1B}[31m\"quoted\""], "\(names)")
            #expect(Array(names[3...]) == ["moved b", "modified b", "deleted b"])
            for object in objects {
                for member in ["root", "origin", "mtime", "mode", "uid", "gid", "nlink", "id", "time"] {
                    #expect(object[member] != nil, "\(member)")
                }
            }
            #expect(program.stop() == 0)
        }
    }

    @Test func `a line for a terminal cannot move the cursor`() {
        withTempTree { tree in
            let directory = tree.path("in")
            TestFile.makeDirectory(directory)
            let program = Self.start(tree, ["in", "--settle", "50ms"])
            TestFile.write(directory.appending("\u{1B}[2J\nready: x"), "1")
            #expect(Deadline.wait { program.lines.count == 1 })
            #expect(
                program.output.contains("created    ") && program.output.contains("\\u{1b}[2J\\nready: x, 1 byte\n"))
            #expect(!program.output.contains("\u{1B}"))
            program.signal(SIGINT)
            #expect(program.wait() == 0)
        }
    }

    @Test func `options select the reported events`() throws {
        try withTempTree { tree in
            let directory = tree.path("in")
            TestFile.write(directory.appending("old.txt"), "1")
            let program = Self.start(
                tree,
                [
                    "in", "--json", "--settle", "50ms", "--events", "created,deleted,scan_begin,scan_end", "--exclude",
                    "out", "--depth", "1", "--types", "file", "--existing",
                ])
            #expect(Deadline.wait { program.lines.count == 3 })
            for name in ["out/a", "one/two/b", ".hidden", "one/c"] { TestFile.write(directory.appending(name), "1") }
            TestFile.write(directory.appending("old.txt"), "12")
            #expect(Deadline.wait { program.lines.count == 4 })
            TestFile.removeTree(directory.appending("old.txt"))
            #expect(Deadline.wait { program.lines.count == 5 })
            program.signal(SIGUSR1)
            #expect(Deadline.wait { program.lines.count == 7 })
            let events = try Self.objects(program).map(Self.summary)
            #expect(
                events == [
                    "scan_begin ", "created old.txt", "scan_end ", "created one/c", "deleted old.txt", "scan_begin ",
                    "scan_end ",
                ])
        }
    }

    @Test func `a file, a glob, and a directory that does not exist yet can be watched`() {
        withTempTree { tree in
            TestFile.write(tree.path("a/one[1]"), "1")
            let program = Self.start(tree, ["a/one[1]", "g/*.txt", "later", "--json", "--settle", "50ms"])
            TestFile.write(tree.path("a/one1"), "no")
            TestFile.write(tree.path("a/one[1]"), "12")
            #expect(Deadline.wait { program.lines.contains { $0.contains("one[1]") } }, "\(program.output)")
            TestFile.write(tree.path("later/b"), "1")
            TestFile.write(tree.path("g/c.txt"), "1")
            TestFile.write(tree.path("g/c.jpg"), "1")
            TestFile.write(tree.path("g/d.txt"), "1")
            #expect(Deadline.wait { program.lines.contains { $0.contains("d.txt") } }, "\(program.output)")
            #expect(Deadline.wait { program.lines.contains { $0.contains("later/b") } }, "\(program.output)")
            #expect(!program.output.contains("one1") && !program.output.contains("c.jpg"))
        }
    }

    @Test func `open and read events are reported on request`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "1")
            let program = Self.start(tree, ["in", "--raw", "--settle", "0"])
            _ = TestFile.read(tree.path("in/a"))
            for word in ["opened", "accessed", "closed"] {
                #expect(Deadline.wait { program.output.contains(word) }, "\(word): \(program.output)")
            }
        }
    }

    @Test func `polling is used on request, and reported`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let program = Self.start(tree, ["in", "--backend", "poll", "--poll", "50ms", "--settle", "50ms"])
            #expect(
                program.error.contains("polling '") && program.error.contains("every 50 ms: '--backend poll' is set"))
            TestFile.write(tree.path("in/a"), "1")
            #expect(Deadline.wait { program.output.contains("created    ") }, "\(program.output)")
        }
    }

    @Test func `the command exits when its reader does, even if no event follows`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "1")
            TestFile.write(tree.path("in/b"), "1")
            let shell = RunningProgram(
                "/bin/sh", ["-c", "\(Places.alight) watch --json --existing in | head -n 1; echo ended"],
                in: tree.root, output: tree.path("shell"))
            #expect(shell.wait() == 0)
            let lines = shell.lines
            #expect(lines.count == 2 && lines.last == "ended" && lines.first?.contains("scan_begin") == true)
        }
    }

    @Test func `the command fails when its output cannot be written`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "1")
            let shell = RunningProgram(
                "/bin/sh", ["-c", "\(Places.alight) watch --existing in >/dev/full"], in: tree.root,
                output: tree.path("shell"))
            #expect(shell.wait() == 1)
            #expect(
                shell.error.contains("error: cannot write to standard output: No space left on device"),
                "\(shell.error)")
        }
    }

    private static let mistakes: [([String], Int32, String)] = [
        ([], 2, "Missing expected argument"), (["in", "--settle", "5x"], 2, "unknown unit 'x'"),
        (["in", "--events", "created,crated"], 2, "unknown event 'crated' in --events; write 'created'"),
        (["in", "--types", "files"], 2, "unknown type 'files'"), (["in", "--depth", "x"], 2, "x"),
        (["in", "--backend", "kqueue"], 2, "unknown backend 'kqueue'"), (["in", "--poll", "1ms"], 2, "10ms"),
        (["in/{a*"], 2, "glob 'in/{a*' has no closing '}'"), (["in", "--exclude", "/x"], 2, "glob '/x' is absolute"),
        (["file/x"], 1, "it is not a directory"),
    ]

    @Test(arguments: mistakes)
    func `a usage error is reported`(_ arguments: [String], _ status: Int32, _ message: String) {
        withTempTree { tree in
            TestFile.write(tree.path("file"), "")
            TestFile.makeDirectory(tree.path("in"))
            let program = RunningProgram.alight(["watch"] + arguments, in: tree.root, output: "watch")
            #expect(program.wait() == status)
            #expect(program.error.contains(message), "\(program.error)")
            #expect(program.output.isEmpty)
        }
    }
}
