import FileEvents
import GRDB
import Glibc
import Journaling
import PluginProtocol
import Rules
import TestKit
import Testing

/// The tables, which people query and later versions find.
struct SchemaTests {
    private static let golden = PathBytes(#filePath).parent.appending("Golden")
    private let bench = DiskBench()

    /// Compares the tables of the bench's file with those of a golden file.
    private func compare(with name: String) throws {
        // The statements that sqlite3(1) prints for `.schema`.
        let query =
            "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        let text = try bench.rows(query).joined(separator: "\n") + "\n"
        let file = Self.golden.appending(name)
        if getenv("RECORD") != nil { TestFile.write(file, text) }
        #expect(TestFile.read(file).map { String(decoding: $0, as: UTF8.self) } == text)
        #expect(try bench.rows("PRAGMA application_id") == ["\(0x416C_6774)"])
        #expect(try bench.rows("PRAGMA user_version") == ["1"])
        #expect(try bench.rows("PRAGMA journal_mode") == ["wal"])
        #expect(try bench.rows("PRAGMA auto_vacuum") == ["2"])
    }

    @Test func `the tables of a new journal are those that are written down`() throws {
        _ = try bench.open()
        try compare(with: "schema.sql")
    }

    @Test func `the tables of a new store are those of the golden file`() throws {
        let store = try DiskStore(at: bench.path, now: bench.wall)
        try compare(with: "store.sql")
        #expect(store.close(at: bench.wall) == nil)
    }

    @Test func `a journal that is written down is taken in, and nothing of it is lost`() throws {
        let sql = try #require(TestFile.read(Self.golden.appending("journal.sql")))
        try bench.look { try $0.execute(sql: String(decoding: sql, as: UTF8.self)) }
        let starts = try bench.open().begin(
            [RuleRecord(name: "thumbs", selection: "in/**"), RuleRecord(name: "sort", selection: "other")],
            at: bench.wall)
        #expect(
            starts == [
                "thumbs": .resumed, "sort": .reselected(since: Timestamp(seconds: 1_700_000_100, nanoseconds: 5)),
            ])
        #expect(try bench.journal.interrupted == 1)
        let known = try #require(try bench.known("/in/b", rule: "thumbs"))
        #expect(known.size == 9 && known.digest == [0xab] && known.delivered == 4 && known.extended?.count == 1)
        let jobs = try bench.lease(9, rule: "thumbs").sorted { $0.id.description < $1.id.description }
        #expect(jobs.map(\.id.description) == ["01HF7YAT00AAAAAAAAAAAAAAAA", "01HF7YAT00BBBBBBBBBBBBBBBB"])
        #expect(jobs.map(\.attempt) == [3, 2])
        #expect(jobs.map(\.isInterrupted) == [true, false])
        #expect(jobs.last?.previous?.message == "busy" && jobs.last?.steps.count == 1)
        #expect(try bench.journal.mounts.map(\.point) == ["/in"])
        #expect(try bench.commit() == nil)
        #expect(
            try bench.rows("SELECT state FROM jobs WHERE state IN ('dead', 'succeeded') ORDER BY 1") == [
                "dead", "succeeded",
            ])
        bench.kill()
        let fresh = DiskBench()
        _ = try fresh.open()
        let query = "SELECT name, sql FROM sqlite_schema ORDER BY name"
        #expect(try bench.rows(query) == fresh.rows(query))
        #expect(try bench.rows("PRAGMA integrity_check") == ["ok"])
    }
}
