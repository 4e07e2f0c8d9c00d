package import FileEvents
package import System

/// Decides whether a path that was quiet long enough is finished.
///
/// A quiet time is not proof: a copy may pause. For a regular file, the proof is that
/// no process can write to it. Where that can't be determined, two equal samples of
/// identity, size and time, a second apart, are used instead. Rounds of equal samples
/// that a policy asks for are required in addition.
package enum SettledCheck {
    package enum Verdict: Sendable, Hashable {
        /// The path is finished; forced when the longest wait is over and no other check has succeeded.
        ///
        /// For a directory that is one unit, the snapshot's checksum covers everything below it.
        case finished(Snapshot, isForced: Bool)
        /// There is no such path.
        case gone
        /// Check again after this time, with this sample.
        ///
        /// Held while a process has the path, or something below it, open for writing or locked.
        case wait(Duration, sample: Sample?, isHeld: Bool = false)
        /// The file system can't return the metadata of the path.
        case unreadable(errno: Int32)
    }

    /// The result of an inconclusive check, for comparison with the next one.
    package struct Sample: Sendable, Hashable {
        package var snapshot: Snapshot
        /// The number of successive checks that agreed with the one before.
        package var rounds = 0

        fileprivate func agrees(with other: Snapshot) -> Bool {
            snapshot.hasSameContent(as: other) && snapshot.digest == other.digest
        }
    }

    /// The state of a path as read by one check.
    struct Inspection: Sendable, Hashable {
        /// The metadata of the path, read after everything else, or unchanged since.
        var inspected: DiskProbe.StatResult
        /// Whether a process can write; nil when the policy does not ask for it.
        var writers: DiskProbe.Holders?
        /// Whether a process holds a write lock; nil when the policy does not ask for it.
        var locks: DiskProbe.Holders?
        /// A companion file, which shows that the transfer is unfinished; nil for none, or when the policy does not ask
        /// for it.
        var companion: PathBytes?
        /// The contents of the directory; nil unless the path is a directory that is one unit.
        var tree: DiskProbe.TreeResult?
        var time: Timestamp
    }

    /// The samples required where writers can't be determined.
    private static let instead = StableRounds(every: .seconds(1), rounds: 1)

    /// The pause before the next check of a file that is still open for writing: 0.1 ms, doubling up to 1 s.
    ///
    /// It starts small because the kernel reports a close shortly before it takes effect.
    private static func pause(round: Int) -> Duration { min(.microseconds(100 << min(round, 14)), .seconds(1)) }

    /// The pause before the next walk through a directory with a writer below: 1 s, doubling up to 16 s.
    private static func treePause(round: Int) -> Duration { .seconds(1 << min(round, 4)) }

    /// Returns the verdict for a state that was read; does no I/O.
    ///
    /// - Parameters:
    ///   - inspection: The state of the path.
    ///   - policy: The conditions that must be met.
    ///   - isPolled: Whether the path is polled: where the kernel does not report every change, a lease proves nothing.
    ///   - sample: The sample of the last verdict, if nothing has happened to the path since.
    ///   - round: The number of checks since the path was last dirty.
    ///   - waited: The total time for which the path has been dirty.
    /// - Returns: Whether it is finished, and if not, when to check again.
    static func judge(
        _ inspection: Inspection, policy: SettlePolicy, isPolled: Bool, sample: Sample?, round: Int, waited: Duration
    ) -> Verdict {
        let snapshot: Snapshot
        switch inspection.inspected {
        case .absent: return .gone
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .present(let present): snapshot = present
        }
        let verdict: Verdict =
            switch snapshot.type {
            case .file: judgeFile(snapshot, inspection, policy, isPolled, sample, round)
            case .directory where policy.isTree: judgeTree(snapshot, inspection, policy, isPolled, sample, round)
            default: .finished(snapshot, isForced: false)
            }
        guard case .wait(let pause, let sample, let isHeld) = verdict, let longest = policy.maximumWait else {
            return verdict
        }
        if waited >= longest { return .finished(snapshot, isForced: true) }
        return .wait(min(pause, longest - waited), sample: sample, isHeld: isHeld)
    }

    private static func judgeFile(
        _ snapshot: Snapshot, _ inspection: Inspection, _ policy: SettlePolicy, _ isPolled: Bool, _ sample: Sample?,
        _ round: Int
    ) -> Verdict {
        let isHeld = inspection.writers == .held || inspection.locks == .held
        if inspection.companion != nil || isHeld && policy.waitsForHolder(of: snapshot, at: inspection.time) {
            return .wait(pause(round: round), sample: nil, isHeld: isHeld)
        }
        let isUncertain = isHeld || inspection.writers == .unknown || inspection.locks == .unknown
        return compare(snapshot, policy.stable(isPolled: isPolled) ?? (isUncertain ? instead : nil), sample)
    }

    private static func judgeTree(
        _ directory: Snapshot, _ inspection: Inspection, _ policy: SettlePolicy, _ isPolled: Bool, _ sample: Sample?,
        _ round: Int
    ) -> Verdict {
        switch inspection.tree {
        case .absent: return .gone
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .busy: return .wait(treePause(round: round), sample: nil, isHeld: true)
        case nil: return .wait(treePause(round: round), sample: sample)
        case .quiet(let metadata):
            var directory = directory
            directory.digest = metadata.fingerprint
            // The kernel's timestamps use this machine's clock only where the kernel reports every change.
            let isAhead = isPolled || metadata.changed > inspection.time
            if !isAhead {
                let rested = inspection.time.since(metadata.changed)
                let quiet = policy.quiet(isPolled: false)
                if rested < quiet { return .wait(quiet - rested, sample: sample) }
            }
            let isUncertain = metadata.isUncertain || isAhead
            return compare(directory, policy.stable(isPolled: isPolled) ?? (isUncertain ? instead : nil), sample)
        }
    }

    private static func compare(_ snapshot: Snapshot, _ asked: StableRounds?, _ sample: Sample?) -> Verdict {
        guard let asked else { return .finished(snapshot, isForced: false) }
        let rounds = sample.map { $0.agrees(with: snapshot) ? $0.rounds + 1 : 0 } ?? 0
        if rounds >= asked.rounds { return .finished(snapshot, isForced: false) }
        return .wait(asked.every, sample: Sample(snapshot: snapshot, rounds: rounds))
    }

    /// Reads the state of a path and returns the verdict.
    ///
    /// Blocks as the file system does; a directory that is one unit is walked completely.
    ///
    /// - Parameters:
    ///   - location: The path to check.
    ///   - fileSystem: The file system to read.
    ///   - time: The current time of day.
    ///   - policy: The conditions that must be met.
    ///   - isPolled: Whether the path is polled.
    ///   - seen: The metadata of a regular file at the path; nil to read them. The kernel must report all changes since
    ///     they were read: then the path is dirty again if they no longer apply.
    ///   - sample: The sample of the last verdict, if nothing has happened to the path since.
    ///   - round: The number of checks since the path was last dirty.
    ///   - waited: The total time for which the path has been dirty.
    ///   - mayHaveCompanion: Whether any watched directory may contain a companion; then it is searched for.
    /// - Returns: Whether it is finished, and if not, when to check again.
    package static func check(
        _ location: DiskProbe.Location, in fileSystem: any FileSystem, at time: Timestamp, policy: SettlePolicy,
        isPolled: Bool, seen: Snapshot? = nil, sample: Sample?, round: Int, waited: Duration,
        mayHaveCompanion: Bool = true
    ) -> Verdict {
        var inspection = Inspection(inspected: seen.map { .present($0) } ?? fileSystem.stat(location), time: time)
        if let first = inspection.inspected.snapshot {
            if first.type == .file {
                if policy.writers == .wait {
                    let found = fileSystem.writers(of: location)
                    // On a polled root, a writer that is found is certain, but other machines may have more.
                    inspection.writers = isPolled && found == .free ? .unknown : found
                }
                if policy.locks == .wait { inspection.locks = fileSystem.locks(of: location) }
                if policy.partial == .wait, mayHaveCompanion {
                    inspection.companion = PartialFile.companion(of: location, size: first.size, in: fileSystem)
                }
            } else if first.type == .directory, policy.isTree {
                inspection.tree = fileSystem.tree(at: location, askingWriters: policy.writers == .wait)
            }
            if seen == nil { inspection.inspected = fileSystem.stat(location) }
            // The checks above do not apply to a file that has replaced it meanwhile.
            if let last = inspection.inspected.snapshot, last.identity != first.identity {
                return .wait(pause(round: round), sample: nil)
            }
        }
        return judge(inspection, policy: policy, isPolled: isPolled, sample: sample, round: round, waited: waited)
    }
}
