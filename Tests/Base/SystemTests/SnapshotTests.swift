import System
import Testing
import TestKit

struct SnapshotTests {
    private func copy(_ change: (inout Snapshot) -> Void) -> Snapshot {
        var copy = Snapshot.sample()
        copy.identity.birth += 1
        change(&copy)
        return copy
    }

    @Test func `a copy in the upper layer of an overlay has the same inode and a later birth time`() {
        let lower = Snapshot.sample()
        #expect(copy { _ in }.mayBeCopy(of: lower))
        #expect(copy { $0.size += 1 }.mayBeCopy(of: lower))
        #expect(!lower.mayBeCopy(of: lower))
        #expect(!lower.mayBeCopy(of: copy { _ in }))
        #expect(!copy { $0.identity.inode += 1 }.mayBeCopy(of: lower))
        #expect(!copy { $0.type = .symlink }.mayBeCopy(of: lower))
        var unborn = lower
        unborn.identity.birth = 0
        #expect(!copy { _ in }.mayBeCopy(of: unborn))
    }

    @Test func `a file that was written may be a new file with a reused inode`() {
        let lower = Snapshot.sample()
        #expect(copy { $0.mode = 0o600 }.isUnwrittenCopy(of: lower))
        #expect(!copy { $0.size += 1 }.isUnwrittenCopy(of: lower))
        #expect(!copy { $0.modified = $0.modified.advanced(by: .nanoseconds(1)) }.isUnwrittenCopy(of: lower))
    }
}
