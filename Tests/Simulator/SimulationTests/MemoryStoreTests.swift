import FileEvents
import Reconciling
import System
import Testing
import TestKit

/// Ledger rows in memory.
struct MemoryStoreTests {
    private func row(_ step: Int) -> LedgerRow {
        var snapshot = Snapshot.unseen
        // There are few files, so that several paths are names of one file, and some files reuse an inode.
        snapshot.identity = FileIdentity(
            deviceMajor: 0, deviceMinor: 0, inode: UInt64(step % 50), birth: Int64(step % 3))
        snapshot.size = UInt64(step)
        return LedgerRow(snapshot)
    }

    @Test(arguments: 0..<20) func `rows after many changes agree with a plain table`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rule = RuleID(1)
        let store = MemoryStore()
        var table: [PathBytes: LedgerRow] = [:]
        for step in 0..<3_000 {
            // Some names are prefixes of others, at any depth.
            let names = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                ["a", "ab", "b", "abc"].randomElement(using: &random) ?? "a"
            }
            let path = PathBytes("/" + names.joined(separator: "/"))
            #expect(store.row(of: rule, at: path) == table[path])
            switch Int.random(in: 0..<5, using: &random) {
            case 0..<2:
                store.set([rule: [path: row(step)]])
                table[path] = row(step)
            case 2..<4:
                store.set([rule: [path: LedgerRow()]])
                table[path] = nil
            default:
                let below = table.keys.filter { $0 != path && $0.isInside(path) }.sorted()
                #expect(store.rows(of: rule, below: path, after: nil).map(\.0) == below)
            }
            guard let identity = row(step).handled?.identity else { continue }
            for sought in [identity, identity.withoutBirth] {
                let paths = table.filter { $0.value.handled.map { sought.includes($0.identity) } ?? false }.keys
                #expect(store.paths(of: rule, handling: sought, limit: .max).sorted() == paths.sorted())
            }
        }
    }

    @Test func `rows with unusual values are returned as they were stored`() {
        let rule = RuleID(1)
        let store = MemoryStore()
        var rows: [PathBytes: LedgerRow] = ["/uncertain": LedgerRow(nil, .uncertain)]
        func add(_ name: String, _ trust: LedgerRow.Trust = .certain, _ change: (inout Snapshot) -> Void) {
            var snapshot = Snapshot.unseen
            snapshot.identity.inode = UInt64(rows.count)
            change(&snapshot)
            rows[PathBytes("/" + name)] = LedgerRow(snapshot, trust, isSuppressed: rows.count % 2 == 0)
        }
        add("plain") { $0.type = .file }
        add("failed", .failed) { ($0.size, $0.links, $0.mount, $0.uid) = (.max, .max, .max, .max) }
        add("early") { $0.modified = Timestamp(seconds: -5, nanoseconds: 999_999_999) }
        add("far") { $0.changed = Timestamp(seconds: .max, nanoseconds: 1) }
        add("born") {
            $0.identity.birth = 1_764_000_000_123_456_789
            $0.born = Timestamp(seconds: 1_764_000_000, nanoseconds: 123_456_789)
        }
        add("born otherwise") { $0.born = Timestamp(seconds: 7, nanoseconds: 0) }
        add("without attributes") { $0.extended = [] }
        add("attributes") { $0.extended = [ExtendedAttribute(name: "user.a", value: [1])] }
        add("digest") { ($0.digest, $0.delivered) = ([1, 2], 3) }
        // Often enough that unused bytes are removed.
        for _ in 0..<1_000 { store.set([rule: rows]) }
        store.set([rule: ["/plain": LedgerRow()]])
        rows["/plain"] = nil
        for (path, row) in rows { #expect(store.row(of: rule, at: path) == row) }
        #expect(store.rows(of: rule, below: "/", after: nil).map(\.0) == rows.keys.sorted())
    }
}
