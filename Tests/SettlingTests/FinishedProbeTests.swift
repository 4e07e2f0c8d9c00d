import FileEvents
import Settling
import Testing

extension Snapshot {
    static func file(
        size: UInt64 = 10, inode: UInt64 = 1, modified: Int64 = 100, mode: UInt16 = 0o644, type: FileType = .file
    )
        -> Snapshot
    {
        let time = Timestamp(seconds: modified, nanoseconds: 0)
        return Snapshot(
            identity: FileIdentity(deviceMajor: 8, deviceMinor: 1, inode: inode, birth: 7), type: type, size: size,
            modified: time, changed: time, born: time, mode: mode, uid: 0, gid: 0, links: 1)
    }
}

struct FinishedProbeTests {
    @Test func `nobody who can write is the proof`() {
        let file = Snapshot.file()
        #expect(FinishedProbe.judge(.present(file), writers: .nobody, sample: nil, round: 0) == .finished(file))
    }

    @Test func `a writer is waited for, with growing pauses up to about a second`() {
        var pauses: [Duration] = []
        for round in 0..<14 {
            guard
                case .wait(let pause, nil) = FinishedProbe.judge(
                    .present(.file()), writers: .somebody, sample: nil, round: round)
            else { Issue.record("round \(round) does not wait"); continue }
            pauses.append(pause)
        }
        #expect(pauses.first == .milliseconds(1))
        #expect(pauses == pauses.sorted())
        #expect(pauses.last == .milliseconds(1024))
    }

    @Test func `where nobody can tell, two equal samples decide`() {
        let small = Snapshot.file(size: 10)
        let large = Snapshot.file(size: 11)
        let first = FinishedProbe.judge(.present(small), writers: .unknown, sample: nil, round: 0)
        #expect(first == .wait(.seconds(1), sample: small))
        let grown = FinishedProbe.judge(.present(large), writers: .unknown, sample: small, round: 1)
        #expect(grown == .wait(.seconds(1), sample: large))
        #expect(FinishedProbe.judge(.present(large), writers: .unknown, sample: large, round: 2) == .finished(large))
    }

    @Test func `an equal size with another time is no equal sample`() {
        let before = Snapshot.file(modified: 100)
        let after = Snapshot.file(modified: 101)
        #expect(
            FinishedProbe.judge(.present(after), writers: .unknown, sample: before, round: 1)
                == .wait(.seconds(1), sample: after))
    }

    @Test func `a rule that ignores writers does not wait for them`() {
        let file = Snapshot.file()
        #expect(FinishedProbe.judge(.present(file), writers: nil, sample: nil, round: 0) == .finished(file))
    }

    @Test func `folders and links have no writers`() {
        for type in [FileType.directory, .symlink, .other] {
            let thing = Snapshot.file(type: type)
            #expect(FinishedProbe.judge(.present(thing), writers: .unknown, sample: nil, round: 0) == .finished(thing))
        }
    }

    @Test func `gone is told apart from unreadable`() {
        #expect(FinishedProbe.judge(.absent, writers: nil, sample: nil, round: 0) == .gone)
        #expect(
            FinishedProbe.judge(.unreadable(errno: 13), writers: nil, sample: nil, round: 0) == .unreadable(errno: 13))
    }
}

struct DifferenceTests {
    private func difference(_ before: Snapshot, _ after: Snapshot, mayBeWritten: Bool = true) -> Difference {
        Difference(before: before, after: after, mayBeWritten: mayBeWritten)
    }

    @Test func `equal snapshots differ in nothing`() {
        #expect(difference(.file(), .file()).isEmpty)
    }

    @Test func `growing, shrinking and rewriting are content`() {
        #expect(difference(.file(size: 1), .file(size: 2)).content == ["extended"])
        #expect(difference(.file(size: 2), .file(size: 1)).content == ["truncated"])
        #expect(difference(.file(modified: 1), .file(modified: 2)).content == ["overwritten"])
    }

    @Test func `a touch is an attribute`() {
        let touched = difference(.file(modified: 1), .file(modified: 2), mayBeWritten: false)
        #expect(touched.content.isEmpty)
        #expect(touched.attributes == ["mtime"])
    }

    @Test func `a mode is an attribute and no content`() {
        let changed = difference(.file(mode: 0o644), .file(mode: 0o600))
        #expect(changed.content.isEmpty)
        #expect(changed.attributes == ["mode"])
    }

    @Test func `another file in the same place is a replacement even with equal size and time`() {
        let replaced = difference(.file(inode: 1), .file(inode: 2))
        #expect(replaced.isReplaced)
        #expect(replaced.content == ["overwritten"])
    }

    @Test func `a folder's own times are nobody's change`() {
        #expect(difference(.file(modified: 1, type: .directory), .file(modified: 2, type: .directory)).isEmpty)
    }
}
