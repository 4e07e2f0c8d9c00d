import FileEvents
import HeapModule
import System

/// The due paths of one view, and the order in which they are leased.
///
/// A due path contains no event, which is computed when the path is leased. A path that settles again keeps its
/// entry, so that it is recorded if its file is removed before an action has received it.
struct DueTable {
    /// The state of a due path; rare values are boxed, since very many paths may be due.
    struct Entry {
        /// The metadata at which the path settled; nil while it settles.
        var settled: Stamp?
        /// The merged signs of its hints.
        var signs: Hint.Signs
        var origin: EventOrigin
        /// Whether the directories around a missing path were listed again since its hint.
        var isConfirmed: Bool
        /// The number of the request to list them again; 0 if there was none.
        var request: UInt32 = 0
        private var isAnnounced = false
        private var isIndexed = false
        /// The time at which it settled.
        var time: Timestamp
        /// The process that made it due; nil until it is known.
        var writer: Writer?
        private var identity: FileIdentity?
        private var rare: Box<(announced: FileIdentity?, digest: [UInt8]?)>?
        private var waiting: Box<(wait: Wait, reason: Reconciler.Reason?)>?
        /// The last position in the order; entries of the queue with other numbers are outdated.
        fileprivate(set) var position: UInt64 = 0

        init(
            settled: Stamp?, signs: Hint.Signs, origin: EventOrigin, time: Timestamp, announced: FileIdentity?,
            digest: [UInt8]?, isConfirmed: Bool
        ) {
            (self.settled, self.signs, self.origin, self.time) = (settled, signs, origin, time)
            self.isConfirmed = isConfirmed
            if let digest { rare = Box((nil, digest)) }
            self.announced = announced
        }

        /// The file with which the path was announced as due for an event; nil if it never was.
        var announced: FileIdentity? {
            get { isAnnounced ? rare?.value.announced ?? identity : nil }
            set {
                isAnnounced = newValue != nil
                if identity == nil || !isIndexed { identity = newValue ?? identity }
                let other = newValue == identity ? nil : newValue
                if other != nil || digest != nil { rare = Box((other, digest)) } else { rare = nil }
            }
        }

        /// The file at the path, if a missing path may wait for it.
        var file: FileIdentity? {
            get { isIndexed ? identity : nil }
            set {
                let announced = announced
                isIndexed = newValue != nil
                identity = newValue
                self.announced = announced
            }
        }

        /// The fingerprint of a directory that is handled as one unit with everything below it.
        var digest: [UInt8]? { rare?.value.digest }

        /// Whether a hint with the number of a request answers the entry's own request; the numbers wrap around.
        func isAnswered(by number: UInt32) -> Bool {
            request != 0 && number != 0 && Int32(bitPattern: number &- request) >= 0
        }

        /// The reason why the path is not in the order.
        var wait: Wait? { waiting?.value.wait }

        /// The owner's reason for the wait.
        var reason: Reconciler.Reason? { waiting?.value.reason }

        fileprivate mutating func wait(for wait: Wait?, _ reason: Reconciler.Reason? = nil) {
            waiting = wait.map { Box(($0, reason)) }
        }
    }

    /// The entries in one array, since a dictionary reserves space for many more than it contains.
    struct Entries {
        private var indexes: [PathBytes: UInt32] = [:]
        private var all: [Entry?] = []
        private var free: [UInt32] = []

        var isEmpty: Bool { indexes.isEmpty }
        var count: Int { indexes.count }
        var values: some Sequence<Entry> { all.lazy.compactMap(\.self) }
        var paths: [PathBytes] { indexes.keys.sorted() }
        /// The paths, the latest first.
        var latest: [PathBytes] {
            let times = indexes.compactMap { path, index in all[Int(index)].map { ($0.time, path) } }
            return times.sorted { ($1.0, $0.1) < ($0.0, $1.1) }.map(\.1)
        }

        subscript(path: PathBytes) -> Entry? {
            get { indexes[path].flatMap { all[Int($0)] } }
            set {
                guard let newValue else { return _ = removeValue(forKey: path) }
                if let index = indexes[path] {
                    all[Int(index)] = newValue
                } else if let index = free.popLast() {
                    (indexes[path], all[Int(index)]) = (index, newValue)
                } else {
                    indexes[path] = UInt32(all.count)
                    all.append(newValue)
                }
            }
        }

        @discardableResult
        mutating func removeValue(forKey path: PathBytes) -> Entry? {
            guard let index = indexes.removeValue(forKey: path) else { return nil }
            let entry = all[Int(index)]
            if indexes.isEmpty {
                (indexes, all, free) = ([:], [], [])
            } else {
                all[Int(index)] = nil
                free.append(index)
            }
            return entry
        }
    }

    /// The file and the change time by which a later change is detected; ``absent`` for a missing path.
    struct Stamp: Hashable {
        var inode: UInt64
        var changed: Timestamp

        static let absent = Stamp(nil)

        init(_ snapshot: Snapshot?) {
            inode = snapshot?.identity.inode ?? 0
            changed = snapshot?.changed ?? Timestamp(seconds: 0, nanoseconds: 0)
        }
    }

    /// The condition for which a due path waits.
    enum Wait: Hashable {
        /// Another path of the view: its action, or its outcome.
        case path(PathBytes)
        /// The end of the current listing.
        case listing
        /// A time.
        case time(ContinuousClock.Instant)
        /// A condition of the owner, see ``Reconciler/wake(_:)``.
        case gate(Reconciler.Gate)
    }

    private(set) var entries = Entries()
    private var order: [(position: UInt64, path: PathBytes)] = []
    private var first = 0
    private var position: UInt64 = 0
    private var waiters: [Wait: Set<PathBytes>] = [:]
    /// The latest times at which paths that wait for something else stop waiting.
    private var limits: [PathBytes: ContinuousClock.Instant] = [:]
    private var times = Heap<ContinuousClock.Instant>()

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The number of paths that have settled and wait for nothing.
    var readyCount: Int { entries.values.count { $0.wait == nil && $0.settled != nil } }
    /// The earliest time for which a path waits, or an earlier one for which no path waits any more.
    var nextTime: ContinuousClock.Instant? { times.min }

    subscript(path: PathBytes) -> Entry? { entries[path] }

    /// Returns the latest time at which a path that waits for something else stops waiting.
    func limit(of path: PathBytes) -> ContinuousClock.Instant? { limits[path] }

    /// Adds a path or replaces its entry, and appends it to the order.
    mutating func add(_ path: PathBytes, _ entry: Entry) {
        stopWaiting(path)
        entries[path] = entry
        enqueue(path)
    }

    private mutating func enqueue(_ path: PathBytes) {
        position += 1
        entries[path]?.position = position
        order.append((position, path))
        // The order also contains paths that were removed before their turn.
        guard order.count - first > 2 * entries.count + 64 else { return }
        order = order[first...].filter { entries[$0.path]?.position == $0.position }
        first = 0
    }

    /// Removes a path.
    @discardableResult
    mutating func remove(_ path: PathBytes) -> Entry? {
        stopWaiting(path)
        return entries.removeValue(forKey: path)
    }

    /// Marks a path as settling.
    mutating func unsettle(_ path: PathBytes) { entries[path]?.settled = nil }

    /// Records the request to list the directories around a missing path again.
    mutating func setRequest(_ path: PathBytes, _ request: UInt32) { entries[path]?.request = request }

    mutating func setWriter(_ path: PathBytes, _ writer: Writer) { entries[path]?.writer = writer }

    mutating func announce(_ path: PathBytes, _ file: FileIdentity?) { entries[path]?.announced = file }

    /// Whether a path is in the order.
    var hasNext: Bool { nextPosition != nil }

    /// The position of the first path in the order.
    var nextPosition: UInt64? {
        order[first...].first { entries[$0.path]?.position == $0.position && entries[$0.path]?.wait == nil }?.position
    }

    /// The last position in the order.
    var lastPosition: UInt64 { position }

    /// Removes and returns the first path of the order; its entry remains.
    mutating func next() -> PathBytes? {
        while first < order.count {
            let (position, path) = order[first]
            first += 1
            if first > 1_024, first * 2 > order.count {
                order.removeFirst(first)
                first = 0
            }
            if entries[path]?.position == position, entries[path]?.wait == nil { return path }
        }
        order.removeAll(keepingCapacity: true)
        first = 0
        return nil
    }

    /// Makes a path wait, at most until the time.
    mutating func wait(
        _ path: PathBytes, for wait: Wait, until time: ContinuousClock.Instant? = nil,
        _ reason: Reconciler.Reason? = nil
    ) {
        stopWaiting(path)
        guard entries[path] != nil else { return }
        entries[path]?.wait(for: wait, reason)
        waiters[wait, default: []].insert(path)
        if case .time(let time) = wait { times.insert(time) }
        guard let time else { return }
        limits[path] = time
        waiters[.time(time), default: []].insert(path)
        times.insert(time)
    }

    /// Returns the paths that wait for this to the order, sorted.
    mutating func wake(_ wait: Wait) {
        guard !waiters.isEmpty, let woken = waiters.removeValue(forKey: wait) else { return }
        for path in woken.sorted() {
            stopWaiting(path)
            enqueue(path)
        }
    }

    /// Returns all paths that wait for a condition of the owner to the order, sorted.
    mutating func wakeAll() {
        for case .gate(let gate) in Array(waiters.keys) { wake(.gate(gate)) }
    }

    mutating func wake(until now: ContinuousClock.Instant) {
        while let time = times.min, time <= now {
            times.removeMin()
            wake(.time(time))
        }
    }

    /// Returns a path to the order if it has an entry, and ends its wait.
    mutating func requeue(_ path: PathBytes) {
        stopWaiting(path)
        if entries[path] != nil { enqueue(path) }
    }

    /// Makes a path the first in the order, after others were taken from it.
    mutating func requeueFirst(_ path: PathBytes) {
        stopWaiting(path)
        guard entries[path] != nil else { return }
        let position = max(1, nextPosition ?? position) - 1
        entries[path]?.position = position
        if first > 0 {
            first -= 1
            order[first] = (position, path)
        } else {
            order.insert((position, path), at: 0)
        }
    }

    private mutating func stopWaiting(_ path: PathBytes) {
        guard let wait = entries[path]?.wait else { return }
        entries[path]?.wait(for: nil)
        let limit = limits.isEmpty ? nil : limits.removeValue(forKey: path)
        for wait in [wait] + (limit.map { [.time($0)] } ?? []) {
            waiters[wait]?.remove(path)
            if waiters[wait]?.isEmpty == true { waiters[wait] = nil }
        }
    }
}

/// Paths by the files at them; nearly every file has one path.
struct FileIndex {
    private var one: [FileIdentity: PathBytes] = [:]
    private var others: [FileIdentity: PathsByName] = [:]

    /// Returns a path of a file that satisfies a condition.
    ///
    /// It is the last one by name of several, so that the paths that wait for it are rarely woken too early.
    func any(of file: FileIdentity, where condition: (PathBytes) -> Bool) -> PathBytes? {
        guard let first = one[file] else { return nil }
        return others[file]?.paths.last(where: condition) ?? (condition(first) ? first : nil)
    }

    /// Returns a path of a file that satisfies a condition and has the same last component as another path.
    func namesake(
        of path: PathBytes, at file: FileIdentity, where condition: (PathBytes) -> Bool
    ) -> PathBytes? {
        guard let first = one[file] else { return nil }
        if first.lastComponent == path.lastComponent, condition(first) { return first }
        return others[file]?.namesakes(of: path).first(where: condition)
    }

    /// Returns the paths of a file, in no particular order.
    func paths(of file: FileIdentity) -> [PathBytes] {
        guard let first = one[file] else { return [] }
        return [first] + (others[file]?.paths ?? [])
    }

    mutating func insert(_ path: PathBytes, _ file: FileIdentity) {
        let first = one[file]
        if first == nil { one[file] = path } else if first != path { others[file, default: PathsByName()].insert(path) }
    }

    mutating func remove(_ path: PathBytes, _ file: FileIdentity) {
        if one[file] == path {
            one[file] = others[file]?.popLast()
        } else {
            others[file]?.remove(path)
        }
        if others[file]?.isEmpty == true { others[file] = nil }
        if one.isEmpty { one = [:] }
    }
}
