package import FileEvents
import Settling

/// What a consumer has not taken yet, merged by path.
///
/// It is the difference between what the consumer was told of each path last and
/// what is known of it now, so memory is bounded by the number of different paths
/// that changed, and nothing is dropped. Paths come out in the order in which they
/// first became dirty. What happens to the watching of a root keeps its place
/// among them; of several equal signs for one root the newest is kept.
///
/// The decisions of all events hold here too: a path that is there before and
/// after is `modified`, and `moved` is used only if the old path is gone. So the
/// order in which paths are told does not matter to somebody who keeps a mirror.
package struct Conflation: Sendable {
    /// What is to be told of one path.
    private struct Entry {
        /// Whether the consumer knows the path, and what it knows; nil for facts that no event told.
        var wasThere: Bool
        var base: Snapshot?
        /// What is there now; nil for nothing.
        var current: Snapshot?
        /// The path under which the consumer knows the file that is there now; nil for a file that is new to it.
        var source: PathBytes?
        /// The facts that the consumer knows of that file.
        var sourceFacts: Snapshot?
        /// What differs in the file since the consumer was told of it.
        var changed: [String] = []
        var hasContent = false
        /// The newest event of the path.
        var last: FileEvent
        var sequence: UInt64 = 0
    }

    private enum Place {
        case path(PathBytes, UInt64)
        case sign(Sign, UInt64)
    }

    /// What is kept once, the newest: a sign of life of a path, or of the watching of a root.
    private struct Sign: Hashable {
        var path: PathBytes
        var kind: EventKind
    }

    private let mask: EventMask
    private let roots: [PathBytes]
    private var entries: [PathBytes: Entry] = [:]
    /// Where the file of a path is now that the consumer knows under it.
    private var targets: [PathBytes: PathBytes] = [:]
    private var signs: [Sign: (event: FileEvent, sequence: UInt64)] = [:]
    /// In the order of first becoming dirty; places whose number is not that of an entry are stale.
    private var queue: [Place] = []
    private var first = 0
    private var sequence: UInt64 = 0

    /// Makes one that holds nothing.
    ///
    /// - Parameters:
    ///   - mask: What the consumer asks for; it is told of nothing else.
    ///   - roots: The folders that are watched.
    package init(mask: EventMask, roots: [PathBytes] = []) {
        self.mask = mask
        self.roots = roots
    }

    package var isEmpty: Bool { entries.isEmpty && signs.isEmpty }

    /// How many events wait at most.
    package var count: Int { entries.count + signs.count }

    /// How many places are kept for them, stale ones with them.
    package var places: Int { queue.count }

    // MARK: In

    package mutating func add(_ event: FileEvent) {
        switch event.kind {
        case .created, .modified, .attributes: addPresent(event)
        case .deleted: addGone(event)
        case .moved: addMoved(event)
        case .scanBegan:
            // A listing that nobody has seen begin gives way to the next one of its root.
            if signs[Sign(path: event.path, kind: .scanBegan)] != nil {
                signs[Sign(path: event.path, kind: .scanEnded)] = nil
            }
            addSign(event)
        case .scanEnded, .overflow, .unmounted, .rootGone, .rootBack, .arriving, .opened, .accessed, .closed:
            addSign(event)
        }
    }

    /// Keeps the newest of a kind and path, at its own place: what came before it has been overtaken.
    private mutating func addSign(_ event: FileEvent) {
        sequence += 1
        let sign = Sign(path: event.path, kind: event.kind)
        // Of a path the place is that of the first sign, as for all that is told of it.
        if !event.kind.isLifecycle, let known = signs[sign] {
            signs[sign] = (event, known.sequence)
            return
        }
        signs[sign] = (event, sequence)
        append(.sign(sign, sequence))
    }

    private mutating func addPresent(_ event: FileEvent) {
        let path = event.path
        let isNew = event.kind == .created || event.isReplaced
        if isNew { signs[Sign(path: path, kind: .arriving)] = nil }
        var entry = entry(path, event) {
            // What was deleted before this consumer began to look is known to it as something that was there.
            event.kind == .created && event.before == nil && !event.isReplaced ? nil : .some(event.before)
        }
        if isNew || entry.current == nil {
            free(entry.source, of: path)
            entry.source = nil
            entry.sourceFacts = nil
            entry.changed = event.changed
            entry.hasContent = true
        } else {
            entry.changed += event.changed.filter { !entry.changed.contains($0) }
            entry.hasContent = entry.hasContent || event.kind == .modified
        }
        entry.current = event.snapshot
        put(event, into: &entry)
        set(path, entry)
    }

    private mutating func addGone(_ event: FileEvent) {
        var entry = entry(event.path, event) { .some(event.before ?? event.snapshot) }
        free(entry.source, of: event.path)
        entry.source = nil
        entry.sourceFacts = nil
        entry.current = nil
        put(event, into: &entry)
        set(event.path, entry)
    }

    private mutating func addMoved(_ event: FileEvent) {
        guard let from = event.from else { return }
        signs[Sign(path: event.path, kind: .arriving)] = nil
        var old = entry(from, event) { .some(event.before) }
        var new = entry(event.path, event) { event.isReplaced ? .some(nil) : nil }
        free(new.source, of: event.path)
        new.source = old.source
        new.sourceFacts = old.sourceFacts ?? event.before
        new.changed = old.changed + event.changed.filter { !old.changed.contains($0) }
        new.hasContent = old.hasContent
        if let before = event.before, event.snapshot.type == .file, !before.hasSameContent(as: event.snapshot) {
            // It may have been merged of a change and a move, and the file come back to where nobody was told of that.
            new.hasContent = true
            if new.changed.isEmpty { new.changed = [Self.content(before, event.snapshot)] }
        }
        new.current = event.snapshot
        put(event, into: &new)
        if let source = old.source { targets[source] = event.path }
        old.source = nil
        old.sourceFacts = nil
        old.changed = []
        old.hasContent = false
        old.current = nil
        old.last = event
        set(from, old)
        set(event.path, new)
    }

    /// The entry of a path, or a new one for a path of which the consumer knows what it is told here.
    ///
    /// - Parameters:
    ///   - path: What is told of.
    ///   - event: What is told.
    ///   - base: nil when the path is new to the consumer; else what it knows of it, if an event told.
    /// - Returns: What is to be told of the path so far.
    private func entry(_ path: PathBytes, _ event: FileEvent, base: () -> Snapshot??) -> Entry {
        if let entry = entries[path] { return entry }
        let base = base()
        let facts = base ?? nil
        let isKnown = base != nil
        return Entry(
            wasThere: isKnown, base: facts, current: isKnown ? facts ?? event.snapshot : nil,
            source: isKnown ? path : nil, sourceFacts: facts, last: event)
    }

    private func put(_ event: FileEvent, into entry: inout Entry) {
        let earlier = entry.last
        entry.last = event
        // A change that the kernel told is live, however it was seen again; what a person asks for is asked for.
        if earlier.origin == .live, event.origin != .manual, earlier.path == event.path { entry.last.origin = .live }
        if event.sameAs.isEmpty, earlier.path == event.path { entry.last.sameAs = earlier.sameAs }
    }

    private mutating func free(_ source: PathBytes?, of path: PathBytes) {
        if let source, targets[source] == path { targets[source] = nil }
    }

    private mutating func set(_ path: PathBytes, _ entry: Entry) {
        var entry = entry
        if entry.source == path, entry.last.kind == .moved, entry.changed.isEmpty {
            entry.changed = attributes(of: entry)
        }
        let isNothing =
            entry.wasThere
            ? entry.current != nil && entry.source == path && entry.changed.isEmpty && !entry.hasContent
                && entry.last.kind == .moved
            : entry.current == nil
        if isNothing {
            free(entry.source, of: path)
            entries[path] = nil
            return
        }
        if entry.sequence == 0 {
            sequence += 1
            entry.sequence = sequence
            append(.path(path, sequence))
        }
        entries[path] = entry
    }

    /// What was set on a file that has come back to its path, and that only its moves have told of.
    ///
    /// Of other content an event of its own tells; what is in a folder is none of its own.
    private func attributes(of entry: Entry) -> [String] {
        guard let base = entry.base, let current = entry.current, base.identity == current.identity,
            current.type == .directory || base.hasSameContent(as: current)
        else { return [] }
        let words = Difference(before: base, after: current, mayBeWritten: false).attributes
        return mask.takes(.attributes, changed: words) ? words : []
    }

    private mutating func append(_ place: Place) {
        // Places of what has come to nothing since are dropped before they outnumber the others.
        if queue.count > 2 * count + 64 {
            queue = queue[first...].filter { isAlive($0) }
            first = 0
        }
        queue.append(place)
    }

    private func isAlive(_ place: Place) -> Bool {
        switch place {
        case .path(let path, let sequence): entries[path]?.sequence == sequence
        case .sign(let sign, let sequence): signs[sign]?.sequence == sequence
        }
    }

    // MARK: Out

    /// Removes and returns what comes first; nil when there is nothing.
    package mutating func takeFirst() -> FileEvent? {
        while first < queue.count {
            let place = queue[first]
            first += 1
            guard isAlive(place) else { continue }
            switch place {
            case .sign(let sign, _): return signs.removeValue(forKey: sign)?.event
            case .path(let path, _):
                if let event = take(path) { return event }
            }
        }
        queue.removeAll(keepingCapacity: queue.capacity < 4096)
        first = 0
        return nil
    }

    /// Removes and returns everything, in order.
    package mutating func takeAll() -> [FileEvent] {
        var events: [FileEvent] = []
        while let event = takeFirst() { events.append(event) }
        return events
    }

    private mutating func take(_ path: PathBytes) -> FileEvent? {
        guard let entry = entries[path] else { return nil }
        if entry.current == nil {
            // A path whose file has another name now is told with that name.
            if let target = targets[path], entries[target]?.source == path { return takeMove(path, target) }
            entries[path] = nil
            return deletion(of: path, entry)
        }
        if let source = entry.source, source != path, entries[source]?.current == nil, entries[source] != nil {
            return takeMove(source, path)
        }
        entries[path] = nil
        free(entry.source, of: path)
        cut(path)
        return change(at: path, entry)
    }

    /// From now on the consumer knows another file under this name, so no file was moved away from it.
    private mutating func cut(_ path: PathBytes) {
        guard let target = targets.removeValue(forKey: path), entries[target]?.source == path else { return }
        entries[target]?.source = nil
        entries[target]?.sourceFacts = nil
    }

    private mutating func takeMove(_ from: PathBytes, _ path: PathBytes) -> FileEvent? {
        guard let entry = entries.removeValue(forKey: path), let snapshot = entry.current else { return nil }
        entries[from] = nil
        targets[from] = nil
        cut(path)
        var event = entry.last
        event.kind = .moved
        event.path = path
        event.from = from
        event.snapshot = snapshot
        event.before = entry.sourceFacts
        event.isReplaced = entry.wasThere
        event.isByMove = false
        event.changed = entry.changed
        return event
    }

    /// The deletion of a path; nil where the consumer does not ask for deletions.
    private func deletion(of path: PathBytes, _ entry: Entry) -> FileEvent? {
        guard mask.contains(.deleted) else { return nil }
        var event = entry.last
        if event.kind != .deleted {
            // It was renamed to a name that is gone by now, or that another file has.
            event.kind = .deleted
            event.snapshot = entry.base ?? event.before ?? event.snapshot
            event.from = nil
            event.isReplaced = false
            event.changed = []
            event.isByMove = false
            event.sameAs = []
            event.children = nil
        }
        event.path = path
        event.before = entry.base ?? event.before
        if !path.isInside(event.root), let root = roots.first(where: { path.isInside($0) }) { event.root = root }
        return event
    }

    private func change(at path: PathBytes, _ entry: Entry) -> FileEvent {
        var event = entry.last
        event.path = path
        event.snapshot = entry.current ?? event.snapshot
        event.before = entry.wasThere ? entry.base : nil
        event.changed = entry.changed
        let isSame = entry.base.map { $0.identity == event.snapshot.identity } ?? (entry.source == path)
        event.isReplaced = entry.wasThere && !isSame
        let kind: EventKind =
            if !entry.wasThere { .created } else if entry.hasContent || !isSame { .modified } else { .attributes }
        if kind == .created { event.changed = [] }
        if kind == .modified, entry.source != path { event.changed = [Self.content(entry.base, event.snapshot)] }
        // Who does not ask for the word that fits is told the one that came.
        if kind == entry.last.kind || mask.takes(kind, changed: event.changed) {
            event.kind = kind
            event.from = nil
        }
        return event
    }

    /// What another file in the place of one differs by; where the size of the old one was not told, it is overwritten.
    private static func content(_ before: Snapshot?, _ after: Snapshot) -> String {
        guard let before, before.size != after.size else { return "overwritten" }
        return after.size > before.size ? "extended" : "truncated"
    }
}
