import Rules
import System
import Testing

@Suite("What a change left")
struct FileChangeTests {
    private func snapshot(inode: UInt64 = 7, type: FileType = .file, size: UInt64 = 3, second: Int64 = 9) -> Snapshot {
        let time = Timestamp(seconds: second, nanoseconds: 1)
        return Snapshot(
            identity: FileIdentity(deviceMajor: 1, deviceMinor: 2, inode: inode, birth: 4), type: type, size: size,
            modified: time, changed: time, born: nil, mode: 0o644, uid: 0, gid: 0, links: 1)
    }

    @Test func `a mark does not fit another file, size or time`() {
        let mark = FileMark(snapshot())
        #expect(mark.fits(snapshot()))
        #expect(!mark.fits(snapshot(inode: 8)))
        #expect(!mark.fits(snapshot(type: .symlink)))
        #expect(!mark.fits(snapshot(size: 4)))
        #expect(!mark.fits(snapshot(second: 10)))
    }

    @Test func `a directory fits its mark whatever was added to it`() {
        let mark = FileMark(snapshot(type: .directory))
        #expect(mark.fits(snapshot(type: .directory, size: 4096, second: 99)))
        #expect(!mark.fits(snapshot(inode: 8, type: .directory)))
    }
}
