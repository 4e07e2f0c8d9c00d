package import FileEvents

/// Decides whether a path that was quiet long enough is finished.
///
/// Quiet is not proof: a copy may pause. For a regular file the proof is that no
/// process can write to it; where that can't be asked, two equal samples of
/// identity, size and time, a second apart, have to do.
package enum FinishedProbe {
    package enum Verdict: Sendable, Hashable {
        case finished(Snapshot)
        /// There is nothing of that name.
        case gone
        /// Look again after so long, with this sample.
        case wait(Duration, sample: Snapshot?)
        /// The file system can't say what is there.
        case unreadable(errno: Int32)
    }

    /// How far apart two samples are taken.
    package static let sampleInterval = Duration.seconds(1)

    /// The pause before the next look at a file that is still open for writing: 1 ms, doubling up to 1 s.
    ///
    /// It starts small because the kernel tells of a close a moment before it takes effect.
    package static func pause(round: Int) -> Duration {
        .milliseconds(1 << min(round, 10))
    }

    /// Judges by what was seen; pure.
    ///
    /// - Parameters:
    ///   - sight: What is there, looked at after the writers were.
    ///   - writers: Who can write; nil when the policy does not ask.
    ///   - sample: The snapshot of the last look, when that could not decide.
    ///   - round: How often the path has been looked at since it was last dirty.
    /// - Returns: Whether it is finished, and if not when to look again.
    package static func judge(
        _ sight: DiskProbe.Sight, writers: DiskProbe.Writers?, sample: Snapshot?, round: Int
    ) -> Verdict {
        switch sight {
        case .absent: return .gone
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .present(let snapshot):
            guard snapshot.type == .file else { return .finished(snapshot) }
            switch writers {
            case nil, .nobody: return .finished(snapshot)
            case .somebody: return .wait(pause(round: round), sample: nil)
            case .unknown:
                if let sample, sample.hasSameContent(as: snapshot) { return .finished(snapshot) }
                return .wait(sampleInterval, sample: snapshot)
            }
        }
    }

    /// Looks at the disk and judges.
    ///
    /// Blocks as the file system does.
    package static func check(_ path: PathBytes, policy: SettlePolicy, sample: Snapshot?, round: Int) -> Verdict {
        guard policy.writers == .wait, case .present(let first) = DiskProbe.look(at: path), first.type == .file else {
            return judge(DiskProbe.look(at: path), writers: nil, sample: sample, round: round)
        }
        let writers = DiskProbe.writers(of: path)
        return judge(DiskProbe.look(at: path), writers: writers, sample: sample, round: round)
    }
}
