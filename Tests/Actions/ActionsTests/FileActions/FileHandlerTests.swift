import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Tests for the file handlers.
struct FileHandlerTests {
    static let occupied = ["in/a.txt": "new", "out/a.txt": "old"]

    // MARK: - Conflicts

    static let copies = [
        FileCase(
            name: "rename_existing", before: occupied, with: ["to": "@/out/", "on_conflict": "rename_existing"],
            output: "out/a.txt", after: ["in/a.txt: new", "out/a (1).txt: old", "out/a.txt: new"],
            changes: ["moved out/a.txt out/a (1).txt", "made out/a.txt of in/a.txt"]),
        FileCase(
            name: "rename_existing with nothing there", with: ["to": "@/out/", "on_conflict": "rename_existing"],
            output: "out/a.txt", after: ["in/a.txt: new", "out/a.txt: new"],
            changes: ["folder out", "made out/a.txt of in/a.txt"]),
        FileCase(
            name: "rename_existing of a folder", before: ["in/a.txt": "new", "out/a.txt/x": "x"],
            with: ["to": "@/out/", "on_conflict": "rename_existing"], output: "out/a.txt",
            after: ["in/a.txt: new", "out/a (1).txt/x: x", "out/a.txt: new"]),
        FileCase(
            name: "deduplicate the same", before: ["in/a.txt": "new", "out/a.txt": "new"],
            with: ["to": "@/out/", "on_conflict": "deduplicate"], code: "same-content", output: "out/a.txt",
            after: ["in/a.txt: new", "out/a.txt: new"], changes: []),
        FileCase(
            name: "deduplicate another", before: occupied, with: ["to": "@/out/", "on_conflict": "deduplicate"],
            output: "out/a (1).txt", after: ["in/a.txt: new", "out/a (1).txt: new", "out/a.txt: old"]),
        FileCase(
            name: "deduplicate a numbered one",
            before: ["in/a.txt": "new", "out/a.txt": "old", "out/a (1).txt": "new"],
            with: ["to": "@/out/", "on_conflict": "deduplicate"], code: "same-content", output: "out/a (1).txt",
            after: ["in/a.txt: new", "out/a (1).txt: new", "out/a.txt: old"]),
        FileCase(
            name: "a link is no duplicate", before: ["in/a.txt": "new", "x": "new", "out/a.txt": "-> ../x"],
            with: ["to": "@/out/", "on_conflict": "deduplicate"], output: "out/a (1).txt",
            after: ["in/a.txt: new", "x: new", "out/a (1).txt: new", "out/a.txt -> ../x"]),
        FileCase(
            name: "overwrite a link, not what it leads to",
            before: ["in/a.txt": "new", "x": "precious", "out/a.txt": "-> ../x"],
            with: ["to": "@/out/", "on_conflict": "overwrite"], output: "out/a.txt",
            after: ["in/a.txt: new", "x: precious", "out/a.txt: new"],
            changes: ["overwritten out/a.txt", "made out/a.txt of in/a.txt"]),
    ]

    @Test(arguments: copies)
    func copy(_ example: FileCase) { example.play(TransferHandler.copy()) }

    static let moves = [
        FileCase(
            name: "rename_existing", before: occupied, with: ["to": "@/out/", "on_conflict": "rename_existing"],
            output: "out/a.txt", after: ["in/", "out/a (1).txt: old", "out/a.txt: new"],
            changes: ["moved out/a.txt out/a (1).txt", "moved in/a.txt out/a.txt"]),
        FileCase(
            name: "deduplicate the same", before: ["in/a.txt": "new", "out/a.txt": "new"],
            with: ["to": "@/out/", "on_conflict": "deduplicate"], code: "same-content", output: "out/a.txt",
            after: ["in/", "out/a.txt: new"], changes: ["removed in/a.txt for out/a.txt"]),
        FileCase(
            name: "deduplicate another", before: occupied, with: ["to": "@/out/", "on_conflict": "deduplicate"],
            output: "out/a (1).txt", after: ["in/", "out/a (1).txt: new", "out/a.txt: old"]),
        FileCase(
            name: "deduplicate a folder, which has no content to compare", before: ["in/d/x": "x", "out/d/": ""],
            source: "in/d", with: ["to": "@/out/", "on_conflict": "deduplicate"], output: "out/d (1)",
            after: ["in/", "out/d/", "out/d (1)/x: x"]),
        FileCase(
            name: "folders are made", with: ["to": "@/x/y/"], output: "x/y/a.txt", after: ["in/", "x/y/a.txt: new"],
            changes: ["folder x", "folder x/y", "moved in/a.txt x/y/a.txt"]),
    ]

    @Test(arguments: moves)
    func move(_ example: FileCase) { example.play(TransferHandler.move()) }

    // MARK: - Rename

    static let renames = [
        FileCase(
            name: "a new name", with: ["name": "b.md"], output: "in/b.md", after: ["in/b.md: new"],
            changes: ["moved in/a.txt in/b.md"]),
        FileCase(
            name: "a number when it is taken", before: ["in/a.txt": "new", "in/b": "old"], with: ["name": "b"],
            output: "in/b (1)", after: ["in/b: old", "in/b (1): new"]),
        FileCase(
            name: "overwrite", before: ["in/a.txt": "new", "in/b": "old"],
            with: ["name": "b", "on_conflict": "overwrite"], output: "in/b", after: ["in/b: new"],
            changes: ["overwritten in/b", "moved in/a.txt in/b"]),
        FileCase(
            name: "skip", before: ["in/a.txt": "new", "in/b": "old"], with: ["name": "b", "on_conflict": "skip"],
            result: .skipped, code: "exists", after: ["in/a.txt: new", "in/b: old"]),
        FileCase(
            name: "the name it has", with: ["name": "a.txt"], result: .skipped, code: "same-path",
            after: ["in/a.txt: new"]),
        FileCase(
            name: "a path", with: ["name": "x/b"], result: .failed, code: "bad-name", after: ["in/a.txt: new"]),
        FileCase(name: "..", with: ["name": ".."], result: .failed, code: "bad-name", after: ["in/a.txt: new"]),
        FileCase(name: "nothing", with: ["name": ""], result: .failed, code: "bad-name", after: ["in/a.txt: new"]),
        FileCase(
            name: "a folder", before: ["in/d/x": "x"], source: "in/d", with: ["name": "e"], output: "in/e",
            after: ["in/e/x: x"]),
        FileCase(
            name: "gone", before: ["in/b": "old"], with: ["name": "c"], result: .skipped, code: "gone",
            after: ["in/b: old"]),
    ]

    @Test(arguments: renames)
    func rename(_ example: FileCase) { example.play(TransferHandler.rename()) }

    // MARK: - Link

    static let links = [
        FileCase(
            name: "relative", with: ["to": "@/out/x/"],
            further: ["relative": .value(true)], output: "out/x/a.txt",
            after: ["in/a.txt: new", "out/x/a.txt -> ../../in/a.txt"],
            changes: ["folder out", "folder out/x", "made out/x/a.txt of in/a.txt"]),
        FileCase(
            name: "relative in the same folder", with: ["to": "@/in/b"], further: ["relative": .value(true)],
            output: "in/b", after: ["in/a.txt: new", "in/b -> a.txt"]),
        FileCase(
            name: "hard", with: ["to": "@/out/", "kind": "hard"], output: "out/a.txt", changesSource: true,
            after: ["in/a.txt: new", "out/a.txt: new"]),
        FileCase(
            name: "hard in place of another", before: occupied,
            with: ["to": "@/out/", "kind": "hard", "on_conflict": "overwrite"], output: "out/a.txt",
            changesSource: true,
            after: ["in/a.txt: new", "out/a.txt: new"]),
        FileCase(
            name: "relative in place of another", before: occupied,
            with: ["to": "@/out/", "on_conflict": "overwrite"], further: ["relative": .value(true)],
            output: "out/a.txt", after: ["in/a.txt: new", "out/a.txt -> ../in/a.txt"]),
        FileCase(
            name: "a number", before: occupied, with: ["to": "@/out/", "kind": "hard"], output: "out/a (1).txt",
            changesSource: true,
            after: ["in/a.txt: new", "out/a (1).txt: new", "out/a.txt: old"]),
        FileCase(
            name: "the old one beside it", before: occupied,
            with: ["to": "@/out/", "kind": "hard", "on_conflict": "rename_existing"], output: "out/a.txt",
            changesSource: true, after: ["in/a.txt: new", "out/a (1).txt: old", "out/a.txt: new"]),
        FileCase(
            name: "there already", before: ["in/a.txt": "new", "out/a.txt": "-> ../in/a.txt"], with: ["to": "@/out/"],
            further: ["relative": .value(true)], result: .skipped, code: "exists",
            after: ["in/a.txt: new", "out/a.txt -> ../in/a.txt"]),
        FileCase(
            name: "to itself", with: ["to": "@/in/"], result: .failed, code: "same-path", after: ["in/a.txt: new"]),
        FileCase(
            name: "another name of a folder", before: ["in/d/": ""], source: "in/d",
            with: ["to": "@/out/", "kind": "hard"], result: .failed, code: "not-a-file", after: ["in/d/", "out/"]),
    ]

    @Test(arguments: links)
    func link(_ example: FileCase) {
        // A second attempt finds the link of the first one, even if its name has a number.
        example.play(LinkHandler())
    }

    @Test func `a link is absolute by default, and a hard link is another name of the file`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a"), "new")
            #expect(BuiltInRun(LinkHandler())(tree.path("in/a"), ["to": tree.path("out/")]).result == .succeeded)
            #expect(listing(tree.path("out")) == ["a -> \(tree.path("in/a"))"])
            #expect(
                BuiltInRun(LinkHandler())(tree.path("in/a"), ["to": tree.path("out/b"), "kind": "hard"]).result
                    == .succeeded)
            let here = try metadata(tree.path("in/a"))
            let there = try metadata(tree.path("out/b"))
            #expect(here.identity == there.identity && there.links == 2)
        }
    }

    @Test func `a hard link to another file system fails with a remedy`() {
        withTempTree { tree in
            guard let other = OtherFileSystem() else {
                print("skipped: no second file system")
                return
            }
            TestFile.write(tree.path("in/a"), "new")
            let outcome = BuiltInRun(LinkHandler())(
                tree.path("in/a"), ["to": other.root.appending("a"), "kind": "hard"])
            #expect(outcome.result == .failed)
            #expect(outcome.message.contains("use 'kind: symbolic'"))
            #expect(listing(other.root).isEmpty)
        }
    }

    // MARK: - Delete

    static let deletions = [
        FileCase(name: "a file", before: ["in/a.txt": "new", "in/b": "b"], after: ["in/b: b"], changes: []),
        FileCase(
            name: "a link, not what it leads to", before: ["x": "x", "in/l": "-> ../x"], source: "in/l",
            after: ["in/", "x: x"]),
        FileCase(name: "an empty folder", before: ["in/d/": ""], source: "in/d", after: ["in/"]),
        FileCase(
            name: "a full folder", before: ["in/d/x": "x"], source: "in/d", result: .failed, code: "not-empty",
            after: ["in/d/x: x"]),
        FileCase(
            name: "a full folder, when asked",
            before: ["in/d/e/f/x": "x", "in/d/y": "y", "out": "o", "in/d/l": "-> /"],
            source: "in/d", further: ["recursive": .value(true)], after: ["in/", "out: o"]),
        FileCase(name: "gone", before: ["in/b": "b"], result: .skipped, code: "gone", after: ["in/b: b"]),
    ]

    @Test(arguments: deletions)
    func delete(_ example: FileCase) { example.play(DeleteHandler()) }

    @Test func `a tree of any depth is deleted`() {
        withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            var directory = root.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
            for level in 0..<300 {
                mkdirat(directory, "d\(level % 3)", 0o755)
                let inner = openat(directory, "d\(level % 3)", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                close(directory)
                directory = inner
                let file = openat(directory, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
                close(file)
            }
            close(directory)
            var run = BuiltInRun(DeleteHandler())
            run.further = ["recursive": .value(true)]
            let outcome = run(tree.path("in/d0"), [:])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(listing(root).isEmpty)
        }
    }

    // MARK: - Touch

    static let touches = [
        FileCase(name: "its own", output: "in/a.txt", after: ["in/a.txt: new"]),
        FileCase(
            name: "a marker", with: ["path": "@/out/a.done"], further: ["create": .value(true)],
            output: "out/a.done", after: ["in/a.txt: new", "out/a.done: "]),
        FileCase(
            name: "a marker that is there", before: ["in/a.txt": "new", "in/a.done": "x"],
            with: ["path": "@/in/a.done"], further: ["create": .value(true)], output: "in/a.done",
            after: ["in/a.txt: new", "in/a.done: x"]),
        FileCase(
            name: "nothing", with: ["path": "@/in/b"], result: .skipped, code: "gone", after: ["in/a.txt: new"]),
        FileCase(
            name: "a link", before: ["in/a.txt": "new", "x": "x", "in/l": "-> ../x"], with: ["path": "@/in/l"],
            further: ["create": .value(true)], result: .failed, code: "not-a-file",
            after: ["in/a.txt: new", "x: x", "in/l -> ../x"]),
        FileCase(
            name: "its own link", before: ["x": "x", "in/l": "-> ../x"], source: "in/l", result: .failed,
            code: "not-a-file", after: ["x: x", "in/l -> ../x"]),
        FileCase(
            name: "no time", with: ["time": "noon"], result: .failed, code: "bad-time", after: ["in/a.txt: new"]),
    ]

    @Test(arguments: touches)
    func touch(_ example: FileCase) { example.play(TouchHandler()) }

    static let times: [(String, Timestamp)] = [
        ("2009-02-13T23:31:30Z", Timestamp(seconds: 1_234_567_890, nanoseconds: 0)),
        ("2009-02-14T00:31:30.5+01:00", Timestamp(seconds: 1_234_567_890, nanoseconds: 500_000_000)),
        ("2009-02-13T18:01:30-05:30", Timestamp(seconds: 1_234_567_890, nanoseconds: 0)),
        ("@1234567890.000000007", Timestamp(seconds: 1_234_567_890, nanoseconds: 7)),
    ]

    @Test(arguments: times)
    func `times are set as specified`(_ text: String, _ time: Timestamp) throws {
        try withTempTree { tree in
            let path = tree.path("in/a")
            TestFile.write(path, "x")
            let run = BuiltInRun(TouchHandler())
            #expect(run(path, ["time": PathBytes(text), "set": "mtime"]).result == .succeeded)
            let after = try metadata(path)
            #expect(after.modified == time)
        }
    }

    @Test(arguments: ["2009-02-31", "2009-13-01", "2009-02-13T25:00:00Z", "13.2.2009", "", "@", "@-1"])
    func `an invalid time is refused, and nothing is set`(_ text: String) throws {
        try withTempTree { tree in
            let path = tree.path("in/a")
            TestFile.write(path, "x")
            let before = try metadata(path)
            #expect(BuiltInRun(TouchHandler())(path, ["time": PathBytes(text)]).code == "bad-time")
            let after = try metadata(path)
            #expect(after == before)
        }
    }

    // MARK: - Permissions

    static let modes: [(UInt32, String, UInt32)] = [
        (0o644, "0640", 0o640), (0o644, "600", 0o600), (0o644, "u+x,go-r", 0o700), (0o600, "+r", 0o644),
        (0o755, "a-x", 0o644), (0o640, "g=u", 0o660), (0o644, "o=", 0o640), (0o755, "u+s", 0o4755),
        (0o644, "a+X", 0o644), (0o744, "a+X", 0o755), (0o644, "u=rwx,g=rx,o=r", 0o754), (0o644, "ug+w-r", 0o224),
        (0o755, "+t", 0o1755), (0o6755, "ug-s", 0o755), (0o777, "go=rx", 0o755),
    ]

    @Test(arguments: modes)
    func `a mode is a number or a change`(_ before: UInt32, _ text: String, _ after: UInt32) throws {
        try withTempTree { tree in
            let path = tree.path("in/a")
            TestFile.write(path, "x")
            _ = path.withCString { chmod($0, before) }
            let outcome = BuiltInRun(SetPermissionsHandler())(path, ["mode": PathBytes(text)])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(outcome.outputs == [path])
            let now = try metadata(path)
            #expect(UInt32(now.mode) == after, "\(String(now.mode, radix: 8))")
            #expect(ParameterCheck.problems(in: mode(text), schema: schema).isEmpty)
        }
    }

    private var schema: ParameterSchema { SetPermissionsHandler().summary.parameters ?? ParameterSchema() }

    private func mode(_ text: String) -> ParameterTemplate { .object(["mode": .text(Template(literal: text))]) }

    @Test(arguments: ["64", "888", "u+z", "rw", "u", "", "u+r,,g+r", "+0644", "x+r"])
    func `an invalid mode is refused when the rules load and when they run`(_ text: String) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            #expect(!ParameterCheck.problems(in: mode(text), schema: schema).isEmpty)
            #expect(
                BuiltInRun(SetPermissionsHandler())(tree.path("in/a"), ["mode": PathBytes(text)]).code == "bad-mode")
        }
    }

    @Test func `owner and group are set by name or number`() throws {
        guard geteuid() == 0 else {
            print("skipped: only root gives files away")
            return
        }
        try withTempTree { tree in
            let path = tree.path("in/a")
            TestFile.write(path, "x")
            let run = BuiltInRun(SetPermissionsHandler())
            #expect(run(path, ["owner": "daemon", "group": "4321", "mode": "4755"]).result == .succeeded)
            let now = try metadata(path)
            #expect(now.uid == 1 && now.gid == 4321 && now.mode == 0o4755)
            #expect(run(path, ["owner": "nobody-has-this-name"]).code == "no-such-user")
            #expect(run(path, [:]).result == .failed)
        }
    }
}
