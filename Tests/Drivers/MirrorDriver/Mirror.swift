import FileEvents
import System

/// One event as the program told it.
struct Told {
    /// The number of its line.
    var number: Int
    var kind: EventKind
    var path: PathBytes
    var from: PathBytes?
    /// Nil when the program told that the action was left out, which says nothing of the file.
    var facts: Facts?
    /// Whether it is told once more later, because its action could not be done yet.
    var isRepeated = false
    /// Whether nothing was done, because the file had gone from its path.
    var isLeftOut = false
}

/// A picture of the tree, made of events and nothing else.
struct Mirror {
    /// What is known of each path; nil for one that exists, but of which no facts were told.
    private(set) var entries: [PathBytes: Facts?] = [:]
    /// Paths of which something is to be told once more, and may be merged with what happens until then.
    private var unfinished: Set<PathBytes> = []
    /// The paths among them that were told of under their own name, until that ends.
    private var open: Set<PathBytes> = []
    /// Where files came from whose moves are to be told once more, by where they went.
    private var openMoves: [PathBytes: Set<PathBytes>] = [:]
    /// Old names in such moves: a file that goes before its move is told makes a deletion of it, whatever came and
    /// went under the old name meanwhile.
    private var departed: Set<PathBytes> = []
    /// Paths whose last event was not received, since the file was gone.
    private var leftOut: Set<PathBytes> = []
    /// Events that can't follow from what was told before.
    private(set) var contradictions: [(event: Told, reason: String)] = []
    /// The events of each path, as either of their paths.
    private(set) var history: [PathBytes: [Told]] = [:]

    /// Takes what is there at the start as known.
    init(_ facts: [PathBytes: Facts] = [:]) { entries = facts.mapValues { $0 } }

    mutating func take(_ event: Told) {
        history[event.path, default: []].append(event)
        if let from = event.from, from != event.path { history[from, default: []].append(event) }
        if event.isRepeated {
            unfinished.insert(event.path)
            open.insert(event.path)
            if let from = event.from {
                unfinished.insert(from)
                departed.insert(from)
                openMoves[event.path, default: []].insert(from)
            }
            return
        }
        let wasOpen = open.remove(event.path) != nil
        // The file was gone before the action started: the event has not been received, and what was known is known still.
        // What settled in the meantime may follow from it all the same.
        if event.isLeftOut {
            if !wasOpen { leftOut.insert(event.path) }
            return
        }
        if let reason = contradiction(in: event) { contradictions.append((event, reason)) }
        switch event.kind {
        case .created, .modified, .attributes: entries[event.path] = .some(event.facts)
        case .deleted:
            // One that is not of what was known is the deletion that a move has become.
            if entries.removeValue(forKey: event.path) == nil { departed.remove(event.path) }
        case .moved:
            if let from = event.from, !isLate(event, from) {
                entries[from] = nil
                departed.remove(from)
                // What is still to be told of the old name is merged with what comes to it.
                if !open.contains(from) { unfinished.remove(from) }
            }
            entries[event.path] = .some(event.facts)
        default: break
        }
        openMoves[event.path] = nil
        unfinished.remove(event.path)
        leftOut.remove(event.path)
    }

    /// Whether a move that could not be told at once is told now, and the former path has another file since.
    private func isLate(_ event: Told, _ from: PathBytes) -> Bool {
        guard openMoves[event.path]?.contains(from) == true, !unfinished.contains(from) else { return false }
        guard let told = event.facts, let known = entries[from] ?? nil else { return true }
        return told.identity != known.identity
    }

    /// Why the event can't follow from what was told before; nil when it can.
    private func contradiction(in event: Told) -> String? {
        guard !unfinished.contains(event.path), !leftOut.contains(event.path) else { return nil }
        let isKnown = entries[event.path] != nil
        switch event.kind {
        case .created: return isKnown ? "the path was told before, and is not gone" : nil
        // A path that was uncertain, and of which nothing was known: `interrupted` says that it may be reported twice.
        case .deleted where event.facts?.links == 0: return nil
        case .deleted where departed.contains(event.path): return nil
        case .modified, .attributes, .deleted: return isKnown ? nil : "the path was never told, or is gone"
        case .moved:
            guard let from = event.from else { return "it does not say where from" }
            return entries[from] == nil && !unfinished.contains(from) && !leftOut.contains(from)
                ? "the former path was never told, or is gone" : nil
        default: return nil
        }
    }

    /// A path on which the mirror and the disk do not agree.
    struct Difference {
        var path: PathBytes
        /// What is not equal: names of facts, or that one side has nothing.
        var names: [String]
        var told: Facts?
        var disk: Facts?
    }

    /// Compares with the disk, sorted by path.
    func differences(from disk: [PathBytes: Facts]) -> [Difference] {
        var found: [Difference] = []
        for (path, facts) in disk {
            guard let told = entries[path] else {
                found.append(Difference(path: path, names: ["is not in the mirror"], told: nil, disk: facts))
                continue
            }
            let names = told.map { facts.differences(from: $0) } ?? []
            if !names.isEmpty { found.append(Difference(path: path, names: names, told: told, disk: facts)) }
        }
        for (path, told) in entries where disk[path] == nil {
            found.append(Difference(path: path, names: ["is not on the disk"], told: told, disk: nil))
        }
        return found.sorted { $0.path < $1.path }
    }

    /// Whether it equals the disk, which takes less than to say why not.
    func equals(_ disk: [PathBytes: Facts]) -> Bool {
        guard entries.count == disk.count else { return false }
        return disk.allSatisfy { path, facts in
            guard let told = entries[path] else { return false }
            return told.map { facts.differences(from: $0).isEmpty } ?? true
        }
    }
}
