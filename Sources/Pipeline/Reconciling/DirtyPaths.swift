import FileEvents
import Settling
import System

/// The paths that were hinted and have not settled, and the listings that wait for them.
struct DirtyPaths: ~Copyable {
    /// A path that settles, shared by all views with the same policy.
    struct Key: Hashable, Sendable {
        var path: PathBytes
        var policy: Int
    }

    /// The merged hints of a dirty path.
    struct Hints: Sendable {
        var signs: Hint.Signs
        var origin: EventOrigin
        /// The last inspection, if it could not decide.
        var sample: Box<SettledCheck.Sample>?
        /// The number of the listing that waits for the path to be inspected.
        var scan: UInt32?
        /// Whether its arrival was reported since it started to settle.
        var hasArrived = false
        /// Whether a warning was issued that it has been open for writing for a long time.
        var hasWarned = false
        /// The number of the request that its last hint answers, see ``SharedState/takeDoubted()``; 0 if it answers
        /// none.
        var request: UInt32 = 0
        /// The file at the path according to its last hint, if it has several names or a view reports moves.
        var file: FileIdentity?
        /// The metadata since the last hint, if each change of them causes one.
        var seen: Box<Snapshot>?

        mutating func merge(_ later: Hints) {
            signs.formUnion(later.signs)
            if later.origin == .live { origin = .live }
            request = later.request
            sample = nil
            file = later.file ?? file
            seen = later.seen
            scan = scan ?? later.scan
            hasArrived = hasArrived || later.hasArrived
        }
    }

    typealias Entry = Settler<Key, Hints>.Waiting

    /// The settle policies of the views.
    private(set) var policies: [SettlePolicy]
    var scans = ScanTable()
    /// Whether a name was seen that may be that of a companion; see ``PartialFile``.
    var mayHaveCompanion = false
    private var settler = Settler<Key, Hints>()
    /// The dirty paths by their files, as of their last hint.
    private(set) var byFile = FileIndex()
    private var files: [PathBytes: FileIdentity] = [:]
    /// The paths that a process had open for ``heldTimeout`` at their last inspection, and the time since which they
    /// settle.
    private var heldKeys: [Key: ContinuousClock.Instant] = [:]

    /// The quiet time of a file that was complete when it was renamed into place.
    private static let completeQuiet = Duration.milliseconds(50)
    /// The minimum quiet time of a missing path whose file may be at another path.
    ///
    /// The kernel queues the halves of a rename up to 21 ms apart.
    static let renameGap = Duration.milliseconds(100)
    /// The time for which a file has to be open for writing to be in ``held``.
    private static let heldTimeout = Duration.seconds(60)
    /// The time for which a file has to be open for writing to cause a warning.
    private static let warningTimeout = Duration.seconds(600)

    init(policies: [SettlePolicy]) { self.policies = policies }

    var count: Int { settler.count }
    var paths: [PathBytes] { settler.keys.map(\.path) }
    var nextDeadline: ContinuousClock.Instant? { settler.nextDeadline }

    func contains(_ path: PathBytes, _ policy: Int) -> Bool { settler.contains(Key(path: path, policy: policy)) }

    /// Whether a path is dirty for any policy.
    func contains(_ path: PathBytes) -> Bool { policies.indices.contains { contains(path, $0) } }

    func hints(of path: PathBytes, _ policy: Int) -> Hints? { settler.waiting(Key(path: path, policy: policy))?.note }

    /// The paths that a process has had open for writing or locked for a minute, and the time since which they
    /// settle.
    var held: [PathBytes: ContinuousClock.Instant] {
        var held: [PathBytes: ContinuousClock.Instant] = [:]
        for (key, since) in heldKeys where settler.contains(key) { held[key.path] = since }
        return held
    }

    // MARK: Files

    func file(at path: PathBytes) -> FileIdentity? { files[path] }

    mutating func setFile(_ file: FileIdentity?, at path: PathBytes) {
        guard files[path] != file else { return }
        if let old = files[path] { byFile.remove(path, old) }
        files[path] = file
        // A dictionary does not release its memory otherwise.
        if files.isEmpty { files = [:] }
        if let file { byFile.insert(path, file) }
    }

    // MARK: Settling

    /// Adds hints of a path, or merges them into those that it has, and restarts its quiet time.
    mutating func add(
        _ path: PathBytes, _ policy: Int, _ hints: Hints, quiet: Duration? = nil, isPolled: Bool,
        at now: ContinuousClock.Instant
    ) {
        let key = Key(path: path, policy: policy)
        let policy = policies[policy]
        let isComplete =
            hints.signs.isSuperset(of: [.appeared, .moved]) && hints.signs.isDisjoint(with: [.written, .listed])
            && !policy.isTree && !settler.contains(key)
        let asked = quiet ?? policy.quiet(isPolled: hints.signs.contains(.polled) || isPolled)
        let time = isComplete ? min(asked, Self.completeQuiet) : asked
        let keepsScan = countForScan(key, hints, quiet: time, at: now)
        var hints = hints
        // Very many paths may settle for long.
        if time > .seconds(1) { hints.seen = nil }
        settler.add(key, note: hints, quiet: time, longest: policy.maximumWait, at: now) { known in
            known.merge(hints)
            if !keepsScan { known.scan = nil }
        }
    }

    /// Makes a listing wait for a path that it found, whether or not the path was dirty before.
    ///
    /// - Returns: False if the listing no longer waits: the path has changed again after its quiet time, so it may
    ///   never settle.
    private mutating func countForScan(
        _ key: Key, _ hints: Hints, quiet: Duration, at now: ContinuousClock.Instant
    ) -> Bool {
        guard !scans.isEmpty else { return true }
        let waiting = settler.waiting(key)
        guard let scan = waiting?.note.scan else {
            scans.start(hints.scan)
            return true
        }
        guard hints.scan == nil, let since = waiting?.since, since + quiet <= now else { return true }
        scans.end(scan)
        return false
    }

    /// Removes and returns the paths whose quiet time is over, at most `limit`.
    mutating func takeDue(at now: ContinuousClock.Instant, limit: Int) -> [(key: Key, entry: Entry)] {
        settler.takeDue(at: now, limit: limit)
    }

    /// Inspects a path whose quiet time is over.
    ///
    /// The listing that found the path waits for this one inspection, not for a file that is still being written.
    mutating func inspect(
        _ key: Key, _ entry: Entry, _ scan: UInt32?, in files: VisibleFiles, on host: Host,
        at now: ContinuousClock.Instant
    ) -> SettledCheck.Verdict {
        if let scan { scans.end(scan) }
        if !heldKeys.isEmpty { heldKeys[key] = nil }
        do throws(SystemError) {
            return SettledCheck.check(
                try files.paths.location(of: key.path), in: files.fileSystem, at: host.clock.time(),
                policy: policies[key.policy], isPolled: entry.note.signs.contains(.polled) || files.isPolled(key.path),
                seen: entry.note.seen?.value, sample: entry.note.sample?.value, round: entry.rounds,
                waited: now - entry.since, mayHaveCompanion: mayHaveCompanion)
        } catch {
            return DiskProbe.StatResult(directory: error.errno) == .absent ? .gone : .unreadable(errno: error.errno)
        }
    }

    /// Makes a missing path wait for the other half of a rename.
    mutating func awaitOtherHalf(_ key: Key, _ entry: Entry, _ scan: UInt32?) {
        var entry = entry
        scans.start(scan)
        entry.note.scan = scan
        settler.putBack(key, entry, until: entry.since + Self.renameGap)
    }

    mutating func putBack(_ key: Key, _ entry: Entry, until time: ContinuousClock.Instant) {
        settler.putBack(key, entry, until: time)
    }

    /// Makes a path settle again that had to be reported before it has settled.
    mutating func addAgain(_ key: Key, _ hints: Hints, at now: ContinuousClock.Instant) {
        settler.add(key, note: hints, quiet: policies[key.policy].quiet(isPolled: false), at: now) { $0.merge(hints) }
    }

    /// Records that a process has a path open for writing, or locked.
    ///
    /// - Returns: How long it has been so, if that is long and was not returned before.
    mutating func recordHeld(
        _ key: Key, _ entry: inout Entry, _ isHeld: Bool, at now: ContinuousClock.Instant
    ) -> Duration? {
        let waited = now - entry.since
        if isHeld, waited >= Self.heldTimeout { heldKeys[key] = entry.since }
        guard waited > Self.warningTimeout, !entry.note.hasWarned else { return nil }
        entry.note.hasWarned = true
        return waited
    }

    // MARK: Other views

    /// Continues with the policies of other views: `indices` returns those that match a path.
    mutating func change(
        to policies: [SettlePolicy], at now: ContinuousClock.Instant, isPolled: (PathBytes) -> Bool,
        indices: (PathBytes) -> Set<Int>
    ) {
        let former = self.policies
        let waiting = settler.keys.compactMap { key in settler.waiting(key).map { (key, $0) } }
        self.policies = policies
        settler = Settler()
        scans = ScanTable()
        heldKeys = [:]
        for (key, var entry) in waiting {
            entry.note.scan = nil
            let matches = indices(key.path)
            if matches.isEmpty { setFile(nil, at: key.path) }
            for index in matches {
                let quiet = policies[index].quiet(isPolled: entry.note.signs.contains(.polled) || isPolled(key.path))
                // With an equal policy it does not settle again, so a series of reloads causes no delay.
                let due = policies[index] == former[key.policy] ? nil : now + quiet
                settler.takeOver(Key(path: key.path, policy: index), entry, due: due) { $0.merge(entry.note) }
            }
        }
    }
}
