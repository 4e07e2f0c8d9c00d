import FileEvents
import Foundation
import Glibc
import Globbing
import GRDB
import JournalFixtures
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// Reading the file of a journal from another connection.
struct JournalReaderTests {
    /// Ten jobs, 0 to 9, one second apart.
    private static let jobs: [SampleJob] = [
        SampleJob(0, .succeeded, "/in/a.txt"), SampleJob(1, .failed, "/in/a.pdf"),
        SampleJob(2, .failed, "/in/x/b.PDF", rule: "letters"), SampleJob(3, .pending, "/in/x/y/c.pdf"),
        SampleJob(4, .running, "/in-other/d.pdf"), SampleJob(5, .skipped, "/in/.hidden.pdf"),
        SampleJob(6, .failed, PathBytes(Array("/in/caf".utf8) + [0xE9])), SampleJob(7, .succeeded, "/in/*"),
        SampleJob(8, .succeeded, "/out/a.pdf", rule: "letters"), SampleJob(9, .pending, "/in"),
    ]

    private func with<Answer>(_ jobs: [SampleJob] = Self.jobs, _ body: (JournalReader) throws -> Answer) throws
        -> Answer
    {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            try file.add(jobs)
            return try body(JournalReader(file.path))
        }
    }

    private func glob(_ text: String) throws -> JournalQuery.Paths {
        .matching(try Glob(text, options: Glob.Options(matchesHidden: true)))
    }

    private static func time(_ second: Int) -> Timestamp {
        Timestamp(seconds: Int64(SampleJob.start + second), nanoseconds: 0)
    }

    @Test func `jobs are listed by state, rule, path and time, the newest first`() throws {
        let cases: [(JournalQuery, [Int])] = [
            (JournalQuery(), [8, 7, 6, 5, 2, 1, 0, 9, 4, 3]), (JournalQuery(states: [.failed]), [6, 2, 1]),
            (JournalQuery(states: [.failed, .skipped]), [6, 5, 2, 1]), (JournalQuery(rule: "letters"), [8, 2]),
            (JournalQuery(states: [.failed], rule: "letters"), [2]), (JournalQuery(rule: "none"), []),
            (JournalQuery(paths: try glob("/in/**/*.pdf")), [5, 2, 1, 3]),
            (JournalQuery(paths: try glob("/in/*.pdf")), [5, 1]),
            (JournalQuery(paths: try glob("/**/*.pdf")), [8, 5, 2, 1, 4, 3]),
            (JournalQuery(paths: .inside("/in")), [7, 6, 5, 2, 1, 0, 9, 3]),
            (JournalQuery(paths: .inside("/in/x")), [2, 3]), (JournalQuery(paths: .inside("/in/*")), [7]),
            (JournalQuery(paths: .inside("/")), [8, 7, 6, 5, 2, 1, 0, 9, 4, 3]),
            (JournalQuery(paths: .inside(Self.jobs[6].path)), [6]),
            // An unfinished job counts by the time of its creation: 3 and 4 were too early.
            (JournalQuery(since: Self.time(35)), [8, 7, 6, 5]),
            (JournalQuery(since: Self.time(5)), [8, 7, 6, 5, 2, 1, 0, 9]),
            (JournalQuery(limit: 0), []),
        ]
        try with { (reader) throws in
            for (query, expected) in cases {
                let found = try reader.jobs(query)
                #expect(found.jobs.map(\.id.description) == expected.map { Self.jobs[$0].id }, "\(query)")
            }
        }
    }

    @Test func `pages follow each other in the order of the times that are shown`() throws {
        try with { (reader) throws in
            for size in 1...4 {
                var query = JournalQuery(limit: size)
                var listed: [JobEntry] = []
                while true {
                    let (jobs, hasMore) = try reader.jobs(query)
                    listed += jobs
                    guard hasMore else { break }
                    query.before = try #require((jobs.last?.position.description).flatMap { JobPosition($0) })
                }
                #expect(listed.map(\.id.description) == [8, 7, 6, 5, 2, 1, 0, 9, 4, 3].map { Self.jobs[$0].id })
                #expect(zip(listed, listed.dropFirst()).allSatisfy { $0.time >= $1.time })
            }
        }
        #expect(["", "1", "1-", "x-01HF7YAT00AAAAAAAAAAAAAAAA", "1-abc"].allSatisfy { JobPosition($0) == nil })
    }

    @Test func `a limit reports whether there are more jobs`() throws {
        try with { (reader) throws in
            for (limit, expected) in [(1, true), (2, true), (3, false), (4, false)] {
                let found = try reader.jobs(JournalQuery(states: [.failed], limit: limit))
                #expect(found.jobs.count == min(limit, 3))
                #expect(found.hasMore == expected)
            }
        }
    }

    @Test func `a job has its metadata, and its attempts in order`() throws {
        var sample = SampleJob(6, .failed, PathBytes(Array("/in/caf".utf8) + [0xE9]))
        sample.attempts = [
            SampleAttempt("retry", "busy", code: "status-75", status: 75, log: "one\n", request: "{}"),
            SampleAttempt("failed", "no", signal: 9),
        ]
        try with([sample]) { (reader) throws in
            let details = try #require(try reader.details(of: JobID(sample.id)))
            #expect(details.job.path == sample.path)
            #expect(details.job.created == Self.time(6))
            #expect(details.job.ended == Self.time(36))
            #expect(details.event?.path == sample.path)
            #expect(details.event?.origin == .live)
            #expect(details.attempts.map(\.number) == [1, 2])
            #expect(details.attempts.map(\.status) == [75, nil])
            #expect(details.attempts.map(\.signal) == [nil, 9])
            #expect(details.attempts.map(\.log) == ["one\n", nil])
            #expect(details.attempts[0].duration == .milliseconds(1250))
            #expect(details.attempts[0].started == Self.time(8))
            #expect(try reader.details(of: JobID("01JD8Z3T1WQ2V7N0C5M4K9R6XB")) == nil)
        }
    }

    @Test func `an ID is found by its prefix`() throws {
        try with { (reader) throws in
            let id = Self.jobs[3].id
            #expect(try reader.jobs(beginningWith: id, limit: 5).map(\.id.description) == [id])
            #expect(try reader.jobs(beginningWith: String(id.prefix(4)), limit: 5).count == 5)
            #expect(try reader.jobs(beginningWith: String(id.prefix(10)), limit: 5).map(\.id.description) == [id])
            #expect(try reader.jobs(beginningWith: "01JD8Z", limit: 5).isEmpty)
        }
    }

    @Test func `jobs are counted by state`() throws {
        try with { (reader) throws in
            #expect(try reader.counts() == [.succeeded: 3, .failed: 3, .pending: 2, .running: 1, .skipped: 1])
            let ids = [Self.jobs[3].id, "none", Self.jobs[1].id].map { JobID($0) }
            #expect(try reader.states(of: ids) == [ids[0]: .pending, ids[2]: .failed])
        }
    }

    // MARK: Unusable files

    @Test func `a file that is not a journal is reported with its path`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("text"), String(repeating: "no database", count: 1000))
            TestFile.write(tree.path("empty"), "")
            TestFile.makeDirectory(tree.path("folder"))
            _ = try JournalFile(tree.path("newer"), version: 99)
            _ = try JournalFile(tree.path("unfinished"), version: 0)
            let other = try DatabaseQueue(path: tree.path("other").description)
            try other.write { try $0.execute(sql: "CREATE TABLE jobs (id TEXT); PRAGMA user_version = 1") }
            let expected = [
                ("missing", "there is no journal at", "run `alight run`, or name it with --journal"),
                ("text/below", "there is no journal at", "run `alight run`, or name it with --journal"),
                ("text", "is not an SQLite file, so it is not a journal", "name the journal's file"),
                ("empty", "is not an SQLite file, so it is not a journal", "name the journal's file"),
                ("unfinished", "is a file in which no journal has been created yet", "name the journal's file"),
                ("other", "is an SQLite file of another program, not a journal", "name the journal's file"),
                ("folder", "is a directory", "name the journal's file"),
                ("newer", "has version 99, of a newer release", "run the newer release"),
            ]
            for (name, description, help) in expected {
                let path = tree.path(name)
                let error = #expect(throws: StorageError.self, "\(name)") { _ = try JournalReader(path) }
                #expect(error?.description.contains(description) == true, "\(error?.description ?? "")")
                #expect(error?.description.contains("'\(path)'") == true, "\(error?.description ?? "")")
                #expect(error?.help.hasPrefix(help) == true, "\(error?.help ?? "")")
                #expect(error?.mayPass == false)
                guard let error, !name.hasPrefix("text/"), !["missing", "empty", "unfinished"].contains(name) else {
                    continue
                }
                // A run reports the same error.
                let journalError = #expect(throws: JournalError.self) { _ = try DiskStore(at: path, now: .early) }
                #expect(journalError?.description == error.description)
            }
        }
    }

    @Test func `a damaged journal is reported as damaged`() throws {
        try withTempTree { tree in
            let path = tree.path("journal.db")
            let file = try JournalFile(path)
            try file.add((0..<2000).map { SampleJob($0, .failed, PathBytes("/in/\($0)")) })
            try file.close()
            var bytes = try #require(TestFile.read(path))
            // All pages except the first one, which has the names of the tables.
            for index in 4096..<bytes.count { bytes[index] = 0x5A }
            TestFile.write(path, bytes)
            let error = #expect(throws: StorageError.self) {
                _ = try JournalReader(path).jobs(JournalQuery())
            }
            #expect(error?.description.hasPrefix("the journal '\(path)' is damaged: ") == true, "\(error as Any)")
        }
    }

    @Test func `a journal is read while its instance writes, without leaving a lock behind`() throws {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            try file.add(Self.jobs)
            try file.execute("BEGIN IMMEDIATE; DELETE FROM jobs;")
            let reader = try JournalReader(file.path)
            #expect(try reader.jobs(JournalQuery()).jobs.count == 10)
            try file.execute("COMMIT")
            #expect(try reader.jobs(JournalQuery()).jobs.isEmpty)
        }
    }

    @Test func `a journal is read if only its main file exists`() throws {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            try file.add(Self.jobs)
            try file.close()
            #expect(TestFile.names(in: tree.root) == [Array("journal.db".utf8)])
            #expect(try JournalReader(file.path).jobs(JournalQuery()).jobs.count == 10)
        }
    }
}
