import FileEvents
import System
import Testing

@testable import Settling

extension Snapshot {
    static func file(
        size: UInt64 = 10, inode: UInt64 = 1, modified: Int64 = 100, changed: Int64? = nil, mode: UInt16 = 0o644,
        type: FileType = .file, extended: [ExtendedAttribute]? = nil, digest: [UInt8]? = nil
    )
        -> Snapshot
    {
        func time(_ seconds: Int64) -> Timestamp { Timestamp(seconds: seconds, nanoseconds: 0) }
        return Snapshot(
            identity: FileIdentity(deviceMajor: 8, deviceMinor: 1, inode: inode, birth: 7), type: type, size: size,
            modified: time(modified), changed: time(changed ?? modified), born: time(modified), mode: mode, uid: 0,
            gid: 0, links: 1, extended: extended, digest: digest)
    }
}

struct SettledCheckTests {
    private func judge(
        _ inspected: DiskProbe.StatResult, writers: DiskProbe.Holders? = nil, locks: DiskProbe.Holders? = nil,
        tree: DiskProbe.TreeResult? = nil, at time: Int64 = 1_000, policy: SettlePolicy = SettlePolicy(),
        isPolled: Bool = false, sample: SettledCheck.Sample? = nil, round: Int = 0, waited: Duration = .zero
    ) -> SettledCheck.Verdict {
        let inspection = SettledCheck.Inspection(
            inspected: inspected, writers: writers, locks: locks, tree: tree,
            time: Timestamp(seconds: time, nanoseconds: 0))
        return SettledCheck.judge(
            inspection, policy: policy, isPolled: isPolled, sample: sample, round: round, waited: waited)
    }

    /// Repeats the check, each time with the next snapshot, until the verdict is not to wait.
    private func pauses(
        _ inspection: [Snapshot], writers: DiskProbe.Holders?, policy: SettlePolicy, isPolled: Bool = false
    ) -> (pauses: [Duration], end: SettledCheck.Verdict?) {
        var pauses: [Duration] = []
        var sample: SettledCheck.Sample?
        for (round, snapshot) in inspection.enumerated() {
            let verdict = judge(
                .present(snapshot), writers: writers, policy: policy, isPolled: isPolled, sample: sample, round: round)
            guard case .wait(let pause, let next, _) = verdict else { return (pauses, verdict) }
            pauses.append(pause)
            sample = next
        }
        return (pauses, nil)
    }

    @Test func `a file is finished if no process can write to it`() {
        #expect(judge(.present(.file()), writers: .free) == .finished(.file(), isForced: false))
    }

    @Test func `a writer is waited for with growing delays up to about a second`() {
        var pauses: [Duration] = []
        for round in 0..<18 {
            let verdict = judge(.present(.file()), writers: .held, round: round)
            guard case .wait(let pause, nil, isHeld: true) = verdict else {
                Issue.record("round \(round) does not wait")
                continue
            }
            pauses.append(pause)
        }
        #expect(pauses.first == .microseconds(100))
        #expect(pauses == pauses.sorted())
        #expect(pauses.last == .seconds(1))
    }

    @Test func `without knowledge of writers, two equal samples decide`() {
        let snapshots = [Snapshot.file(size: 10), .file(size: 11), .file(size: 11)]
        let seen = pauses(snapshots, writers: .unknown, policy: SettlePolicy())
        #expect(seen.pauses == [.seconds(1), .seconds(1)])
        #expect(seen.end == .finished(.file(size: 11), isForced: false))
    }

    @Test func `an equal size with another time is not an equal sample`() {
        let seen = pauses([.file(modified: 100), .file(modified: 101)], writers: .unknown, policy: SettlePolicy())
        #expect(seen.pauses == [.seconds(1), .seconds(1)])
        #expect(seen.end == nil)
    }

    @Test func `S30 rounds are required in addition to the proof`() {
        let policy = SettlePolicy(stable: .init(every: .milliseconds(200), rounds: 3))
        for writers in [DiskProbe.Holders.free, .unknown] {
            let seen = pauses(Array(repeating: .file(), count: 9), writers: writers, policy: policy)
            #expect(seen.pauses == Array(repeating: .milliseconds(200), count: 3))
            #expect(seen.end == .finished(.file(), isForced: false))
        }
    }

    @Test func `S30 an inspection that differs restarts the rounds`() {
        let policy = SettlePolicy(stable: .init(every: .milliseconds(200), rounds: 2))
        let snapshots = [Snapshot.file(size: 1), .file(size: 1), .file(size: 2), .file(size: 2), .file(size: 2)]
        let seen = pauses(snapshots, writers: nil, policy: policy)
        #expect(seen.pauses.count == 4)
        #expect(seen.end == .finished(.file(size: 2), isForced: false))
    }

    @Test func `S30 a writer restarts the rounds`() {
        let policy = SettlePolicy(stable: .init(every: .milliseconds(200), rounds: 1))
        let sample = SettledCheck.Sample(snapshot: .file())
        #expect(
            judge(.present(.file()), writers: .held, policy: policy, sample: sample)
                == .wait(.microseconds(100), sample: nil, isHeld: true))
    }

    @Test(arguments: [(DiskProbe.Holders.held, DiskProbe.Holders.free), (.free, .held)])
    func `S31 a file that is open or locked counts as finished after a time without a change`(
        writers: DiskProbe.Holders, locks: DiskProbe.Holders
    ) {
        let policy = SettlePolicy(locks: .wait, whenHeld: .seconds(300))
        let file = DiskProbe.StatResult.present(.file(modified: 1_000))
        func judge(at time: Int64, sample: SettledCheck.Sample? = nil) -> SettledCheck.Verdict {
            self.judge(file, writers: writers, locks: locks, at: time, policy: policy, sample: sample)
        }
        #expect(judge(at: 1_299) == .wait(.microseconds(100), sample: nil, isHeld: true))
        // The process that has the file open may still write: two samples must be equal.
        let sample = SettledCheck.Sample(snapshot: .file(modified: 1_000))
        #expect(judge(at: 1_300) == .wait(.seconds(1), sample: sample))
        #expect(judge(at: 1_301, sample: sample) == .finished(.file(modified: 1_000), isForced: false))
    }

    @Test func `S55 a polled file needs two rounds, whichever process writes`() {
        for policy in [SettlePolicy(), SettlePolicy(writers: .ignore)] {
            let seen = pauses(
                Array(repeating: .file(), count: 9), writers: policy.writers == .wait ? .unknown : nil,
                policy: policy, isPolled: true)
            #expect(seen.pauses == [.seconds(1), .seconds(1)])
            #expect(seen.end == .finished(.file(), isForced: false))
        }
    }

    @Test func `S31 a rule that ignores writers does not wait for them`() {
        #expect(judge(.present(.file()), writers: nil) == .finished(.file(), isForced: false))
    }

    @Test func `S09 a lock is waited for like a writer`() {
        let policy = SettlePolicy(locks: .wait)
        #expect(
            judge(.present(.file()), writers: .free, locks: .held, policy: policy, round: 3)
                == .wait(.microseconds(800), sample: nil, isHeld: true))
        #expect(
            judge(.present(.file()), writers: .free, locks: .free, policy: policy)
                == .finished(.file(), isForced: false))
        #expect(
            judge(.present(.file()), writers: .free, locks: .unknown, policy: policy)
                == .wait(.seconds(1), sample: .init(snapshot: .file())))
    }

    @Test func `S37 after the maximum wait the file is reported as it is`() {
        let policy = SettlePolicy(maximumWait: .seconds(10))
        func verdict(_ writers: DiskProbe.Holders, waited: Duration, round: Int = 12) -> SettledCheck.Verdict {
            judge(.present(.file()), writers: writers, policy: policy, round: round, waited: waited)
        }
        #expect(verdict(.held, waited: .seconds(5)) == .wait(.microseconds(409_600), sample: nil, isHeld: true))
        #expect(
            verdict(.held, waited: .milliseconds(9_900)) == .wait(.milliseconds(100), sample: nil, isHeld: true))
        #expect(verdict(.held, waited: .seconds(10)) == .finished(.file(), isForced: true))
        #expect(verdict(.unknown, waited: .seconds(11)) == .finished(.file(), isForced: true))
        #expect(verdict(.free, waited: .seconds(11)) == .finished(.file(), isForced: false))
    }

    @Test func `S37 a missing or unreadable file is not forced`() {
        let policy = SettlePolicy(maximumWait: .seconds(10))
        #expect(judge(.absent, policy: policy, waited: .seconds(99)) == .gone)
        #expect(judge(.unreadable(errno: 5), policy: policy, waited: .seconds(99)) == .unreadable(errno: 5))
    }

    @Test func `directories and links have no writers`() {
        for type in [FileType.directory, .symlink, .other] {
            let thing = Snapshot.file(type: type)
            #expect(judge(.present(thing), isPolled: true) == .finished(thing, isForced: false))
        }
    }

    @Test func `a missing file is distinguished from an unreadable one`() {
        #expect(judge(.absent) == .gone)
        #expect(judge(.unreadable(errno: 13)) == .unreadable(errno: 13))
    }
}

struct FinishedTreeTests {
    private let directory = Snapshot.file(type: .directory)

    private func metadata(_ digest: UInt8 = 1, changed: Int64 = 100, isUncertain: Bool = false) -> TreeMetadata {
        TreeMetadata(
            fingerprint: [digest], entries: 3, changed: Timestamp(seconds: changed, nanoseconds: 0),
            isUncertain: isUncertain)
    }

    private func judge(
        _ tree: DiskProbe.TreeResult, at time: Int64 = 1_000, isPolled: Bool = false, longest: Duration? = nil,
        sample: SettledCheck.Sample? = nil, round: Int = 0, waited: Duration = .zero
    ) -> SettledCheck.Verdict {
        let policy = SettlePolicy(quiet: .seconds(4), maximumWait: longest, isTree: true)
        let inspection = SettledCheck.Inspection(
            inspected: .present(directory), tree: tree, time: Timestamp(seconds: time, nanoseconds: 500_000_000))
        return SettledCheck.judge(
            inspection, policy: policy, isPolled: isPolled, sample: sample, round: round, waited: waited)
    }

    private func settled(_ digest: UInt8 = 1) -> Snapshot {
        var settled = directory
        settled.digest = [digest]
        return settled
    }

    @Test func `S34 a directory is finished when all of its entries have settled`() {
        #expect(judge(.quiet(metadata())) == .finished(settled(), isForced: false))
    }

    @Test func `S34 a directory waits for the remaining quiet time of its newest entry`() {
        #expect(judge(.quiet(metadata(changed: 998))) == .wait(.milliseconds(1_500), sample: nil))
        #expect(judge(.quiet(metadata(changed: 996))) == .finished(settled(), isForced: false))
    }

    @Test func `S34 a writer below is waited for, with growing pauses`() {
        #expect(judge(.busy) == .wait(.seconds(1), sample: nil, isHeld: true))
        #expect(judge(.busy, round: 2) == .wait(.seconds(4), sample: nil, isHeld: true))
        #expect(judge(.busy, round: 99) == .wait(.seconds(16), sample: nil, isHeld: true))
    }

    @Test func `S34 without complete knowledge of writers, two equal scans decide`() {
        let first = judge(.quiet(metadata(isUncertain: true)))
        #expect(first == .wait(.seconds(1), sample: .init(snapshot: settled())))
        #expect(
            judge(.quiet(metadata(isUncertain: true)), sample: .init(snapshot: settled()))
                == .finished(settled(), isForced: false))
        #expect(
            judge(.quiet(metadata(2, isUncertain: true)), sample: .init(snapshot: settled()))
                == .wait(.seconds(1), sample: .init(snapshot: settled(2))))
    }

    @Test func `S33 a time in the future neither hastens nor blocks`() {
        #expect(judge(.quiet(metadata(changed: 2_000))) == .wait(.seconds(1), sample: .init(snapshot: settled())))
        #expect(
            judge(.quiet(metadata(changed: 2_000)), sample: .init(snapshot: settled()))
                == .finished(settled(), isForced: false)
        )
    }

    @Test func `S55 a polled directory needs two rounds`() {
        #expect(judge(.quiet(metadata()), isPolled: true) == .wait(.seconds(1), sample: .init(snapshot: settled())))
        #expect(
            judge(.quiet(metadata()), isPolled: true, sample: .init(snapshot: settled()))
                == .wait(.seconds(1), sample: .init(snapshot: settled(), rounds: 1)))
        #expect(
            judge(.quiet(metadata()), isPolled: true, sample: .init(snapshot: settled(), rounds: 1))
                == .finished(settled(), isForced: false))
    }

    @Test func `S37 the maximum wait also applies to a directory`() {
        #expect(judge(.busy, longest: .seconds(60), waited: .seconds(60)) == .finished(directory, isForced: true))
    }

    @Test func `a directory removed during the check is gone`() {
        #expect(judge(.absent) == .gone)
        #expect(judge(.unreadable(errno: 13)) == .unreadable(errno: 13))
    }
}
