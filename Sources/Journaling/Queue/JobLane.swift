import FileEvents
import PluginProtocol
import Rules

/// When a pending job is due, and the order in which it came.
struct JobPlace: Comparable {
    var due: ContinuousClock.Instant
    var sequence: UInt64
    var job: JobID

    static func < (left: JobPlace, right: JobPlace) -> Bool {
        (left.due, left.sequence) < (right.due, right.sequence)
    }
}

/// The pending jobs of one rule.
struct JobLane {
    /// Jobs that were due when somebody looked last.
    var ready = PlaceQueue()
    /// Jobs that become due later.
    var resting = PlaceQueue()
    /// The pending job of a path, which a newer event joins.
    var byPath: [PathBytes: JobID] = [:]
    /// The pending job that tells where the file of a path is now.
    var byFormer: [PathBytes: JobID] = [:]

    /// Takes a pending job in.
    mutating func insert(_ job: Job, at place: JobPlace) {
        resting.insert(place)
        if job.isAlone {
            // Nothing joins it.
        } else if job.event.tail != nil, byPath[job.event.path] != nil {
            // It stands beside a newer one, which goes on to take in what comes.
        } else if job.isDifference {
            byPath[job.event.path] = job.id
            if let from = job.event.from { byFormer[from] = job.id }
        }
    }

    /// Forgets that newer events join the job.
    mutating func forget(_ job: Job) {
        if byPath[job.event.path] == job.id { byPath[job.event.path] = nil }
        if let from = job.event.from, byFormer[from] == job.id { byFormer[from] = nil }
    }

    /// Sorts out what has become due, so that a due job that can't run hides no later one.
    mutating func wake(at now: ContinuousClock.Instant) {
        while let first = resting.first, first.due <= now {
            ready.insert(first)
            _ = resting.removeFirst()
        }
    }
}

extension Job {
    /// Whether it tells of a difference between two states of a path, and not of a moment.
    var isDifference: Bool { EventMask.differences.contains(EventMask(event.kind)) }

    /// Whether there was an attempt at it that counts, if only to find that no action can begin.
    var isTouched: Bool { attempt > 0 || !steps.isEmpty }

    /// Whether an attempt at it has ended, whether that counts or not: the history tells of it.
    var wasTried: Bool { attempt > 0 || previous != nil }

    /// Whether an action has begun with it, or with one whose place it took: nobody knows how far that came.
    var hasBegun: Bool {
        isInterrupted || isHeir || !steps.isEmpty || (attempt > 0 && previous?.isUnbegun != true)
    }

    /// The same of a job whose attempt has just ended, and counts.
    func hasBegun(endingIn outcome: Outcome) -> Bool {
        isHeir || !outcome.isUnbegun || hasBegunBefore
    }

    /// Makes it new, but for what is known of what was done for it.
    mutating func renew() {
        isHeir = hasBegun
        attempt = 0
    }

    /// Whether what was done for the job is as good after the newer event: not if that brings other content.
    func keepsProgress(with newer: FileEvent) -> Bool {
        newer.kind == .attributes && newer.snapshot.hasSameContent(as: event.snapshot)
    }
}
