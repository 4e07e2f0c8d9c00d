import Glibc
import Storage
import System
import Testing
import TestKit

/// The tables, which users query and later versions read.
struct SchemaTests {
    private let bench = StoreBench()

    @Test func `the tables of a new journal match the golden file`() throws {
        let store = try bench.open()
        // The statements that `.schema` prints in sqlite3(1).
        let query =
            "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        let text = try bench.rows(query).joined(separator: "\n") + "\n"
        let file = PathBytes(#filePath).parent.appending("Golden/schema.sql")
        if getenv("RECORD") != nil { TestFile.write(file, text) }
        #expect(TestFile.text(file) == text)
        #expect(try bench.rows("PRAGMA application_id") == ["\(0x416C_6774)"])
        #expect(try bench.rows("PRAGMA user_version") == ["1"])
        #expect(try bench.rows("PRAGMA journal_mode") == ["wal"])
        #expect(try bench.rows("PRAGMA auto_vacuum") == ["2"])
        #expect(store.close(at: bench.wall) == nil)
    }
}
