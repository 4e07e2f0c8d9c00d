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
}
