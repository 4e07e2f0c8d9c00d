import FileEvents
import GRDB
import Journaling
import Reconciling
import Rules
import Settling
import TestKit
import Testing

/// The ledger in the file, under what has changed since the last commit.
struct DiskLedgerTests {
    let bench = DiskBench()

    private func known(inside folder: PathBytes) throws -> [PathBytes] {
        var paths: [PathBytes] = []
        try bench.journal.visit(view: "r", inside: folder) { path, _ in paths.append(path) }
        #expect(Set(paths).count == paths.count)
        return paths.sorted()
    }

    /// Against a plain table, with commits and kills between the calls.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func `the ledger is what a plain table would be`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var table: [PathBytes: Snapshot] = [:]
        var kept = table
        try bench.set("/", .sample())
        table["/"] = .sample()
        for step in 0..<600 {
            let names = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                ["a", "a.b", "b", "ab", "\u{1}"].randomElement(using: &random) ?? "a"
            }
            let path = PathBytes("/" + names.joined(separator: "/"))
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                let snapshot = Snapshot.sample(file: UInt64(step % 20), size: UInt64(step))
                try bench.set(path, snapshot)
                table[path] = snapshot
            case 5..<7:
                try bench.set(path, nil)
                table[path] = nil
            case 7:
                #expect(try bench.commit() == nil)
                kept = table
            case 8 where step % 5 == 0:
                bench.kill()
                table = kept
            case 9: #expect(try known(inside: "/") == table.keys.sorted())
            default: #expect(try known(inside: path) == table.keys.filter { $0.isInside(path) }.sorted())
            }
            #expect(try bench.known(path) == table[path])
            let identity = Snapshot.sample(file: UInt64(step % 20)).identity
            for sought in [identity, identity.withoutBirth] {
                #expect(
                    try bench.journal.paths(view: "r", identity: sought)
                        == table.filter { sought.includes($0.value.identity) }.keys.sorted())
            }
        }
    }

    @Test func `a look at the ledger keeps the log from being emptied until the next commit alone`() throws {
        try bench.set("/in/a", .sample())
        #expect(try bench.commit() == nil)
        let other = try DatabaseQueue(path: "\(bench.path)")
        defer { try? other.close() }
        func isEmptied() throws -> Bool {
            try other.writeWithoutTransaction { database in
                try database.execute(sql: "REPLACE INTO facts (name, value) VALUES ('other', random())")
                let row = try Row.fetchOne(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
                return try #require(row)[0] == 0
            }
        }
        #expect(try isEmptied())
        #expect(try bench.known("/in/a") == .sample())
        #expect(try !isEmptied())
        #expect(try bench.commit() == nil)
        #expect(try isEmptied())
        #expect(try bench.known("/in/a") == .sample())
    }

    @Test func `a path is known from when it is set until it is forgotten, before and after a commit`() throws {
        func knows(_ path: PathBytes) throws -> Bool { try bench.journal.knows(view: "r", path: path) }
        try bench.set("/in/a", .sample())
        #expect(try knows("/in/a") && !knows("/in/b") && !knows("/in"))
        #expect(try bench.commit() == nil)
        #expect(try knows("/in/a") && !knows("/in/b") && !knows("/in"))
        #expect(try !bench.journal.knows(view: "s", path: "/in/a"))
        try bench.set("/in/a", nil)
        #expect(try !knows("/in/a"))
        #expect(try bench.commit() == nil)
        #expect(try !knows("/in/a"))
    }

    @Test func `a folder with more files than are read at once is visited whole, while it changes`() throws {
        for number in 0..<1_000 { try bench.set(PathBytes("/in/\(number)"), .sample(file: UInt64(number))) }
        #expect(try bench.commit() == nil)
        for number in stride(from: 0, to: 1_000, by: 3) { try bench.set(PathBytes("/in/\(number)"), nil) }
        try bench.set("/in/new/deep", .sample())
        try bench.set("/inside", .sample())
        #expect(try known(inside: "/in").count == 1_000 - 334 + 1)
    }

    @Test func `devices that have other numbers after a restart are known by their mount points`() throws {
        let folder = bench.root.appending("mounted")
        TestFile.makeFolder(folder)
        guard case .present(let facts) = DiskProbe.look(at: folder) else { return }
        let identity = facts.identity
        var former = identity
        former.deviceMinor &+= 7
        func snapshot(_ file: FileIdentity, inode: UInt64) -> Snapshot {
            var snapshot = Snapshot.sample(file: inode)
            snapshot.identity.deviceMajor = file.deviceMajor
            snapshot.identity.deviceMinor = file.deviceMinor
            return snapshot
        }
        let path = folder.appending("a")
        try bench.set(path, snapshot(former, inode: 5))
        try bench.set("/elsewhere", .sample(file: 6))
        let job = Job(id: JobID("1"), rule: "r", event: .sample(.created, path, snapshot(former, inode: 5)))
        try bench.journal.accept([job], [], now: bench.now)
        try bench.journal.noteMounts([MountRecord(point: folder, identity: former)])
        #expect(try bench.commit() == nil)

        let present = snapshot(identity, inode: 5)
        for isKept in [false, true, true] {
            bench.kill()
            #expect(try bench.journal.mounts == [MountRecord(point: folder, identity: identity)])
            #expect(try bench.known(path) == present)
            #expect(try bench.journal.paths(view: "r", identity: present.identity) == [path])
            #expect(try bench.known("/elsewhere") == .sample(file: 6))
            if isKept { #expect(try bench.commit() == nil) }
        }
        #expect(try bench.known(path) == present)
        #expect(try bench.lease().first?.event.snapshot == present)

        // Another folder is there by now: nothing is known of it.
        var other = identity
        other.birth += 1
        other.deviceMinor &+= 1
        try bench.journal.noteMounts([MountRecord(point: folder, identity: other)])
        #expect(try bench.commit() == nil)
        bench.kill()
        #expect(try bench.journal.mounts == [MountRecord(point: folder, identity: other)])
    }

    @Test func `it stops after a look, whatever has to be written`() throws {
        try bench.set("/in/a", .sample())
        #expect(try bench.commit() == nil)
        // The look leaves a read transaction open, in which nothing may be written.
        #expect(try bench.known("/in/a") != nil)
        #expect(try bench.journal.close(at: bench.wall) == nil)
    }
}
