import FileEvents
import Rules

/// What nearly all jobs that wait consist of, in half the room: very many may wait.
///
/// It is made of any job, and gives back one that is equal only if the job has none of what is left out here.
final class SlimJob: Sendable {
    private let rule: String
    private let path: PathBytes
    private let root: PathBytes
    private let identity: FileIdentity
    private let size: UInt64
    private let mount: UInt64
    private let modified: Int64
    private let changed: Int64
    private let time: Int64
    private let modifiedPart: UInt32
    private let changedPart: UInt32
    private let timePart: UInt32
    private let uid: UInt32
    private let gid: UInt32
    private let links: UInt32
    private let mask: EventMask
    private let attempt: Int32
    private let mode: UInt16
    private let kind: EventKind
    private let type: FileType
    private let origin: EventOrigin
    private let isByMove: Bool

    init(_ job: Job) {
        let event = job.event
        let snapshot = event.snapshot
        rule = job.rule
        path = event.path
        root = event.root
        identity = snapshot.identity
        size = snapshot.size
        mount = snapshot.mount
        (modified, modifiedPart) = (snapshot.modified.seconds, snapshot.modified.nanoseconds)
        (changed, changedPart) = (snapshot.changed.seconds, snapshot.changed.nanoseconds)
        (time, timePart) = (event.time.seconds, event.time.nanoseconds)
        uid = snapshot.uid
        gid = snapshot.gid
        links = snapshot.links
        mask = job.mask
        attempt = Int32(truncatingIfNeeded: job.attempt)
        mode = snapshot.mode
        kind = event.kind
        type = snapshot.type
        origin = event.origin
        isByMove = event.isByMove
    }

    /// The job; its id is with whoever has this.
    func job(_ id: JobID) -> Job {
        let snapshot = Snapshot(
            identity: identity, type: type, size: size,
            modified: Timestamp(seconds: modified, nanoseconds: modifiedPart),
            changed: Timestamp(seconds: changed, nanoseconds: changedPart), born: Self.born(identity.birth), mode: mode,
            uid: uid, gid: gid, links: links, mount: mount)
        let event = FileEvent(
            kind: kind, path: path, root: root, snapshot: snapshot, isByMove: isByMove, origin: origin,
            time: Timestamp(seconds: time, nanoseconds: timePart))
        var job = Job(id: id, rule: rule, event: event, mask: mask)
        job.attempt = Int(attempt)
        return job
    }

    /// The birth that an identity holds, for nearly every file.
    private static func born(_ birth: Int64) -> Timestamp? {
        guard birth > 0 else { return nil }
        let (seconds, nanoseconds) = birth.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Timestamp(seconds: seconds, nanoseconds: UInt32(nanoseconds))
    }
}
