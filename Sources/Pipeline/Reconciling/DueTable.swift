import FileEvents
import HeapModule
import System

/// The due paths of one view, and the order in which they are leased.
///
/// A due path contains no event, which is computed when the path is leased. A path that settles again keeps its
/// entry, so that it is recorded if its file is removed before an action has received it. A copy would share the tree
/// of paths: do not copy the table.
struct DueTable {
    /// The state of a due path; rare values are boxed, since very many paths may be due.
    struct Entry {
        /// The file with which the path was announced, if that is another one, and other values that few paths have.
        fileprivate struct Rare {
            var announced: FileIdentity?
            var digest: [UInt8]?
            var writer: Writer?
            var waiting: Waiting?
        }

        fileprivate struct Waiting {
            var wait: Wait
            /// The latest time at which it stops waiting for something else.
            var limit: ContinuousClock.Instant?
            var reason: Reconciler.Reason?
        }

        private struct Flags: OptionSet {
            let rawValue: UInt8

            static let settled = Flags(rawValue: 1 << 0)
            static let confirmed = Flags(rawValue: 1 << 1)
            static let announced = Flags(rawValue: 1 << 2)
            static let indexed = Flags(rawValue: 1 << 3)
            static let queued = Flags(rawValue: 1 << 4)
        }

        // In an order without gaps.
        private var stamp: Stamp
        private var nanoseconds: UInt32
        private var seconds: Int64
        private var identity = FileIdentity(deviceMajor: 0, deviceMinor: 0, inode: 0, birth: 0)
        fileprivate var rare: Box<Rare>?
        /// The last position in the order.
        fileprivate(set) var position: UInt64 = 0
        /// The neighbours in the order, or among the paths that wait for the same.
        fileprivate var next: PathTree.Number = -1
        fileprivate var previous: PathTree.Number = -1
        /// The number of the request to list the directories around a missing path again; 0 if there was none.
        var request: UInt32 = 0
        /// The merged signs of its hints.
        var signs: Hint.Signs
        var origin: EventOrigin
        private var flags: Flags = []

        init(
            settled: Stamp?, signs: Hint.Signs, origin: EventOrigin, time: Timestamp, announced: FileIdentity?,
            digest: [UInt8]?, isConfirmed: Bool
        ) {
            (stamp, self.signs, self.origin) = (settled ?? .absent, signs, origin)
            (seconds, nanoseconds) = (time.seconds, time.nanoseconds)
            if settled != nil { flags.insert(.settled) }
            if isConfirmed { flags.insert(.confirmed) }
            if let digest { change { $0.digest = digest } }
            self.announced = announced
        }

        private mutating func change(_ body: (inout Rare) -> Void) {
            var rare = rare?.value ?? Rare()
            body(&rare)
            let isEmpty = rare.announced == nil && rare.digest == nil && rare.writer == nil && rare.waiting == nil
            self.rare = isEmpty ? nil : Box(rare)
        }

        /// The metadata at which the path settled; nil while it settles.
        var settled: Stamp? { flags.contains(.settled) ? stamp : nil }

        fileprivate mutating func unsettle() { flags.remove(.settled) }

        /// Whether the directories around a missing path were listed again since its hint.
        var isConfirmed: Bool { flags.contains(.confirmed) }

        /// The time at which it settled.
        var time: Timestamp { Timestamp(seconds: seconds, nanoseconds: nanoseconds) }

        /// The file with which the path was announced as due for an event; nil if it never was.
        var announced: FileIdentity? {
            get {
                guard flags.contains(.announced) else { return nil }
                return rare?.value.announced ?? identity
            }
            set {
                if let newValue {
                    flags.insert(.announced)
                    if !flags.contains(.indexed) { identity = newValue }
                } else {
                    flags.remove(.announced)
                }
                let other = newValue == identity ? nil : newValue
                if rare?.value.announced != other { change { $0.announced = other } }
            }
        }

        /// The file at the path, if a missing path may wait for it.
        var file: FileIdentity? {
            get { flags.contains(.indexed) ? identity : nil }
            set {
                let announced = announced
                if let newValue {
                    identity = newValue
                    flags.insert(.indexed)
                } else {
                    flags.remove(.indexed)
                }
                self.announced = announced
            }
        }

        /// Whether the path is in the order.
        fileprivate var isQueued: Bool {
            get { flags.contains(.queued) }
            set { if newValue { flags.insert(.queued) } else { flags.remove(.queued) } }
        }

        /// The fingerprint of a directory that is handled as one unit with everything below it.
        var digest: [UInt8]? { rare?.value.digest }

        /// The process that made it due; nil until it is known.
        var writer: Writer? {
            get { rare?.value.writer }
            set { change { $0.writer = newValue } }
        }

        /// Whether a hint with the number of a request answers the entry's own request; the numbers wrap around.
        func isAnswered(by number: UInt32) -> Bool {
            request != 0 && number != 0 && Int32(bitPattern: number &- request) >= 0
        }

        /// The reason why the path is not in the order.
        var wait: Wait? { waiting?.wait }

        /// The owner's reason for the wait.
        var reason: Reconciler.Reason? { waiting?.reason }

        fileprivate var waiting: Waiting? {
            get { rare?.value.waiting }
            set { change { $0.waiting = newValue } }
        }
    }

    /// The entries by path, in one array.
    struct Entries {
        fileprivate let tree = PathTree()
        private var all: [Entry] = []
        /// The unused places in the array.
        private var free: [UInt32] = []

        var isEmpty: Bool { count == 0 }
        var count: Int { tree.count }
        var values: some Sequence<Entry> { tree.numbers.lazy.map { self[$0] } }
        var paths: [PathBytes] { tree.numbers.map { tree.path(of: $0) }.sorted() }
        /// The paths, the latest first.
        var latest: [PathBytes] {
            let times = tree.numbers.map { (self[$0].time, tree.path(of: $0)) }
            return times.sorted { ($1.0, $0.1) < ($0.0, $1.1) }.map(\.1)
        }

        subscript(path: PathBytes) -> Entry? { tree[path].map { all[Int($0)] } }

        fileprivate subscript(number: PathTree.Number) -> Entry {
            get { all[Int(tree[number])] }
            _modify { yield &all[Int(tree[number])] }
        }

        fileprivate mutating func insert(_ path: PathBytes, _ entry: Entry) -> PathTree.Number {
            if let index = free.popLast() {
                all[Int(index)] = entry
                return tree.insert(path, index)
            }
            all.append(entry)
            return tree.insert(path, UInt32(all.count - 1))
        }

        fileprivate mutating func remove(_ number: PathTree.Number) {
            free.append(tree[number])
            self[number].rare = nil
            tree.remove(number)
            if isEmpty { (all, free) = ([], []) }
        }

        fileprivate mutating func append(_ number: PathTree.Number, to line: inout Line) {
            self[number].previous = line.last
            self[number].next = -1
            if line.isEmpty { line.first = number } else { self[line.last].next = number }
            line.last = number
        }

        fileprivate mutating func remove(_ number: PathTree.Number, from line: inout Line) {
            let (previous, next) = (self[number].previous, self[number].next)
            if previous < 0 { line.first = next } else { self[previous].next = next }
            if next < 0 { line.last = previous } else { self[next].previous = previous }
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

    /// Linked entries, the first and the last.
    fileprivate struct Line {
        var first: PathTree.Number = -1
        var last: PathTree.Number = -1

        var isEmpty: Bool { first < 0 }
    }

    /// A time at which a path stops waiting, unless it has stopped since.
    private struct End: Comparable {
        var time: ContinuousClock.Instant
        var number: PathTree.Number

        static func < (left: End, right: End) -> Bool { left.time < right.time }
    }

    private(set) var entries = Entries()
    private var order = Line()
    private var position: UInt64 = 0
    /// The paths that wait for something other than a time.
    private var waiters: [Wait: Line] = [:]
    private var ends = Heap<End>()

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The number of paths that have settled and wait for nothing.
    var readyCount: Int { entries.values.count { $0.wait == nil && $0.settled != nil } }
    /// The earliest time for which a path waits, or an earlier one for which no path waits any more.
    var nextTime: ContinuousClock.Instant? { ends.min?.time }

    subscript(path: PathBytes) -> Entry? { entries[path] }

    /// Returns the latest time at which a path that waits for something else stops waiting.
    func limit(of path: PathBytes) -> ContinuousClock.Instant? { entries[path]?.waiting?.limit }

    /// Adds a path or replaces its entry, and appends it to the order.
    mutating func add(_ path: PathBytes, _ entry: Entry) {
        if let number = entries.tree.number(of: path) {
            detach(number)
            entries[number] = entry
            enqueue(number)
        } else {
            enqueue(entries.insert(path, entry))
        }
    }

    /// Removes a path.
    @discardableResult
    mutating func remove(_ path: PathBytes) -> Entry? {
        guard let number = entries.tree.number(of: path) else { return nil }
        let entry = entries[number]
        detach(number)
        entries.remove(number)
        return entry
    }

    private mutating func update(_ path: PathBytes, _ body: (inout Entry) -> Void) {
        if let number = entries.tree.number(of: path) { body(&entries[number]) }
    }

    /// Marks a path as settling.
    mutating func unsettle(_ path: PathBytes) { update(path) { $0.unsettle() } }

    /// Records the request to list the directories around a missing path again.
    mutating func setRequest(_ path: PathBytes, _ request: UInt32) { update(path) { $0.request = request } }

    mutating func setWriter(_ path: PathBytes, _ writer: Writer) { update(path) { $0.writer = writer } }

    mutating func announce(_ path: PathBytes, _ file: FileIdentity?) { update(path) { $0.announced = file } }

    // MARK: Order

    /// Whether a path is in the order.
    var hasNext: Bool { !order.isEmpty }

    /// The position of the first path in the order.
    var nextPosition: UInt64? { order.isEmpty ? nil : entries[order.first].position }

    /// The last position in the order.
    var lastPosition: UInt64 { position }

    /// Removes and returns the first path of the order; its entry remains.
    mutating func next() -> PathBytes? {
        guard !order.isEmpty else { return nil }
        let number = order.first
        detach(number)
        return entries.tree.path(of: number)
    }

    /// Returns a path to the order if it has an entry, and ends its wait.
    mutating func requeue(_ path: PathBytes) {
        guard let number = entries.tree.number(of: path) else { return }
        detach(number)
        enqueue(number)
    }

    /// Makes a path the first in the order, after it and others were taken from it.
    mutating func requeueFirst(_ path: PathBytes) {
        guard let number = entries.tree.number(of: path) else { return }
        detach(number)
        entries[number].position = max(1, nextPosition ?? position) - 1
        entries[number].isQueued = true
        (entries[number].previous, entries[number].next) = (-1, order.first)
        if order.isEmpty { order.last = number } else { entries[order.first].previous = number }
        order.first = number
    }

    private mutating func enqueue(_ number: PathTree.Number) {
        position += 1
        entries[number].position = position
        entries[number].isQueued = true
        entries.append(number, to: &order)
    }

    /// Removes a path from the order, or ends its wait.
    private mutating func detach(_ number: PathTree.Number) {
        if entries[number].isQueued {
            entries[number].isQueued = false
            entries.remove(number, from: &order)
        } else if let wait = entries[number].wait {
            entries[number].waiting = nil
            guard var line = waiters[wait] else { return }
            entries.remove(number, from: &line)
            waiters[wait] = line.isEmpty ? nil : line
        }
    }

    // MARK: Waiting

    /// Makes a path wait, at most until the time.
    mutating func wait(
        _ path: PathBytes, for wait: Wait, until limit: ContinuousClock.Instant? = nil,
        _ reason: Reconciler.Reason? = nil
    ) {
        guard let number = entries.tree.number(of: path) else { return }
        detach(number)
        entries[number].waiting = Entry.Waiting(wait: wait, limit: limit, reason: reason)
        if case .time(let time) = wait {
            ends.insert(End(time: time, number: number))
        } else {
            entries.append(number, to: &waiters[wait, default: Line()])
        }
        if let limit { ends.insert(End(time: limit, number: number)) }
    }

    /// Returns the paths that wait for this to the order, sorted.
    mutating func wake(_ wait: Wait) {
        guard !waiters.isEmpty, let line = waiters[wait] else { return }
        var numbers: [PathTree.Number] = []
        var number = line.first
        while number >= 0 {
            numbers.append(number)
            number = entries[number].next
        }
        wake(numbers)
    }

    private mutating func wake(_ numbers: [PathTree.Number]) {
        let paths = numbers.map { (path: entries.tree.path(of: $0), number: $0) }
        for (_, number) in paths.sorted(by: { $0.path < $1.path }) {
            detach(number)
            enqueue(number)
        }
    }

    /// Returns all paths that wait for a condition of the owner to the order, sorted.
    mutating func wakeAll() {
        for case .gate(let gate) in Array(waiters.keys) { wake(.gate(gate)) }
    }

    mutating func wake(until now: ContinuousClock.Instant) {
        while let time = ends.min?.time, time <= now {
            var numbers: Set<PathTree.Number> = []
            while let end = ends.min, end.time == time {
                ends.removeMin()
                guard entries.tree.contains(end.number), let waiting = entries[end.number].waiting else { continue }
                if waiting.limit == time || waiting.wait == .time(time) { numbers.insert(end.number) }
            }
            wake(Array(numbers))
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
