import FileEvents
import System

/// An event as reported by the program.
struct ReportedEvent {
    /// The line number.
    var number: Int
    var kind: EventKind
    var path: PathBytes
    var from: PathBytes?
    /// Nil if the program reported that the action was skipped, which gives no metadata of the file.
    var metadata: Metadata?
    /// Whether the event will be reported again, because its action could not run yet.
    var isRepeated = false
    /// Whether the action was skipped because the file was gone from its path.
    var isSkipped = false
}

/// A mirror of the tree that is built only from events.
struct Mirror {
    /// The known metadata by path; nil for an existing path without reported metadata.
    private(set) var entries: [PathBytes: Metadata?] = [:]
    /// Paths with an event that will be reported again and may be merged with later changes.
    private var unfinished: Set<PathBytes> = []
    /// Those of them that were reported under their own name, until the final report.
    private var open: Set<PathBytes> = []
    /// The former paths of files whose moves will be reported again, by new path.
    private var openMoves: [PathBytes: Set<PathBytes>] = [:]
    /// The old names in such moves.
    ///
    /// If the file is removed before its move is reported, a deletion of the old name follows, whatever happened
    /// under that name meanwhile.
    private var departed: Set<PathBytes> = []
    /// Paths whose last event was not received because the file was gone.
    private var skipped: Set<PathBytes> = []
    /// Events that contradict earlier ones.
    private(set) var contradictions: [(event: ReportedEvent, reason: String)] = []
    /// The events by path, including moves from the path.
    private(set) var history: [PathBytes: [ReportedEvent]] = [:]

    /// Creates a mirror of existing files.
    init(_ metadata: [PathBytes: Metadata] = [:]) { entries = metadata.mapValues { $0 } }

    mutating func take(_ event: ReportedEvent) {
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
        // The file was gone before the action started: the event was not received, and the known state remains.
        // Changes that settled in the meantime may still follow from it.
        if event.isSkipped {
            if !wasOpen { skipped.insert(event.path) }
            return
        }
        if let reason = contradiction(in: event) { contradictions.append((event, reason)) }
        switch event.kind {
        case .created, .modified, .attributes: entries[event.path] = .some(event.metadata)
        case .deleted:
            // A deletion of an unknown path replaces a move from it.
            if entries.removeValue(forKey: event.path) == nil { departed.remove(event.path) }
        case .moved:
            if let from = event.from, !isLate(event, from) {
                entries[from] = nil
                departed.remove(from)
                // Pending events of the old name are merged with later changes to it.
                if !open.contains(from) { unfinished.remove(from) }
            }
            entries[event.path] = .some(event.metadata)
        default: break
        }
        openMoves[event.path] = nil
        unfinished.remove(event.path)
        skipped.remove(event.path)
    }

    /// Whether the event is a delayed move whose former path has another file now.
    private func isLate(_ event: ReportedEvent, _ from: PathBytes) -> Bool {
        guard openMoves[event.path]?.contains(from) == true, !unfinished.contains(from) else { return false }
        guard let reported = event.metadata, let known = entries[from] ?? nil else { return true }
        return reported.identity != known.identity
    }

    /// Returns the reason that the event contradicts earlier ones; nil if it does not.
    private func contradiction(in event: ReportedEvent) -> String? {
        guard !unfinished.contains(event.path), !skipped.contains(event.path) else { return nil }
        let isKnown = entries[event.path] != nil
        switch event.kind {
        case .created: return isKnown ? "the path was reported before and not deleted" : nil
        // The path was uncertain and not known: `interrupted` allows it to be reported twice.
        case .deleted where event.metadata?.links == 0: return nil
        case .deleted where departed.contains(event.path): return nil
        case .modified, .attributes, .deleted: return isKnown ? nil : "the path was never reported, or was deleted"
        case .moved:
            guard let from = event.from else { return "it has no former path" }
            return entries[from] == nil && !unfinished.contains(from) && !skipped.contains(from)
                ? "the former path was never reported, or was deleted" : nil
        default: return nil
        }
    }

    /// A path on which the mirror and the disk differ.
    struct Difference {
        var path: PathBytes
        /// The names of the differing attributes, or the side on which the path is missing.
        var names: [String]
        var reported: Metadata?
        var disk: Metadata?
    }

    /// Returns the differences from the disk, sorted by path.
    func differences(from disk: [PathBytes: Metadata]) -> [Difference] {
        var found: [Difference] = []
        for (path, metadata) in disk {
            guard let reported = entries[path] else {
                found.append(Difference(path: path, names: ["is not in the mirror"], reported: nil, disk: metadata))
                continue
            }
            let names = reported.map { metadata.differences(from: $0) } ?? []
            if !names.isEmpty { found.append(Difference(path: path, names: names, reported: reported, disk: metadata)) }
        }
        for (path, reported) in entries where disk[path] == nil {
            found.append(Difference(path: path, names: ["is not on the disk"], reported: reported, disk: nil))
        }
        return found.sorted { $0.path < $1.path }
    }

    /// Whether the mirror equals the disk.
    ///
    /// This is cheaper than ``differences(from:)``.
    func equals(_ disk: [PathBytes: Metadata]) -> Bool {
        guard entries.count == disk.count else { return false }
        return disk.allSatisfy { path, metadata in
            guard let reported = entries[path] else { return false }
            return reported.map { metadata.differences(from: $0).isEmpty } ?? true
        }
    }
}
