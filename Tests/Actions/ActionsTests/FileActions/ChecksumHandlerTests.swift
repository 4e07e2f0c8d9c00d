import ActionAPI
import FileActions
import FileEvents
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Tests for writing and verifying checksums with `checksum`.
struct ChecksumHandlerTests {
    static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    static let rows = [
        ContentRow(
            "a list", before: ["in/a.txt": "abc"], with: ["write": "sums"],
            message: "sha256 \(abc) in @/in/SHA256SUMS", after: ["in/SHA256SUMS: 72 bytes", "in/a.txt: abc"]),
        ContentRow(
            "neither", before: ["in/a.txt": "abc"], with: ["algorithm": "md5"],
            message: "md5 900150983cd24fb0d6963f7d28e17f72", after: ["in/a.txt: abc"]),
        ContentRow(
            "the list itself", before: ["in/SHA256SUMS": ""], file: "SHA256SUMS", with: ["write": "sums"],
            outcome: .skipped, message: "it is a checksum file itself", after: ["in/SHA256SUMS: "]),
        ContentRow(
            "a file that is gone", before: ["in/": ""], with: ["write": "sums"], outcome: .skipped,
            message: "it is gone", after: ["in/"]),
        ContentRow(
            "a deleted file in the list", before: ["in/SHA256SUMS": "\(abc)  a.txt\n"], with: ["write": "sums"],
            kind: .deleted, message: "removed from @/in/SHA256SUMS", after: ["in/SHA256SUMS: "]),
        ContentRow(
            "a deleted file that is not in the list", before: ["in/": ""], with: ["write": "sums"], kind: .deleted,
            outcome: .skipped, message: "not in @/in/SHA256SUMS", after: ["in/"]),
        ContentRow(
            "a renamed file", before: ["in/b": "abc", "in/SHA256SUMS": "\(abc)  a\n"], file: "b",
            with: ["write": "sums"], kind: .moved, from: "a", after: ["in/SHA256SUMS: 68 bytes", "in/b: abc"]),
        ContentRow(
            "a file moved from another folder",
            before: ["in/b": "abc", "in/old/SHA256SUMS": "\(abc)  a\n# kept\n"], file: "b", with: ["write": "sums"],
            kind: .moved, from: "old/a",
            after: ["in/SHA256SUMS: 68 bytes", "in/b: abc", "in/old/SHA256SUMS: # kept\n"]),
        ContentRow(
            "a sum that fits", before: ["in/a.txt": "abc", "in/SHA256SUMS": "\(abc)  a.txt\n"],
            with: ["verify": "sums"], message: "sha256 \(abc), as expected in '@/in/SHA256SUMS'",
            after: ["in/SHA256SUMS: 72 bytes", "in/a.txt: abc"]),
        ContentRow(
            "a sum that doesn't fit", before: ["in/a.txt": "abc", "in/SHA256SUMS": "\(empty) *a.txt\n"],
            with: ["verify": "sums"], outcome: .failed,
            message: "the sha256 differs: it is \(abc), expected in '@/in/SHA256SUMS': \(empty)",
            after: ["in/SHA256SUMS: 72 bytes", "in/a.txt: abc"]),
        ContentRow(
            "a sum in capitals, by BSD",
            before: ["in/a.txt": "abc", "in/SHA256SUMS": "SHA256 (a.txt) = \(abc.uppercased())\n"],
            with: ["verify": "sums"], message: "as expected", after: ["in/SHA256SUMS: 82 bytes", "in/a.txt: abc"]),
        ContentRow(
            "no list yet", before: ["in/a.txt": "abc"], with: ["verify": "sums"], outcome: .retry,
            message: "there is no '@/in/SHA256SUMS' to compare with", after: ["in/a.txt: abc"]),
        ContentRow(
            "a list without the file", before: ["in/a.txt": "abc", "in/SHA256SUMS": "\(abc)  b\n"],
            with: ["verify": "sums"], outcome: .retry, message: "has no sha256 of 'a.txt'",
            after: ["in/SHA256SUMS: 68 bytes", "in/a.txt: abc"]),
        ContentRow(
            "both at once", before: ["in/a.txt": "abc"], with: ["verify": "sums", "write": "sums"], outcome: .failed,
            message: "can't be combined", after: ["in/a.txt: abc"]),
    ]

    @Test(arguments: rows)
    func `a checksum action leaves these files`(row: ContentRow) { row.play(ChecksumHandler()) }

    static let tools = [
        ("sha256", "sha256sum"), ("sha512", "sha512sum"), ("sha1", "sha1sum"), ("md5", "md5sum"), ("b2", "b2sum"),
        ("xxh128", "xxh128sum"),
    ]

    @Test(arguments: tools)
    func `the system tools accept the lists`(algorithm: String, tool: String) {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ChecksumHandler())
            var names = ["plain", "with  blanks", "*star", "-dash", "é"]
            // xxhsum does not support escapes.
            if algorithm != "xxh128" { names += ["back\\slash", "new\nline", "carriage\rreturn", "\\n"] }
            for name in names {
                TestFile.write(rule.path(name), "content of \(name)")
                #expect(rule.run(name, ["algorithm": .string(algorithm), "write": "sums"]).result == .succeeded)
                #expect(rule.run(name, ["algorithm": .string(algorithm), "verify": "sums"]).result == .succeeded)
            }
            let list = algorithm.uppercased() + "SUMS"
            let all = call(PathBytes("/usr/bin/\(tool)"), ["--check", "--strict", list], in: tree.path("in"))
            #expect(all.status == 0, "\(all.output)\(all.error)")
            #expect(all.output.split(separator: "\n").count { $0.hasSuffix("OK") } == names.count)
        }
    }

    @Test func `a list is sorted, keeps comments, and is written once for a batch`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ChecksumHandler())
            for name in ["c", "a", "b"] { TestFile.write(rule.path(name), "abc") }
            TestFile.write(rule.path("SHA256SUMS"), "# by hand\n\(Self.empty)  z\n")
            let outcomes = rule.run(["c", "a", "b", "missing"], ["write": "sums"])
            #expect(outcomes.map(\.result) == [.succeeded, .succeeded, .succeeded, .skipped])
            #expect(outcomes[0].outputs == [rule.path("SHA256SUMS")])
            #expect(outcomes[0].values == ["sha256": .string(Self.abc)])
            let expected =
                "# by hand\n" + ["a", "b", "c"].map { "\(Self.abc)  \($0)\n" }.joined() + "\(Self.empty)  z\n"
            #expect(TestFile.read(rule.path("SHA256SUMS")) == Array(expected.utf8))
            // An entry that is already correct is not rewritten, and the list is not an output.
            let again = rule.run("a", ["write": "sums"])
            #expect(again.outputs == [])
            #expect(again.message.hasSuffix(", unchanged"))
        }
    }

    @Test func `many concurrent jobs write one list`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, ChecksumHandler())
            let count = 200
            for number in 0..<count { TestFile.write(rule.path("f\(number)"), "abc") }
            let failures = Locked<[String]>([])
            onThreads(8) { thread in
                for number in stride(from: thread, to: count, by: 8) {
                    let outcome = rule.run("f\(number)", ["write": "sums"])
                    if outcome.result != .succeeded { failures.change { $0.append(outcome.message) } }
                }
            }
            #expect(failures.value == [])
            let names = (0..<count).map { "f\($0)" }.sorted()
            let expected = names.map { "\(Self.abc)  \($0)\n" }.joined()
            #expect(TestFile.read(rule.path("SHA256SUMS")) == Array(expected.utf8))
            #expect(TestFile.names(in: tree.path("in")).count == count + 1)
        }
    }

    @Test func `a lock of another process is waited for, but no longer than the timeout`() {
        withTempTree { tree in
            var rule = ContentRule(tree.root, ChecksumHandler())
            TestFile.write(rule.path("a"), "abc")
            let directory = tree.path("in").withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
            defer { close(directory) }
            #expect(flock(directory, LOCK_EX) == 0)
            rule.timeout = .milliseconds(50)
            let late = rule.run("a", ["write": "sums"])
            #expect(late.code == "timed-out")
            rule.timeout = .seconds(60)
            rule.stop.raise()
            #expect(rule.run("a", ["write": "sums"]).isInterrupted)
        }
    }
}
