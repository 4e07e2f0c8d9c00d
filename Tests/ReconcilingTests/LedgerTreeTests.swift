import FileEvents
import Reconciling
import TestKit
import Testing

struct LedgerTreeTests {
    private func snapshot(_ step: Int) -> Snapshot {
        let time = Timestamp(seconds: 0, nanoseconds: 0)
        // Few files, so that several paths are names of one, and some that had an inode one after the other.
        let identity = FileIdentity(deviceMajor: 0, deviceMinor: 0, inode: UInt64(step % 50), birth: Int64(step % 3))
        return Snapshot(
            identity: identity, type: .file, size: UInt64(step), modified: time, changed: time, born: nil, mode: 0o644,
            uid: 0, gid: 0, links: 1)
    }

    @Test(arguments: 0..<20) func `a tree after many changes is what a plain table would be`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var tree = LedgerTree()
        var table: [PathBytes: Snapshot] = [:]
        for step in 0..<3_000 {
            // Names of which one begins with another, at any depth.
            let names = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                ["a", "ab", "b", "abc"].randomElement(using: &random) ?? "a"
            }
            let path = PathBytes("/" + names.joined(separator: "/"))
            #expect(tree[path]?.size == table[path]?.size)
            switch Int.random(in: 0..<5, using: &random) {
            case 0..<2:
                let snapshot = snapshot(step)
                tree.set(path, snapshot)
                table[path] = snapshot
            case 2..<4:
                tree.set(path, nil)
                table[path] = nil
            default:
                var visited: [PathBytes] = []
                tree.visit(inside: path) { path, _ in visited.append(path) }
                #expect(visited.sorted() == table.keys.filter { $0.isInside(path) }.sorted())
            }
            #expect(tree.count == table.count)
            let identity = snapshot(step).identity
            for sought in [identity, identity.withoutBirth] {
                let paths = table.filter { sought.includes($0.value.identity) }.keys
                #expect(Set(tree.paths(of: sought)) == Set(paths))
            }
        }
    }
}
