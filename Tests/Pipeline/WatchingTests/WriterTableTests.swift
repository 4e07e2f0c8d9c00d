import FileEvents
import System
import Testing

@testable import Watching

/// The last process that changed a name.
struct WriterTableTests {
    private static func directory(_ number: UInt8) -> DirectoryKey {
        [1, 2, 3, 4, 5, 6, 7, 8, number].withUnsafeBytes { DirectoryKey($0) }
    }

    private static func time(_ seconds: Int64) -> Timestamp { Timestamp(seconds: seconds, nanoseconds: 0) }

    private static func process(_ pid: Int32, _ name: PathBytes? = "cp") -> WritingProcess {
        WritingProcess(pid: pid, name: name)
    }

    @Test func `the last process counts, separately for each operation, name and directory`() {
        var table = WriterTable()
        let name = Array("a".utf8)
        table.record(.content, to: name, in: Self.directory(1), by: Self.process(1), at: Self.time(1))
        table.record([.content, .attributes], to: name, in: Self.directory(1), by: Self.process(2), at: Self.time(2))
        table.record(.removal, to: name, in: Self.directory(1), by: Self.process(3), at: Self.time(3))
        table.record(.content, to: name, in: Self.directory(2), by: Self.process(4), at: Self.time(4))
        #expect(table.change(.content, to: name, in: Self.directory(1))?.process?.pid == 2)
        #expect(table.change(.attributes, to: name, in: Self.directory(1))?.process?.pid == 2)
        #expect(table.change(.removal, to: name, in: Self.directory(1))?.process?.pid == 3)
        #expect(table.change(.content, to: name, in: Self.directory(2))?.process?.pid == 4)
        #expect(table.change(.removal, to: name, in: Self.directory(2)) == nil)
        #expect(table.change(.content, to: Array("b".utf8), in: Self.directory(1)) == nil)
        #expect(table.lastDeed(in: [Self.directory(1)])?.process?.pid == 3)
        #expect(table.lastDeed(in: [Self.directory(1), Self.directory(2)])?.process?.pid == 4)
    }

    @Test func `an exited process is identified by its state at an earlier change of the name`() {
        var table = WriterTable()
        let name = Array("a".utf8)
        table.record(.content, to: name, in: Self.directory(1), by: Self.process(1), at: Self.time(1))
        table.record(.content, to: name, in: Self.directory(1), by: Self.process(1, nil), at: Self.time(2))
        #expect(table.change(.content, to: name, in: Self.directory(1))?.process == Self.process(1))
        table.record(.content, to: name, in: Self.directory(1), by: Self.process(2, nil), at: Self.time(3))
        #expect(table.change(.content, to: name, in: Self.directory(1))?.process == Self.process(2, nil))
        table.record(.content, to: name, in: Self.directory(1), by: nil, at: Self.time(4))
        #expect(table.change(.content, to: name, in: Self.directory(1))?.time == Self.time(4))
        #expect(table.change(.content, to: name, in: Self.directory(1))?.process == nil)
    }

    @Test func `the oldest entries are dropped first, and a new change renews an entry`() {
        var table = WriterTable(limit: 3)
        func record(_ name: String) {
            table.record(.content, to: Array(name.utf8), in: Self.directory(1), by: Self.process(1), at: Self.time(1))
        }
        func names() -> String {
            ["a", "b", "c", "d", "e", "f"].filter {
                table.change(.content, to: Array($0.utf8), in: Self.directory(1)) != nil
            }.joined()
        }
        for name in ["a", "b", "c", "a"] { record(name) }
        // The entry of the first `a` was the oldest.
        #expect(names() == "abc")
        record("d")
        #expect(names() == "acd")
        record("e")
        #expect(names() == "ade")
        for name in ["f", "f", "f", "f"] { record(name) }
        #expect(names() == "f")
        #expect(table.count == 1)
    }
}
