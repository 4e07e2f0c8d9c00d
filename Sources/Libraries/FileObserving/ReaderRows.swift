import FileEvents
import Settling
import System

/// The rows of a reader that differ from the observer's ledger, and other events that the reader has not received.
///
/// A path has a row from its first event that the reader has not taken until the reader takes one. The event is
/// computed when it is taken, as the difference between the state that the reader has received and that of the
/// observer's ledger, so memory is bounded by the number of different paths that changed, and nothing is dropped.
/// Events are ordered by the first change of their paths. Events about the watching of a root keep their position among
/// them; of equal ones, only the last is delivered.
struct ReaderRows: Sendable {
    private struct Row {
        /// The metadata that the reader has received; nil if it does not know the path.
        var handled: Snapshot?
        /// The newest event of the path, with the state in the observer's ledger.
        var event: FileEvent
        /// Whether the row combines several events.
        var isMerged = false
        /// Whether an event of the row reports a change of content.
        var isWritten = false
        var position: UInt64 = 0

        var now: Snapshot? { event.kind == .deleted ? nil : event.snapshot }
    }

    /// The key of a row, or of an event that is not a difference: only the newest of a kind and path is stored.
    private struct Key: Hashable {
        var path: PathBytes
        /// Nil for a row.
        var kind: EventKind?
    }

    private let mask: EventMask
    private let roots: [PathBytes]
    private var rows: [PathBytes: Row] = [:]
    private var signs: [Key: (event: FileEvent, position: UInt64)] = [:]
    /// The path at which the reader has received a file that was moved since, and its current path; by identity without
    /// the birth time.
    private var moves: [FileIdentity: (source: PathBytes, target: PathBytes)] = [:]
    /// The keys in order; a key is outdated if its position is not that of its row.
    private var order: [(key: Key, position: UInt64)] = []
    private var first = 0
    private var position: UInt64 = 0

    /// Creates an empty set of rows.
    ///
    /// - Parameters:
    ///   - mask: The events that the reader receives.
    ///   - roots: The watched directories.
    init(mask: EventMask, roots: [PathBytes] = []) {
        self.mask = mask
        self.roots = roots
    }

    var isEmpty: Bool { rows.isEmpty && signs.isEmpty }
    /// The maximum number of events that can be taken.
    var count: Int { rows.count + signs.count }
    /// The length of the order, including outdated keys.
    var orderCount: Int { order.count }

    // MARK: Adding

    /// Adds an event of the observer.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - replaced: The metadata of the file that a moved file has replaced.
    mutating func add(_ event: FileEvent, replacing replaced: Snapshot? = nil) {
        switch event.kind {
        case .created, .modified, .attributes, .deleted:
            if event.kind == .created || event.isReplaced { signs[Key(path: event.path, kind: .arriving)] = nil }
            let former = event.kind == .deleted ? event.before ?? event.snapshot : event.before
            set(event.path, event, former: former)
        case .moved: addMove(event, replaced)
        default: addSign(event)
        }
    }

    private mutating func addMove(_ event: FileEvent, _ replaced: Snapshot?) {
        guard let from = event.from else { return }
        signs[Key(path: event.path, kind: .arriving)] = nil
        let file = event.snapshot.identity.withoutBirth
        let known = rows[from].map(\.handled) ?? event.before
        if known?.identity.withoutBirth == file {
            moves[file] = (from, event.path)
        } else if let move = moves[file], move.target == from {
            moves[file] = move.source == event.path ? nil : (move.source, event.path)
        }
        let isWritten = rows[from]?.isWritten ?? false
        var departure = event
        (departure.kind, departure.path, departure.from, departure.isReplaced) = (.deleted, from, nil, false)
        (departure.sameAs, departure.children, departure.changed) = ([], nil, [])
        departure.snapshot = event.before ?? event.snapshot
        if !from.isInside(event.root), let root = roots.first(where: { from.isInside($0) }) { departure.root = root }
        set(from, departure, former: event.before)
        set(event.path, event, former: replaced ?? (event.isReplaced ? event.snapshot.asAnotherFile : nil))
        let isOther = event.before.map { $0.type == .file && !$0.hasSameContent(as: event.snapshot) } ?? false
        if isWritten || isOther { rows[event.path]?.isWritten = true }
    }

    /// Adds an event to the row of its path; a new row starts with the previous state of the observer's ledger.
    private mutating func set(_ path: PathBytes, _ event: FileEvent, former: Snapshot?) {
        var row = rows[path] ?? Row(handled: former, event: event)
        if row.position != 0 {
            unlink(path, asTargetOf: row, unless: event)
            let earlier = row.event
            row.isMerged = true
            row.event = event
            // A change that the kernel reported stays live, even if it is also found in another way; a requested one
            // does not.
            if earlier.origin == .live, event.origin != .manual { row.event.origin = .live }
            if event.sameAs.isEmpty { row.event.sameAs = earlier.sameAs }
        }
        if event.kind == .created || event.kind == .modified || event.isReplaced { row.isWritten = true }
        guard row.handled != nil || row.now != nil else {
            rows[path] = nil
            return
        }
        if row.position == 0 { row.position = append(Key(path: path)) }
        rows[path] = row
    }

    /// Removes a path as the target of a move if another file is there now, or none.
    private mutating func unlink(_ path: PathBytes, asTargetOf row: Row, unless event: FileEvent? = nil) {
        guard let file = row.now?.identity.withoutBirth, moves[file]?.target == path else { return }
        if let event, event.kind != .deleted, event.snapshot.identity.withoutBirth == file { return }
        moves[file] = nil
    }

    private mutating func addSign(_ event: FileEvent) {
        let key = Key(path: event.path, kind: event.kind)
        // A listing whose start was not received is replaced by the next one of its root.
        if event.kind == .scanStarted, signs[key] != nil { signs[Key(path: event.path, kind: .scanEnded)] = nil }
        let known = event.kind.isLifecycle ? nil : signs[key]?.position
        signs[key] = (event, known ?? append(key))
    }

    private mutating func append(_ key: Key) -> UInt64 {
        if order.count > 2 * count + 64 {
            order = order[first...].filter { isCurrent($0.key, $0.position) }
            first = 0
        }
        position += 1
        order.append((key, position))
        return position
    }

    private func isCurrent(_ key: Key, _ position: UInt64) -> Bool {
        (key.kind == nil ? rows[key.path]?.position : signs[key]?.position) == position
    }

    // MARK: Taking

    /// Removes and returns the first event; nil if there is none.
    mutating func takeFirst() -> FileEvent? {
        while first < order.count {
            let (key, position) = order[first]
            first += 1
            guard isCurrent(key, position) else { continue }
            if key.kind != nil { return signs.removeValue(forKey: key)?.event }
            if let event = take(key.path) { return event }
        }
        order.removeAll(keepingCapacity: order.capacity < 4096)
        first = 0
        return nil
    }

    /// Removes and returns all events, in order.
    mutating func takeAll() -> [FileEvent] {
        var events: [FileEvent] = []
        while let event = takeFirst() { events.append(event) }
        return events
    }

    private mutating func take(_ path: PathBytes) -> FileEvent? {
        guard let row = rows[path] else { return nil }
        let file = (row.now ?? row.handled)?.identity.withoutBirth
        if let file, let move = moves[file], path == (row.now == nil ? move.source : move.target),
            rows[move.source]?.now == nil, let source = remove(move.source), let target = remove(move.target)
        {
            return moved(from: move.source, source, to: target)
        }
        remove(path)
        guard let now = row.now else { return deletion(row) }
        return row.isMerged || row.event.kind == .moved ? change(row, now) : row.event
    }

    @discardableResult
    private mutating func remove(_ path: PathBytes) -> Row? {
        guard let row = rows.removeValue(forKey: path) else { return nil }
        unlink(path, asTargetOf: row)
        if let file = row.handled?.identity.withoutBirth, moves[file]?.source == path { moves[file] = nil }
        return row
    }

    private func moved(from path: PathBytes, _ source: Row, to target: Row) -> FileEvent {
        var event = target.event
        event.kind = .moved
        event.from = path
        event.before = source.handled
        event.isReplaced = target.handled != nil
        event.isByMove = false
        event.changed = []
        if var before = source.handled {
            before.identity = event.snapshot.identity
            let difference = difference(before, event.snapshot, isWritten: target.isWritten)
            event.changed = difference.content + difference.attributes
        }
        return event
    }

    private func difference(_ before: Snapshot, _ now: Snapshot, isWritten: Bool) -> Difference {
        Difference(before: before, after: now, writing: isWritten ? .certain : .excluded)
    }

    private func deletion(_ row: Row) -> FileEvent? {
        guard mask.contains(.deleted) else { return nil }
        var event = row.event
        if row.isMerged { event.before = row.handled }
        return event
    }

    /// Returns the event of an existing file; nil if the reader knows its state, or does not want the difference.
    private func change(_ row: Row, _ now: Snapshot) -> FileEvent? {
        var event = row.event
        event.from = nil
        event.before = row.handled
        event.isReplaced = false
        event.changed = []
        event.kind = .created
        if let handled = row.handled {
            let difference = difference(handled, now, isWritten: row.isWritten)
            guard !difference.isEmpty else { return nil }
            let isContent = difference.isReplaced || !difference.content.isEmpty
            event.kind = isContent ? .modified : .attributes
            event.changed = isContent ? difference.content : difference.attributes
            event.isReplaced = difference.isReplaced
        }
        if mask.takes(event.kind, changed: event.changed) { return event }
        // A reader that does not want the kind receives the last event.
        event.kind = row.event.kind
        event.changed = row.event.changed
        return event.kind == .moved ? nil : event
    }
}
