package import FileEvents
import Globbing
package import System

/// All enabled rules, with the data derived from them.
package struct Ruleset: Sendable {
    /// The rules in the order of files and entries, which is also the order of jobs for one path.
    package let rules: [Rule]
    /// All rules in the same order, including the disabled ones, for display.
    package let listed: [Rule]
    /// The literal directories before the rules' wildcards, where watching starts.
    package let roots: [PathBytes]
    /// Whether any rule requests the writer.
    package let needsWriters: Bool
    /// The rules by name, and those without a name also by their expanded path.
    private let indices: [String: Int]
    private let filters: PathFilterIndex
    /// For each rule, the number of rules that precede it.
    private let ranks: [Int]
    /// The lowest rank of a rule that stops later rules; nil if there is none.
    private let firstStop: Int?

    /// - Parameters:
    ///   - rules: The enabled rules.
    ///   - listed: All rules including the disabled ones, in order; nil if none are disabled.
    package init(_ rules: [Rule], listed: [Rule]? = nil) {
        self.rules = rules
        self.listed = listed ?? rules
        filters = PathFilterIndex(rules.map(\.filter))
        needsWriters = rules.contains(where: \.needsWriter)
        // By priority, then by their order in the files.
        let order = rules.indices.sorted { (-rules[$0].priority, $0) < (-rules[$1].priority, $1) }
        var ranks = rules.map { _ in 0 }
        for (rank, index) in order.enumerated() { ranks[index] = rank }
        self.ranks = ranks
        firstStop = rules.indices.filter { rules[$0].isLast }.map { ranks[$0] }.min()
        indices = Dictionary(
            rules.enumerated().map { ($1.name, $0) }
                + rules.enumerated().compactMap { index, rule in rule.identifyingPath.map { ($0, index) } }
        ) { first, _ in first }
        // By index, because a rule is expensive to copy.
        roots = Set(rules.indices.flatMap { rules[$0].roots }).sorted()
    }

    /// Whether any rule matches the path by name, or a directory above it as a unit with its contents.
    package func takes(_ path: PathBytes) -> Bool { filters.takes(path.bytes) }

    /// Whether any rule could match a path strictly below the directory, so that it needs a watch.
    package func reaches(below directory: PathBytes) -> Bool { filters.reaches(below: directory.bytes) }

    /// Whether any rule could match a path directly in the directory, so that writes there must be reported.
    package func canMatch(in directory: PathBytes) -> Bool { filters.canMatch(in: directory.bytes) }

    package func rule(named name: String) -> Rule? { indices[name].map { rules[$0] } }

    /// The disabled rules.
    package var disabled: [Rule] { listed.filter { indices[$0.name] == nil } }

    /// Whether the rule with that name is disabled.
    package func isDisabled(_ name: String) -> Bool { disabled.contains { $0.name == name } }

    /// Returns the index in `rules` of the rule with that name.
    package func index(of name: String) -> Int? { indices[name] }

    // MARK: Stopping

    /// Whether any preceding rule stops later rules.
    package func isAfterStop(_ index: Int) -> Bool { firstStop.map { $0 < ranks[index] } ?? false }

    /// Returns the rule that stops a later rule from receiving an event; nil if there is none.
    ///
    /// Evaluates only rules that could match the path, even if many rules have `stop`.
    package func stopper(of event: FileEvent, to index: Int, reading read: Rule.ContentReader) -> Rule? {
        possibleStoppers(of: event, to: index).first { $0.answer(to: event, reading: read) == .holds }
    }

    /// Returns the reason why it is not known whether a preceding rule stops a later one from receiving an event: its
    /// condition cannot be read.
    package func unreadableStopper(of event: FileEvent, to index: Int, reading read: Rule.ContentReader) -> String? {
        for rule in possibleStoppers(of: event, to: index) {
            guard case .unreadable(let reason) = rule.answer(to: event, reading: read) else { continue }
            return "rule '\(rule.name)' with 'stop' may match it: \(reason)"
        }
        return nil
    }

    /// Returns the rules with `stop` before a rule that could match the path, in order.
    private func possibleStoppers(of event: FileEvent, to index: Int) -> some Sequence<Rule> {
        let path = event.path.bytes
        let isStopped = !event.kind.isLifecycle && isAfterStop(index)
        let could = isStopped ? filters.candidates(for: path) + filters.treeCandidates(for: path) : []
        return could.filter { rules[$0].isLast && ranks[$0] < ranks[index] }.sorted { ranks[$0] < ranks[$1] }.lazy
            .map { rules[$0] }
    }
}

extension Rule {
    /// Reads the content type of the file of an event; may block.
    package typealias ContentReader = (FileEvent) -> ConditionInput.Content

    /// Whether the rule matches an event that another rule would receive: by name, type and kind.
    ///
    /// The result is independent of time: the rule may settle later, or may have received the event already. All tests
    /// that decide what a rule matches belong here, so that `stop` is consistent with them.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - read: Reads the content type, if the result depends on it.
    /// - Returns: Whether the rule matches.
    func answer(to event: FileEvent, reading read: ContentReader) -> ConditionAnswer {
        // The contents of a directory that is a unit belong to that unit.
        if filter.isTree, !filter.trees(holding: event.path.bytes).isEmpty { return .holds }
        guard let root = root(matching: event.path), types.contains(event.snapshot.type) else {
            return .fails("the rule does not match the path")
        }
        var event = event
        event.root = root
        // A rule without `moved` receives a move as a new name.
        let asksForIt =
            events.takes(event.kind, changed: event.changed) || event.kind == .moved && events.contains(.created)
        guard asksForIt else { return .fails("the rule does not receive the event") }
        let isPast = event.kind == .deleted
        // Evaluated as for an existing file, to find out whether the result depends on the former content, which cannot
        // be determined.
        if isPast { event.kind = .created }
        return admits(event) { isPast ? .unknown("the former content is unknown") : read($0) }
    }
}

extension Ruleset {
    /// The former names of rules, and the current one of each.
    package var renames: [(former: String, name: String)] {
        rules.flatMap { rule in rule.formerly.filter { index(of: $0) == nil }.map { ($0, rule.name) } }
    }
}
