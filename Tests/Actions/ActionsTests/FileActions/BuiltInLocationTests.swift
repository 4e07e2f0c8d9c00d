import ActionAPI
import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// The common behaviour of `copy` and `move`: the destination of a file, and conflicts there.
struct BuiltInLocationTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        var handler: any Handler
        var testDescription: String { handler.summary.reference.name }
        /// Whether the source is removed.
        var takes: Bool { testDescription == "move" }
    }

    static let kinds = [Kind(handler: TransferHandler.copy()), Kind(handler: TransferHandler.move())]

    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var kinds = BuiltInLocationTests.kinds
        /// The files before the action, by their path relative to the tree.
        ///
        /// A directory ends in a slash.
        var before = ["in/a.txt": "new"]
        var source = "in/a.txt"
        /// The destination, relative to the tree.
        var to: String
        var conflict: String?
        var result = PluginResponse.Outcome.succeeded
        var code: String?
        /// The output, relative to the tree.
        var output: String?
        /// The files after `move`.
        ///
        /// After `copy`, the source exists as well.
        var after: [String]
        var testDescription: String { name }
    }

    static let occupied = ["in/a.txt": "new", "out/a.txt": "old"]

    static let cases = [
        Case(name: "a path", to: "out/b.txt", output: "out/b.txt", after: ["out/b.txt: new"]),
        Case(name: "a folder to be made", to: "x/y/z/", output: "x/y/z/a.txt", after: ["x/y/z/a.txt: new"]),
        Case(
            name: "doubled slashes and dots", to: "x//./y/../b.txt", output: "x/b.txt", after: ["x/b.txt: new"]),
        Case(
            name: "a name with blanks, a line end and quotes", before: ["in/ a\n\"b' $(c).txt": "new"],
            source: "in/ a\n\"b' $(c).txt", to: "out/", output: "out/ a\n\"b' $(c).txt",
            after: ["out/ a\n\"b' $(c).txt: new"]),
        Case(
            name: "a leading dash", before: ["in/-rf": "new"], source: "in/-rf", to: "out/", output: "out/-rf",
            after: ["out/-rf: new"]),
        Case(
            name: "an empty file", before: ["in/a.txt": ""], to: "out/", output: "out/a.txt", after: ["out/a.txt: "]),
        Case(
            name: "a number by default", before: occupied, to: "out/", output: "out/a (1).txt",
            after: ["out/a (1).txt: new", "out/a.txt: old"]),
        Case(
            name: "the first free number",
            before: ["in/a.txt": "new", "out/a.txt": "old", "out/a (1).txt": "1", "out/a (3).txt": "3"], to: "out/",
            conflict: "rename", output: "out/a (2).txt",
            after: ["out/a (1).txt: 1", "out/a (2).txt: new", "out/a (3).txt: 3", "out/a.txt: old"]),
        Case(
            name: "a number for a name without extension", before: ["in/.profile": "new", "out/.profile": "old"],
            source: "in/.profile", to: "out/", output: "out/.profile (1)",
            after: ["out/.profile (1): new", "out/.profile: old"]),
        Case(
            name: "overwrite", before: occupied, to: "out/", conflict: "overwrite", output: "out/a.txt",
            after: ["out/a.txt: new"]),
        Case(
            name: "skip", before: occupied, to: "out/", conflict: "skip", result: .skipped, code: "exists",
            after: ["in/a.txt: new", "out/a.txt: old"]),
        Case(
            name: "skip without anything to skip for", to: "out/", conflict: "skip", output: "out/a.txt",
            after: ["out/a.txt: new"]),
        Case(
            name: "fail", before: occupied, to: "out/", conflict: "fail", result: .failed, code: "file-error",
            after: ["in/a.txt: new", "out/a.txt: old"]),
        Case(
            name: "fail without anything to fail for", to: "out/", conflict: "fail", output: "out/a.txt",
            after: ["out/a.txt: new"]),
        Case(
            name: "a folder is in the way", before: ["in/a.txt": "new", "out/b/": ""], to: "out/b",
            output: "out/b (1)", after: ["out/b (1): new", "out/b/"]),
        Case(
            name: "a folder is not overwritten", before: ["in/a.txt": "new", "out/b/": ""], to: "out/b",
            conflict: "overwrite", result: .failed, code: "file-error", after: ["in/a.txt: new", "out/b/"]),
        Case(
            name: "a file where a folder has to be", before: ["in/a.txt": "new", "out": "file"], to: "out/x/",
            result: .failed, code: "file-error", after: ["in/a.txt: new", "out: file"]),
        Case(
            name: "a file where the folder has to be", before: ["in/a.txt": "new", "out": "file"], to: "out/",
            result: .failed, code: "file-error", after: ["in/a.txt: new", "out: file"]),
        Case(
            name: "the file is gone", before: ["in/b.txt": "other"], to: "out/", result: .skipped, code: "gone",
            after: ["in/b.txt: other"]),
    ]

    @Test(arguments: cases, kinds)
    func `a file goes to its destination`(_ example: Case, _ kind: Kind) {
        withTempTree { tree in
            for (path, content) in example.before {
                if path.hasSuffix("/") {
                    TestFile.makeDirectory(tree.path(path).normalized)
                } else {
                    TestFile.write(tree.path(path), content)
                }
            }
            var parameters = ["to": tree.path(example.to)]
            if let conflict = example.conflict { parameters["on_conflict"] = PathBytes(conflict) }
            let outcome = BuiltInRun(kind.handler)(tree.path(example.source), parameters)
            #expect(outcome.result == example.result, "\(outcome.message)")
            #expect(outcome.code == example.code, "\(outcome.message)")
            #expect(outcome.outputs == (example.output.map { [tree.path($0)] } ?? []))
            #expect(!outcome.message.isEmpty)
            var after = Set(example.after)
            if !kind.takes, example.result == .succeeded {
                after.insert("\(example.source): \(example.before[example.source] ?? "")")
            }
            // Directories that were created or are empty now do not matter.
            let left = listing(tree.root).filter { !$0.hasSuffix("/") || example.before[$0] != nil }
            #expect(Set(left) == after)
        }
    }

    @Test(arguments: kinds)
    func `a relative path is relative to the directory of the rules file`(_ kind: Kind) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            var run = BuiltInRun(kind.handler)
            run.directory = tree.path("rules")
            #expect(run(tree.path("in/a.txt"), ["to": "../out/"]).outputs == [tree.path("out/a.txt")])
            TestFile.write(tree.path("in/b.txt"), "new")
            #expect(run(tree.path("in/b.txt"), ["to": "c.txt"]).outputs == [tree.path("rules/c.txt")])
        }
    }

    @Test(arguments: kinds)
    func `a name that is not UTF-8 survives`(_ kind: Kind) {
        withTempTree { tree in
            let name: [UInt8] = [0xff, 0x20, 0xfe, 0x0a, 0x2e, 0x80]
            let source = tree.path("in").appending(name)
            TestFile.write(source, "new")
            TestFile.write(tree.path("out").appending(name), "old")
            let outcome = BuiltInRun(kind.handler)(source, ["to": tree.path("out/")])
            let numbered: [UInt8] = [0xff, 0x20, 0xfe, 0x0a] + Array(" (1)".utf8) + [0x2e, 0x80]
            #expect(outcome.outputs == [tree.path("out").appending(numbered)])
            #expect(TestFile.names(in: tree.path("out")).count == 2)
            #expect(TestFile.read(tree.path("out").appending(numbered)) == Array("new".utf8))
        }
    }

    @Test(arguments: kinds, [".txt", ""])
    func `a name of the maximum length is copied, and so is its numbered form`(_ kind: Kind, _ ending: String) throws {
        try withTempTree { tree in
            // Two bytes per letter, so that a cut may fall inside a letter.
            let full = "x" + String(repeating: "ü", count: (254 - ending.utf8.count) / 2) + ending
            #expect((254...255).contains(full.utf8.count))
            for round in 0..<12 {
                TestFile.write(tree.path("in/\(full)"), "\(round)")
                let outcome = BuiltInRun(kind.handler)(tree.path("in/\(full)"), ["to": tree.path("out/")])
                #expect(outcome.result == .succeeded, "\(outcome.message)")
            }
            let names = TestFile.names(in: tree.path("out"))
            #expect(names.count == 12)
            for name in names {
                let text = try #require(String(validating: name, as: UTF8.self))
                #expect(text.hasSuffix(ending))
                #expect(name.count <= 255)
            }
        }
    }

    @Test(arguments: kinds)
    func `a long extension is shortened when nothing else can be shortened`(_ kind: Kind) {
        withTempTree { tree in
            let name = "a." + String(repeating: "e", count: 253)
            for round in 0..<3 {
                TestFile.write(tree.path("in/\(name)"), "\(round)")
                let outcome = BuiltInRun(kind.handler)(tree.path("in/\(name)"), ["to": tree.path("out/")])
                #expect(outcome.result == .succeeded, "\(outcome.message)")
            }
            #expect(TestFile.names(in: tree.path("out")).count == 3)
        }
    }

    /// Otherwise the numbered file would be reported as a new one, and be numbered again and again.
    @Test(arguments: kinds)
    func `the file's own directory is recognized behind a link`(_ kind: Kind) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            _ = tree.path("in").withCString { from in tree.path("link").withCString { symlink(from, $0) } }
            for to in ["link/", "link/../in/", "in/", "in/a.txt"] {
                let outcome = BuiltInRun(kind.handler)(tree.path("in/a.txt"), ["to": tree.path(to)])
                #expect(outcome.result == (kind.takes ? .skipped : .failed), "\(to)")
                #expect(outcome.code == "same-path")
                #expect(listing(tree.path("in")) == ["a.txt: new"])
            }
        }
    }

    @Test(arguments: kinds)
    func `a destination without permission is reported, and nothing is left there`(_ kind: Kind) async {
        guard geteuid() == 0 else {
            print("skipped: only root can become another user")
            return
        }
        let isCopy: Bool = kind.testDescription == "copy"
        await #expect(processExitsWith: .success) { [isCopy = isCopy as Bool] in
            try withTempTree { tree in
                let handler: any Handler = isCopy ? TransferHandler.copy() : TransferHandler.move()
                TestFile.write(tree.path("in/a.txt"), "new")
                TestFile.makeDirectory(tree.path("out"))
                for directory in ["", "in"] { _ = tree.path(directory).withCString { chmod($0, 0o777) } }
                try #require(setegid(65534) == 0 && seteuid(65534) == 0)
                let outcome = BuiltInRun(handler)(tree.path("in/a.txt"), ["to": tree.path("out/")])
                let deep = BuiltInRun(handler)(tree.path("in/a.txt"), ["to": tree.path("out/x/y/")])
                try #require(seteuid(0) == 0)
                for outcome in [outcome, deep] {
                    #expect(outcome.result == .retry)
                    #expect(outcome.message.hasSuffix("Permission denied"), "\(outcome.message)")
                }
                #expect(listing(tree.root) == ["in/a.txt: new", "out/"])
            }
        }
    }

    @Test(arguments: kinds)
    func `a missing parameter is a failure, not a crash`(_ kind: Kind) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            #expect(BuiltInRun(kind.handler)(tree.path("in/a.txt"), [:]).result == .failed)
            #expect(BuiltInRun(kind.handler)(tree.path("in/a.txt"), ["to": ""]).result == .failed)
            let withNUL = PathBytes(tree.path("out/x").bytes + [0, 0x61])
            #expect(BuiltInRun(kind.handler)(tree.path("in/a.txt"), ["to": withNUL]).result == .failed)
            #expect(listing(tree.root) == ["in/a.txt: new"])
        }
    }
}
