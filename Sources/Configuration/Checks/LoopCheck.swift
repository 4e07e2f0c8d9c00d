import FileEvents
import Globbing
import Rules
import System

/// Finds rules that trigger themselves, or each other in a cycle, by the destinations of their actions.
///
/// Only destinations that handlers declare are known. What a program writes is unknown and is not reported; the
/// engine's loop guard covers that at run time.
struct LoopCheck {
    /// A rule writes files that another rule matches.
    private struct Link {
        var from: Int
        var to: Int
        var destination: Destination
        var glob: Glob
        /// Whether this is the case for every file.
        var isCertain: Bool
    }

    private let rules: [DecodedRule]
    /// The candidates for a match.
    ///
    /// The match itself is slow, and a thousand rules would all be compared with each other.
    private let index: PathFilterIndex
    private let endings: [[[UInt8]]]

    init(_ rules: [DecodedRule]) {
        // Without a rule that declares a destination there is nothing to check.
        let isNeeded = rules.contains { !$0.destinations.isEmpty }
        self.rules = isNeeded ? rules.filter { $0.isEnabled && !$0.allowsLoop } : []
        index = PathFilterIndex(self.rules.map(\.rule.filter))
        endings = self.rules.map(\.rule.endings)
    }

    /// Adds a diagnostic for each loop, at a destination in it.
    func run() {
        let sources = rules.indices.filter { !rules[$0].destinations.isEmpty }
        guard !sources.isEmpty else { return }
        var links: [Int: [Link]] = [:]
        for source in sources { links[source] = self.links(from: source) }
        for (index, found) in links.sorted(by: { $0.key < $1.key }) {
            for link in found where link.to == index { reportSelf(index, link) }
        }
        for source in sources where rules[source].rule.ownWrites == .ignore { reportOwnRoot(source) }
        let certain = links.mapValues { $0.filter(\.isCertain) }
        var reported: Set<Set<Int>> = []
        for index in sources {
            // A certain chain is an error, even if a shorter chain exists that is not certain.
            for graph in [certain, links] {
                guard let chain = shortestChain(from: index, graph),
                    reported.insert(Set([index] + chain.map(\.to))).inserted
                else { continue }
                reportCycle(index, chain)
            }
        }
    }

    // MARK: - Links

    private func links(from source: Int) -> [Link] {
        var links: [Link] = []
        let rule = rules[source].rule
        for destination in rules[source].destinations {
            let endings = destination.endings(of: rule)
            let targets = destination.directories(of: rule).flatMap { directory in
                index.candidates(inside: directory.bytes).filter {
                    endings.canMeet(self.endings[$0]) && rules[$0].rule.reaches(below: directory)
                }
            }
            for target in Set(targets).sorted() {
                let other = rules[target].rule
                if source == target, rule.ownWrites == .ignore { continue }
                guard mayMatch(other, destination, of: rule) else { continue }
                let globs = destination.paths(of: rule, like: other).map { path in
                    other.glob(matching: path) ?? (other.filter.isTree ? other.glob(matchingDirectoryOf: path) : nil)
                }
                guard let glob = globs.lazy.compactMap(\.self).first else { continue }
                let isCertain =
                    globs.allSatisfy { $0 != nil } && !destination.isOfFailure
                    && matchesAll(other, destination, of: rule)
                links.append(
                    Link(from: source, to: target, destination: destination, glob: glob, isCertain: isCertain))
            }
        }
        // Of several links to one rule, the most certain comes first.
        return links.sorted { $0.isCertain && !$1.isCertain }
    }

    private func mayMatch(_ rule: Rule, _ destination: Destination, of source: Rule) -> Bool {
        let arrivals: EventMask = [.created, .modified, .moved, .arriving, .extended, .truncated, .overwritten]
        guard !rule.events.isDisjoint(with: arrivals) else { return false }
        return rule.filter.isTree || !rule.types.isDisjoint(with: destination.types ?? source.types)
    }

    private func matchesAll(_ rule: Rule, _ destination: Destination, of source: Rule) -> Bool {
        rule.events.isSuperset(of: [.created, .modified]) && !rule.filter.isTree
            && rule.types.isSuperset(of: destination.types ?? source.types)
    }

    /// Returns the shortest chain of links through other rules back to this one.
    private func shortestChain(from start: Int, _ links: [Int: [Link]]) -> [Link]? {
        /// The first link found to each rule.
        var reached: [Int: Link] = [:]
        var pending = [start]
        var next = 0
        while next < pending.count {
            let rule = pending[next]
            next += 1
            for link in links[rule] ?? [] where link.to != rule && reached[link.to] == nil {
                guard link.to == start else {
                    reached[link.to] = link
                    pending.append(link.to)
                    continue
                }
                var chain = [link]
                while let before = reached[chain[0].from] { chain.insert(before, at: 0) }
                return chain
            }
        }
        return nil
    }

    // MARK: - Messages

    private static let help = "or set 'allow_loop: true' if the loop is intended and terminates"

    private func reportSelf(_ index: Int, _ link: Link) {
        let name = quoted(rules[index].rule.name)
        let location =
            "\(quoted(link.destination.written)), which its own glob \(quoted(link.glob.description)) matches"
        let help = "write elsewhere, add the path to 'outputs', remove 'own_writes: report', \(Self.help)"
        let verb = link.isCertain ? "triggers itself indefinitely" : "may trigger itself"
        report("the rule \(name) \(verb): it writes to \(location)", link, isCertain: link.isCertain, help: help)
    }

    /// Warns about destinations below the root of the rule itself, whose files it matches too.
    ///
    /// Its own writes are ignored, but later changes of these files are not, nor is a run for existing files.
    private func reportOwnRoot(_ index: Int) {
        let rule = rules[index].rule
        for destination in rules[index].destinations where mayMatch(rule, destination, of: rule) {
            for root in rule.globs.filter({ $0.depth == nil }).map({ PathBytes($0.root) }) {
                guard let directory = destination.directory(below: root),
                    let relative = directory.relative(to: root), !relative.isEmpty,
                    let glob = destination.paths(of: rule, like: rule).lazy.filter({ PathBytes($0).isInside(directory) }
                    )
                    .compactMap({ rule.glob(matching: $0) }).first
                else { continue }
                let prefix = destination.template.placeholders.first == .directory ? "**/" : ""
                let below = quoted("\(prefix)\(String(decoding: relative, as: UTF8.self))/**")
                destination.problems.warning(
                    "\(quoted(destination.written)) is below the root of the rule itself, and "
                        + "\(quoted(glob.description)) matches files there", at: destination.range,
                    help: "add \(below) to 'exclude' or 'outputs', or write elsewhere")
                break
            }
        }
    }

    private func reportCycle(_ start: Int, _ chain: [Link]) {
        guard let first = chain.first else { return }
        func shown(_ index: Int) -> String { "\(quoted(rules[index].rule.name)) (\(rules[index].rule.location))" }
        var at = start
        var text = shown(start)
        for link in chain {
            let isLast = link.to == start
            text += at == start ? " writes to " : ", and writes to "
            text += "\(quoted(link.destination.written)), which "
            text += isLast ? quoted(rules[start].rule.name) : shown(link.to)
            text += " matches with \(quoted(link.glob.description))"
            at = link.to
        }
        let help = "change a destination, narrow a glob with 'exclude', \(Self.help)"
        let isCertain = chain.allSatisfy(\.isCertain)
        let verb = isCertain ? "trigger each other indefinitely" : "may trigger each other in a loop"
        report("rules \(verb): \(text)", first, isCertain: isCertain, help: help)
    }

    private func report(_ message: String, _ link: Link, isCertain: Bool, help: String) {
        let problems = link.destination.problems
        if isCertain {
            problems.error(message, at: link.destination.range, help: help)
        } else {
            problems.warning(message, at: link.destination.range, help: help)
        }
    }
}
