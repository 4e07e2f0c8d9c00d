import FileEvents
import Globbing
import PluginProtocol
import Rules

/// An action of a built-in handler after which the file is not at its path.
struct Removal {
    /// The handler's verb, for messages: `moves`.
    var verb: String
    /// Where the file is afterwards; nil if it is nowhere.
    var destination: Destination?
    var range: Range<Int>
    let problems: DiagnosticCollector
}

extension RuleDecoder {
    /// What the step does to a file that is not at its path afterwards; nil if it stays, or if that isn't known.
    func removal(_ step: DecodedStep, _ parameters: ParameterTemplate, at range: Range<Int>) -> Removal? {
        guard let handler = step.handler, handler.reference.location == nil else { return nil }
        func removal(_ verb: String, to destination: Destination? = nil) -> Removal {
            Removal(verb: verb, destination: destination, range: range, problems: problems)
        }
        switch handler.reference.name {
        case "delete": return removal("deletes")
        case "trash": return removal("moves to the trash")
        case "move":
            guard let destination = step.destinations.first, !destination.isInput else { return nil }
            return removal("moves", to: destination)
        case "rename":
            guard case .object(let members) = parameters, case .text(let name) = members["name"] else { return nil }
            let path = Template(parts: [.placeholder(.directory), .literal([.slash])] + name.parts)
            return removal(
                "renames",
                to: Destination(
                    template: path, folder: folder, handler: handler.reference.name, isBuiltIn: true, written: "",
                    range: range, problems: problems))
        default: return nil
        }
    }
}

/// Finds rules that move or delete files that other rules match as well, so that these may find them gone.
///
/// Nothing is reported where it can't be shown from the rules that both receive the same file.
struct RemovalCheck {
    /// A rule shares files with that many others at most before the rest is not searched for.
    private static let mostReports = 3
    /// Globs of pairs that are compared, as a whole and of one pair; beyond that it would delay the start.
    private static let mostGlobs = (inAll: 1_000, ofPair: 100)
    /// Pairs of rules that are considered at all.
    private static let mostPairs = 100_000

    private let rules: [DecodedRule]
    private let index: PathSetIndex
    /// What each rule's globs begin with.
    private let starts: [[[UInt8]]]

    init(_ rules: [DecodedRule]) {
        let isNeeded = rules.contains { $0.isEnabled && $0.removal != nil }
        self.rules = isNeeded ? rules.filter(\.isEnabled) : []
        index = PathSetIndex(self.rules.map(\.rule.filter))
        starts = self.rules.map { $0.rule.globs.map(\.literalStart) }
    }

    /// Adds a warning for each pair, at the action that removes the file.
    func run() {
        var globs = 0
        var pairs = 0
        for (number, rule) in rules.enumerated() {
            guard globs < Self.mostGlobs.inAll, pairs < Self.mostPairs else { return }
            guard let removal = rule.removal, !(rule.rule.condition?.isOfAge ?? false) else { continue }
            var reports = 0
            for other in index.candidates(for: PathSet([.path(of: rule.rule.globs)]))
            where other != number && reports < Self.mostReports && globs < Self.mostGlobs.inAll {
                pairs += 1
                // Of two rules that remove the same file one warning is enough.
                if other < number, rules[other].removal != nil { continue }
                // A rule that only deletes loses nothing.
                if let own = rules[other].removal, own.destination == nil, rules[other].rule.actions.count == 1 {
                    continue
                }
                guard haveLikeStarts(number, other), bothRun(number, other) else { continue }
                let count = rule.rule.globs.count + rules[other].rule.globs.count
                guard count <= Self.mostGlobs.ofPair else { continue }
                globs += count
                guard let glob = shared(rule.rule, rules[other].rule) else { continue }
                if let destination = removal.destination,
                    arrives(destination, of: rule.rule, at: rules[other].rule, as: glob)
                {
                    continue
                }
                reports += 1
                report(removal, of: rule.rule, rules[other].rule, glob)
            }
        }
    }

    /// Whether both rules run for one change of one file, as far as the path doesn't decide.
    private func bothRun(_ number: Int, _ other: Int) -> Bool {
        let one = rules[number].rule
        let two = rules[other].rule
        let events: [EventKind] = [.created, .modified, .moved, .attributes]
        guard one.events.kinds.contains(where: { events.contains($0) && two.events.kinds.contains($0) }) else {
            return false
        }
        if let condition = one.condition, let other = two.condition, condition.excludes(other) { return false }
        // After a rule with `stop` the other one doesn't receive the file.
        let isFirst = (-one.priority, number) < (-two.priority, other)
        return !(isFirst ? one : two).isLast
    }

    /// Whether two of their globs begin alike, without which they share no path.
    private func haveLikeStarts(_ one: Int, _ two: Int) -> Bool {
        starts[one].contains { start in starts[two].contains { $0.agrees(with: start) } }
    }

    /// The glob by which the second rule matches what the first one removes; nil if it doesn't.
    private func shared(_ rule: Rule, _ other: Rule) -> Glob? {
        var filters = [other.filter, rule.filter]
        var sets = [rule, other].flatMap { $0.condition?.certainNames ?? [] }.map { names in
            PathSet([.anything, .literal([.slash]), .name(of: names)])
        }
        let isUnit = rule.types.isDisjoint(with: other.types)
        if isUnit {
            // A directory is removed with the files in it.
            guard rule.types.contains(.directory) else { return nil }
            sets = [PathSet([.path(of: rule.globs), .literal([.slash]), .anything])]
        }
        filters[0].isTree = false
        filters[1].isTree = isUnit
        return PathSet([.anything]).meeting(filters[0], and: [filters[1]], in: sets)?.glob
    }

    /// Whether the other rule, which matched it by the glob, may match the file where it is afterwards.
    private func arrives(_ destination: Destination, of rule: Rule, at other: Rule, as glob: Glob) -> Bool {
        guard !other.events.isDisjoint(with: [.created, .moved]) else { return false }
        let paths = destination.paths(for: rule.globs)
        guard !paths.isEmpty else { return true }
        let names = destination.keepsName ? [PathSet([.anything, .literal([.slash]), .name(of: [glob])])] : []
        return paths.contains { $0.meeting(other.filter, in: names) != nil }
    }

    private func report(_ removal: Removal, of rule: Rule, _ other: Rule, _ glob: Glob) {
        let name = quoted(other.name)
        let help =
            removal.destination == nil || removal.destination?.written.isEmpty == true
            ? "write one rule with both steps, the removal last, or exclude these files from one of the two"
            : "write one rule with both steps, or add a path to \(name) that also matches the destination"
        removal.problems.warning(
            "the rule \(quoted(rule.name)) (\(rule.place)) \(removal.verb) files that the rule \(name) "
                + "(\(other.place)) matches by \(quoted(glob.description)): they may be gone before that runs",
            at: removal.range, help: help)
    }
}

extension Glob {
    /// The bytes in front of the first character with a meaning of its own, in lower case.
    fileprivate var literalStart: [UInt8] {
        pattern.prefix { !"*?[{\\".utf8.contains($0) }.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
    }
}

extension [UInt8] {
    /// Whether one of both begins with the other.
    fileprivate func agrees(with other: [UInt8]) -> Bool {
        count < other.count ? other.starts(with: self) : starts(with: other)
    }
}
