import FileEvents
package import System

/// Decides whether a path that was quiet long enough is finished.
///
/// Quiet is not proof: a copy may pause. For a regular file the proof is that no
/// process can write to it; where that can't be asked, two equal samples of
/// identity, size and time, a second apart, have to do. Rounds of equal samples
/// that a policy asks for come on top of what is proven.
package enum FinishedProbe {
    package enum Verdict: Sendable, Hashable {
        /// Forced when the longest wait is over and nothing else says that it is finished.
        ///
        /// Of a folder that is one unit, the snapshot's checksum is that of everything below.
        case finished(Snapshot, isForced: Bool)
        /// There is nothing of that name.
        case gone
        /// Look again after so long, with this sample.
        ///
        /// Held while a process has it, or something below it, open for writing or locked.
        case wait(Duration, sample: Sample?, isHeld: Bool = false)
        /// The file system can't say what is there.
        case unreadable(errno: Int32)
    }

    /// The last look at a path that could not decide, to compare the next one with.
    package struct Sample: Sendable, Hashable {
        package var snapshot: Snapshot
        /// How many looks in a row agreed with the one before.
        package var rounds: Int

        package init(_ snapshot: Snapshot, rounds: Int = 0) {
            self.snapshot = snapshot
            self.rounds = rounds
        }

        fileprivate func agrees(with other: Snapshot) -> Bool {
            snapshot.hasSameContent(as: other) && snapshot.digest == other.digest
        }
    }

    /// What was seen of a path at one moment.
    package struct Look: Sendable, Hashable {
        /// What is there, looked at after all else was.
        package var sight: DiskProbe.Sight
        /// Who can write; nil when the policy does not ask.
        package var writers: DiskProbe.Holders?
        /// Who holds a write lock; nil when the policy does not ask.
        package var locks: DiskProbe.Holders?
        /// The companion that shows that the file is still being transferred; nil for none, or when the policy does not ask.
        package var companion: PathBytes?
        /// What is in the folder; nil for all but a folder that is one unit.
        package var tree: DiskProbe.TreeSight?
        package var time: Timestamp

        package init(
            _ sight: DiskProbe.Sight, writers: DiskProbe.Holders? = nil, locks: DiskProbe.Holders? = nil,
            companion: PathBytes? = nil, tree: DiskProbe.TreeSight? = nil, time: Timestamp
        ) {
            self.sight = sight
            self.writers = writers
            self.locks = locks
            self.companion = companion
            self.tree = tree
            self.time = time
        }
    }

    /// What two samples have to show where the writers can't be asked for.
    private static let instead = SettlePolicy.Rounds(every: .seconds(1), rounds: 1)

    /// The pause before the next look at a file that is still open for writing: 0.1 ms, doubling up to 1 s.
    ///
    /// It starts small because the kernel tells of a close a moment before it takes effect.
    package static func pause(round: Int) -> Duration {
        min(.microseconds(100 << min(round, 14)), .seconds(1))
    }

    /// The pause before the next walk through a folder with a writer below: 1 s, doubling up to 16 s.
    package static func treePause(round: Int) -> Duration {
        .seconds(1 << min(round, 4))
    }

    /// Judges by what was seen; pure.
    ///
    /// - Parameters:
    ///   - look: What was seen.
    ///   - policy: What has to hold.
    ///   - isPolled: Whether the path is polled: where the kernel does not tell of changes, a lease proves nothing.
    ///   - sample: That of the last verdict, if nothing has happened to the path since.
    ///   - round: How often the path has been looked at since it was last dirty.
    ///   - waited: How long the path has been dirty in all.
    /// - Returns: Whether it is finished, and if not when to look again.
    package static func judge(
        _ look: Look, policy: SettlePolicy, isPolled: Bool, sample: Sample?, round: Int, waited: Duration
    ) -> Verdict {
        let snapshot: Snapshot
        switch look.sight {
        case .absent: return .gone
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .present(let present): snapshot = present
        }
        let verdict: Verdict =
            switch snapshot.type {
            case .file: judgeFile(snapshot, look, policy, isPolled, sample, round)
            case .directory where policy.isTree: judgeTree(snapshot, look, policy, isPolled, sample, round)
            default: .finished(snapshot, isForced: false)
            }
        guard case .wait(let pause, let sample, let isHeld) = verdict, let longest = policy.maximumWait else {
            return verdict
        }
        if waited >= longest { return .finished(snapshot, isForced: true) }
        return .wait(min(pause, longest - waited), sample: sample, isHeld: isHeld)
    }

    private static func judgeFile(
        _ snapshot: Snapshot, _ look: Look, _ policy: SettlePolicy, _ isPolled: Bool, _ sample: Sample?, _ round: Int
    ) -> Verdict {
        let isHeld = look.writers == .somebody || look.locks == .somebody
        if look.companion != nil || isHeld && policy.waitsForHolder(of: snapshot, at: look.time) {
            return .wait(pause(round: round), sample: nil, isHeld: isHeld)
        }
        let isUncertain = isHeld || look.writers == .unknown || look.locks == .unknown
        return compare(snapshot, policy.stable(isPolled: isPolled) ?? (isUncertain ? instead : nil), sample)
    }

    private static func judgeTree(
        _ folder: Snapshot, _ look: Look, _ policy: SettlePolicy, _ isPolled: Bool, _ sample: Sample?, _ round: Int
    ) -> Verdict {
        switch look.tree {
        case .absent: return .gone
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .busy: return .wait(treePause(round: round), sample: nil, isHeld: true)
        case nil: return .wait(treePause(round: round), sample: sample)
        case .resting(let facts):
            var folder = folder
            folder.digest = facts.fingerprint
            // The kernel's clock is this machine's only where the kernel tells of changes.
            let isAhead = isPolled || facts.changed > look.time
            if !isAhead {
                let rested = look.time.since(facts.changed)
                let quiet = policy.quiet(isPolled: false)
                if rested < quiet { return .wait(quiet - rested, sample: sample) }
            }
            let isUncertain = facts.isUncertain || isAhead
            return compare(folder, policy.stable(isPolled: isPolled) ?? (isUncertain ? instead : nil), sample)
        }
    }

    private static func compare(_ snapshot: Snapshot, _ asked: SettlePolicy.Rounds?, _ sample: Sample?) -> Verdict {
        guard let asked else { return .finished(snapshot, isForced: false) }
        let rounds = sample.map { $0.agrees(with: snapshot) ? $0.rounds + 1 : 0 } ?? 0
        if rounds >= asked.rounds { return .finished(snapshot, isForced: false) }
        return .wait(asked.every, sample: Sample(snapshot, rounds: rounds))
    }

    /// Looks at the disk and judges.
    ///
    /// Blocks as the file system does; a folder that is one unit is walked through.
    ///
    /// - Parameters:
    ///   - place: Where to look.
    ///   - fileSystem: What to ask.
    ///   - time: The time of day.
    ///   - policy: What has to hold.
    ///   - isPolled: Whether the path is polled.
    ///   - extras: What the snapshot of a finished path has besides.
    ///   - sample: That of the last verdict, if nothing has happened to the path since.
    ///   - round: How often the path has been looked at since it was last dirty.
    ///   - waited: How long the path has been dirty in all.
    /// - Returns: Whether it is finished, and if not when to look again.
    package static func check(
        _ place: DiskProbe.Place, in fileSystem: any FileSystem, at time: Timestamp, policy: SettlePolicy,
        isPolled: Bool, reading extras: DiskProbe.Extras = [],
        sample: Sample?, round: Int, waited: Duration
    ) -> Verdict {
        var look = Look(fileSystem.stat(place), time: time)
        if case .present(let first) = look.sight {
            if first.type == .file {
                if policy.writers == .wait { look.writers = writers(of: place, in: fileSystem, isPolled: isPolled) }
                if policy.locks == .wait { look.locks = fileSystem.locks(of: place) }
                if policy.partial == .wait {
                    look.companion = PartialFile.companion(of: place, size: first.size, in: fileSystem)
                }
            } else if first.type == .directory, policy.isTree {
                let asks = policy.writers == .wait
                look.tree = fileSystem.tree(at: place, askingWriters: asks)
            }
            look.sight = fileSystem.stat(place, reading: extras)
            // Nothing was asked about a file that has replaced it meanwhile.
            if case .present(let last) = look.sight, last.identity != first.identity {
                return .wait(pause(round: round), sample: nil)
            }
        }
        return judge(look, policy: policy, isPolled: isPolled, sample: sample, round: round, waited: waited)
    }

    /// On a polled root a writer that is found is one, but on other machines there may be more.
    private static func writers(
        of place: DiskProbe.Place, in fileSystem: any FileSystem, isPolled: Bool
    ) -> DiskProbe.Holders {
        let found = fileSystem.writers(of: place)
        return isPolled && found == .nobody ? .unknown : found
    }
}
