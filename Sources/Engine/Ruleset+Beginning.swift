package import FileEvents
import FileWatching
package import Journaling
import Reconciling
package import Rules
package import Settling

// What was known before this run, and what it means for the first look.
extension Ruleset {
    /// Tells the journal which rules run, and makes their views.
    ///
    /// - Parameters:
    ///   - journal: What is known of each.
    ///   - isOnce: Whether the files that are there are what is wanted.
    ///   - running: The rules that ran until now, and miss nothing.
    ///   - clock: The time of day.
    /// - Returns: A view for each rule, in order, and the rules that take other paths than when they ran last.
    func views(
        beginning journal: any Journal, isOnce: Bool, goingOn running: Set<String> = [], _ clock: Clock
    ) -> (views: [View], reselected: [Rule]) {
        // Should this run be cut off before all has been compared, the times of files tell what came since.
        let starts = journal.begin(records, isWatching: true, at: clock.fileTime())
        let last = journal.lastKept
        let views = rules.map { rule in
            let isGoingOn = !running.isDisjoint(with: [rule.name] + rule.formerly)
            let start = starts[rule.name] ?? .fresh
            return View(rule, beginning: rule.beginning(start, isOnce: isOnce, isGoingOn: isGoingOn, last: last))
        }
        let reselected = rules.filter { rule in
            if case .reselected = starts[rule.name] { true } else { false }
        }
        return (views, reselected)
    }

    /// The rules as the journal has to know them.
    package var records: [RuleRecord] {
        rules.map { RuleRecord(name: $0.name, formerly: $0.formerly, selection: $0.selection) }
    }
}

extension Rule {
    /// Lets the journal forget what is known of paths that the rule takes no more, be they there or not.
    func forgetOthers(in journal: any Journal, at now: ContinuousClock.Instant) {
        var others: [LedgerEntry] = []
        journal.visit(view: name, inside: "/") { path, _ in
            if root(taking: path) == nil { others.append(LedgerEntry(view: name, path: path, snapshot: nil)) }
        }
        if !others.isEmpty { journal.accept([], others, now: now) }
    }

    /// What is news at the first listing.
    fileprivate func beginning(_ start: RuleStart, isOnce: Bool, isGoingOn: Bool, last: Timestamp?) -> Beginning {
        let isWanted = isOnce || existing == .process
        if start == .fresh { return isWanted ? .told : .silent }
        return switch start {
        case .unfinished(let began): .compared(since: isWanted ? nil : began)
        case _ where !catchUp && !isOnce && !isGoingOn: .renewed(since: last)
        case .fresh, .resumed: .compared(since: nil)
        case .reselected(let last): .compared(since: isOnce ? nil : last)
        }
    }
}

extension MountRecord {
    /// The mount points through which files of the roots are seen, or may be.
    package static func present(for roots: [PathBytes], in fileSystem: any FileSystem) -> [MountRecord] {
        let points = fileSystem.mountPoints
        var wanted: Set<PathBytes> = []
        for root in roots {
            // A root may be a link, or not be there yet.
            var real = root
            while fileSystem.resolve(real) == nil, real.parent != real { real = real.parent }
            guard let real = fileSystem.resolve(real) else { continue }
            wanted.formUnion(points.filter { $0.isInside(real) })
            if let holder = points.filter({ real.isInside($0) }).max(by: { $0.bytes.count < $1.bytes.count }) {
                wanted.insert(holder)
            }
        }
        return wanted.sorted().compactMap { point in
            guard case .present(let snapshot) = fileSystem.stat(point) else { return nil }
            return MountRecord(point: point, identity: snapshot.identity)
        }
    }

    /// Whether what was mounted there is not to be seen there now.
    package func isAway(in fileSystem: any FileSystem) -> Bool {
        // The first file system is always there, be it another one in each container.
        guard point != "/" else { return false }
        guard fileSystem.mountPoints.contains(point), case .present(let snapshot) = fileSystem.stat(point) else {
            return true
        }
        // The number of the device may be another one after a boot.
        return snapshot.identity.inode != identity.inode || snapshot.identity.birth != identity.birth
    }
}
