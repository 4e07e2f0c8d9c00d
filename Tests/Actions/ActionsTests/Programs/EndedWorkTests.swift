import ActionAPI
import FileActions
import Glibc
import JSON
import Rules
import System
import Testing
import TestKit

/// Interrupted work on large files: it stops soon and leaves nothing behind.
struct EndedWorkTests {
    static let rows: [(handler: String, with: JSONValue)] = [
        ("copy", ["to": "out/a"]), ("copy", ["to": "out/a", "verify": true]), ("archive", ["to": "out/a.tar"]),
        ("archive", ["to": "out/a.zip"]), ("archive", ["to": "out/a.tar.zst"]),
        ("checksum", ["write": "sums"]), ("extract", ["to": "out/"]),
    ]

    private static func rule(_ root: PathBytes, _ name: String) -> ContentRule {
        let trash = Trash(home: nil)
        let handler: any Handler =
            switch name {
            case "copy": TransferHandler.copy(trash: trash)
            case "archive": ArchiveHandler(trash: trash)
            case "extract": ExtractHandler(trash: trash)
            default: ChecksumHandler()
            }
        TestFile.makeDirectory(root.appending("out"))
        return ContentRule(root, handler)
    }

    /// Creates a large sparse file, or an archive that contains 64 MiB.
    private static func make(_ path: PathBytes, for handler: String) {
        TestFile.write(path, "")
        let size = ["extract": 64 << 20, "archive": large][handler] ?? 1 << 40
        #expect(truncate(path.description, size) == 0)
        guard handler == "extract" else { return }
        let made = call("/usr/bin/tar", ["-cf", "packed", "a"], in: path.parent)
        #expect(made.status == 0, "\(made.error)")
        #expect(rename(path.parent.appending("packed").description, path.description) == 0)
    }

    @Test(arguments: rows.indices)
    func `a stop interrupts the work, and nothing is left behind`(_ row: Int) throws {
        let (handler, with) = Self.rows[row]
        withTempTree { tree in
            let rule = Self.rule(tree.root, handler)
            Self.make(rule.path("a"), for: handler)
            rule.stop.raise()
            let outcome = rule.run("a", with)
            #expect(outcome.isInterrupted, "\(outcome.message)")
            #expect(TestFile.names(in: tree.path("in")) == [Array("a".utf8)])
            #expect(TestFile.names(in: tree.path("out")) == [])
        }
    }

    @Test(arguments: rows.indices.filter { rows[$0].handler == "archive" || rows[$0].handler == "checksum" })
    func `the timeout interrupts the work, and nothing is left behind`(_ row: Int) throws {
        let (handler, with) = Self.rows[row]
        withTempTree { tree in
            var rule = Self.rule(tree.root, handler)
            Self.make(rule.path("a"), for: handler)
            rule.timeout = .milliseconds(100)
            let before = Self.written
            let outcome = rule.run("a", with)
            #expect(outcome.code == "timed-out", "\(outcome.message)")
            // An interrupted entry is not written any further, although it was meant to be longer.
            #expect(Self.written - before < Self.large)
            #expect(TestFile.names(in: tree.path("in")) == [Array("a".utf8)])
            #expect(TestFile.names(in: tree.path("out")) == [])
        }
    }

    /// A size that exceeds what is written before the timeout, and fits on the disk.
    private static let large = 6 << 30

    /// The number of bytes that this thread has written.
    private static var written: UInt64 {
        let lines = (TestFile.text("/proc/thread-self/io") ?? "").split(separator: "\n")
        return lines.first { $0.hasPrefix("wchar: ") }.flatMap { UInt64($0.dropFirst("wchar: ".count)) } ?? 0
    }

    @Test(arguments: ["deduplicate", "rename"])
    func `the timeout interrupts a comparison of contents, and nothing is left behind`(_ conflict: String) throws {
        try withTempTree { tree in
            var rule = Self.rule(tree.root, "copy")
            for name in ["in/a", "out/a"] { Self.make(tree.path(name), for: "copy") }
            let source = try metadata(tree.path("in/a"))
            var times = [timespec](
                repeating: timespec(tv_sec: Int(source.modified.seconds), tv_nsec: Int(source.modified.nanoseconds)),
                count: 2)
            _ = tree.path("out/a").withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            rule.timeout = .milliseconds(300)
            // A second attempt searches for leftovers of the first one.
            rule.attempt = conflict == "rename" ? 2 : 1
            let outcome = rule.run("a", ["to": "out/a", "on_conflict": .string(conflict)])
            #expect(outcome.code == "timed-out", "\(outcome.message)")
            #expect(TestFile.names(in: tree.path("out")) == [Array("a".utf8)])
        }
    }
}
