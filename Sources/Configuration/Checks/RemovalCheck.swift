import FileEvents
import Globbing
import Rules
import System

/// An action that removes the file from its path.
struct Removal {
    /// The handler's verb for messages, such as `moves`.
    var verb: String
    /// The new location of the file; nil if the file is deleted.
    var destination: Destination?
    var range: Range<Int>
    let problems: DiagnosticCollector
}

extension RuleDecoder {
    /// Returns how the step removes the file from its path; nil if the file stays or if that is unknown.
    func removal(_ step: DecodedStep, _ parameters: ParameterTemplate, at range: Range<Int>) -> Removal? {
        guard let removal = step.handler?.removal else { return nil }
        var destination: Destination?
        switch removal.target {
        case .unwatched: break
        case .destination:
            destination = step.destinations.first
            if destination == nil { return nil }
        case .name(let parameter):
            guard case .object(let members) = parameters, case .text(let name) = members[parameter] else { return nil }
            destination = Destination(
                template: Template(parts: [.placeholder(.directory), .literal([.slash])] + name.parts),
                baseDirectory: directory, isBuiltIn: true, written: "", range: range, problems: problems)
        }
        return Removal(verb: removal.verb, destination: destination, range: range, problems: problems)
    }
}

/// Finds rules that move or delete files that other rules also match, so that those rules may find them gone.
///
/// A pair is reported only if the rules themselves show that both receive the same file.
struct RemovalCheck {
    /// The maximum number of reports for one rule; further rules are not compared with it.
    private static let mostReports = 3
    /// The maximum number of globs to compare, in total and for one pair; more would delay the start.
    private static let mostGlobs = (inAll: 1_000, ofPair: 100)
    /// The maximum number of pairs of rules to compare.
    private static let mostPairs = 100_000

    private let rules: [DecodedRule]
    private let index: PathFilterIndex
    /// The literal starts of each rule's globs.
    private let starts: [[[UInt8]]]
    private let endings: [[[UInt8]]]

    init(_ rules: [DecodedRule]) {
        let isNeeded = rules.contains { $0.isEnabled && $0.removal != nil }
        self.rules = isNeeded ? rules.filter(\.isEnabled) : []
        index = PathFilterIndex(self.rules.map(\.rule.filter))
        starts = self.rules.map { $0.rule.globs.map(\.literalStart) }
        endings = self.rules.map(\.rule.endings)
    }

    /// Adds a warning for each pair, at the action that removes the file.
    func run() {
        var globs = 0
        var pairs = 0
        for (number, rule) in rules.enumerated() {
            guard globs < Self.mostGlobs.inAll, pairs < Self.mostPairs else { return }
            guard let removal = rule.removal, !(rule.rule.condition?.isOfAge ?? false) else { continue }
            var reports = 0
            let others = rule.rule.roots.flatMap { index.candidates(inside: $0.bytes) }
            for other in Set(others).sorted()
            where other != number && reports < Self.mostReports && globs < Self.mostGlobs.inAll {
                pairs += 1
                // For two rules that remove the same file, one warning is enough.
                if other < number, rules[other].removal != nil { continue }
                // A rule that only deletes loses nothing.
                if let own = rules[other].removal, own.destination == nil, rules[other].rule.actions.count == 1 {
                    continue
                }
                // A rule waits until a rule of higher priority has finished with the file.
                let mayPrecede =
                    rules[other].removal == nil && !rule.rule.types.isDisjoint(with: rules[other].rule.types)
                if mayPrecede, rules[other].rule.priority > rule.rule.priority { continue }
                guard haveCompatibleEnds(number, other), bothRun(number, other) else { continue }
                let count = rule.rule.globs.count + rules[other].rule.globs.count
                guard count <= Self.mostGlobs.ofPair else { continue }
                globs += count
                let shared = shared(rule.rule, rules[other].rule)
                guard let glob = shared.first.flatMap({ rules[other].rule.glob(matching: $0) }) else { continue }
                if let destination = removal.destination,
                    mayMatchMoved(shared, at: destination, of: rule.rule, rules[other].rule)
                {
                    continue
                }
                reports += 1
                report(removal, of: rule.rule, rules[other].rule, glob, mayPrecede: mayPrecede)
            }
        }
    }

    /// Whether both rules run for the same change of a file, apart from its path.
    private func bothRun(_ number: Int, _ other: Int) -> Bool {
        let one = rules[number].rule
        let two = rules[other].rule
        let events: [EventKind] = [.created, .modified, .moved, .attributes]
        guard one.events.kinds.contains(where: { events.contains($0) && two.events.kinds.contains($0) }) else {
            return false
        }
        if let condition = one.condition, let other = two.condition, condition.excludes(other) { return false }
        // After a rule with `stop`, the other rule does not receive the file.
        let isFirst = (-one.priority, number) < (-two.priority, other)
        return !(isFirst ? one : two).isLast
    }

    /// Whether the rules have globs with compatible starts and endings; without them they share no path.
    private func haveCompatibleEnds(_ one: Int, _ two: Int) -> Bool {
        starts[one].contains { start in starts[two].contains { $0.agrees(with: start) } }
            && (rules[one].rule.types.contains(.directory) || endings[one].canMeet(endings[two]))
    }

    /// Returns sample paths that both rules match, or that are in a directory that the first one removes.
    private func shared(_ rule: Rule, _ other: Rule) -> [[UInt8]] {
        let isUnit = rule.types.isDisjoint(with: other.types)
        if isUnit, !rule.types.contains(.directory) { return [] }
        let words = PathWords(of: rule.patterns + other.patterns, for: rule.globs + other.globs)
        if isUnit { return other.samples(words).filter { rule.glob(matchingDirectoryOf: $0) != nil } }
        return other.samples(words).filter { rule.glob(matching: $0) != nil }
            + rule.samples(words).filter { other.glob(matching: $0) != nil }
    }

    /// Whether the other rule may match one of the files at its new location.
    private func mayMatchMoved(_ paths: [[UInt8]], at destination: Destination, of rule: Rule, _ other: Rule) -> Bool {
        guard !other.events.isDisjoint(with: [.created, .moved]) else { return false }
        let words = PathWords(of: other.patterns)
        return paths.contains { path in
            let paths = destination.paths(for: path, of: rule, words)
            return paths.isEmpty || paths.contains { other.glob(matching: $0) != nil }
        }
    }

    private func report(_ removal: Removal, of rule: Rule, _ other: Rule, _ glob: Glob, mayPrecede: Bool) {
        let name = quoted(other.name)
        let priority = mayPrecede ? ", give \(name) a higher 'priority'" : ""
        let help =
            removal.destination == nil || removal.destination?.written.isEmpty == true
            ? "write one rule with both steps, the removal last\(priority), or exclude these files from one of the two"
            : "write one rule with both steps\(priority), or add a path to \(name) that also matches the destination"
        removal.problems.warning(
            "the rule \(quoted(rule.name)) (\(rule.location)) \(removal.verb) files that the rule \(name) "
                + "(\(other.location)) matches with \(quoted(glob.description)): they may be gone before that rule runs",
            at: removal.range, help: help)
    }
}

extension Glob {
    /// The bytes before the first special character, in lower case.
    fileprivate var literalStart: [UInt8] { pattern.prefix { !"*?[{\\".utf8.contains($0) }.map(\.lowercased) }
}

extension [UInt8] {
    /// Whether one of the two starts with the other.
    fileprivate func agrees(with other: [UInt8]) -> Bool {
        count < other.count ? other.starts(with: self) : starts(with: other)
    }
}
