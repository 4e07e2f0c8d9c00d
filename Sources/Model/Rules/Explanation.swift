import FileEvents
package import FileWatching
package import Globbing
import Settling
package import System

/// What a rule does with one path, and why: `alight explain`.
///
/// It is worked out from the rule and from what was seen of the disk, in the
/// order in which things would stand in the way: the name, the folders on the
/// way, the type, and then the rule itself.
package struct Explanation: Sendable {
    /// Why the rule leaves the path.
    package enum Reason: Sendable, Hashable {
        case name(PathFilter.Refusal)
        /// It lies below a symbolic link, which is not followed.
        case belowLink(PathBytes)
        case type(FileType)
        /// The file system does not say what is there.
        case unreadable(errno: Int32)
        /// The rule is told only of the watching, not of paths.
        case noEvents
        case rootMissing(PathBytes)
        /// The root is there and no folder.
        case rootNotFolder(PathBytes, FileType)
        case disabled
        /// A condition is against it, for that reason.
        case condition(String)
        /// It is not told of such an event.
        case event(String)
        /// A rule that comes before it takes the event, and lets later ones see nothing of it.
        case stopped(by: String)
    }

    /// Where the rule finds the path.
    package struct Place: Sendable, Hashable {
        package var root: PathBytes
        /// The path below the root.
        package var relative: PathBytes
        /// The folder above it that is one unit with it, and of which the rule is told instead.
        package var unit: PathBytes?

        package init(root: PathBytes, relative: PathBytes, unit: PathBytes? = nil) {
            self.root = root
            self.relative = relative
            self.unit = unit
        }
    }

    /// What would keep an action from running now.
    package enum Hold: String, Sendable, Hashable {
        /// A process has it open for writing.
        case writer
        /// A process holds a write lock on it.
        case lock
        /// A companion shows that it is still being transferred.
        case partial
        /// Whether it is open for writing can't be told, so two looks a second apart have to agree.
        case unknown
    }

    package enum Verdict: Sendable, Hashable {
        case taken(Place)
        case left(Reason)
    }

    package var rule: Rule
    package var path: PathBytes
    /// What is there; nil for nothing, and when that can't be seen.
    package var type: FileType?
    package var verdict: Verdict
    /// Why the root is polled; nil when the kernel tells of changes, or when no root holds the path.
    package var polling: PollingReason?
    package var holds: [Hold]
    /// Why it can't be told whether the rule's conditions hold; nil when it can.
    package var untoldCondition: String?
    /// What was found that makes the rule's conditions hold, each with what is wanted.
    package var findings: [String] = []

    /// Whether the rule acts on the path.
    package var isTaken: Bool {
        if case .taken = verdict { true } else { false }
    }
}

extension Explanation {
    /// What was seen of a path, and of the folders above it.
    package struct Sights: Sendable {
        package var path: DiskProbe.Sight
        package var writers: DiskProbe.Holders
        package var locks: DiskProbe.Holders
        /// The companion that shows that the file is still being transferred; nil for none.
        package var companion: PathBytes?
        /// What there is at a folder, without following a link.
        package var folder: @Sendable (PathBytes) -> DiskProbe.Sight
        /// What there is at a root, which may be a link to a folder.
        package var root: @Sendable (PathBytes) -> DiskProbe.Sight
        /// Why a folder has to be polled; nil when the kernel tells of all that happens there.
        package var polling: @Sendable (PathBytes) -> PollingReason?
        /// What the path holds; asked for only when a condition depends on it.
        package var content: @Sendable () -> ConditionFacts.Content = { .untold("nobody has looked at its content") }
        /// The time, against which ages are counted.
        package var now = Timestamp(seconds: 0, nanoseconds: 0)

        package init(
            path: DiskProbe.Sight, writers: DiskProbe.Holders = .nobody, locks: DiskProbe.Holders = .nobody,
            folder: @escaping @Sendable (PathBytes) -> DiskProbe.Sight,
            root: @escaping @Sendable (PathBytes) -> DiskProbe.Sight,
            polling: @escaping @Sendable (PathBytes) -> PollingReason?
        ) {
            self.path = path
            self.writers = writers
            self.locks = locks
            self.folder = folder
            self.root = root
            self.polling = polling
        }
    }

    /// Works out what a rule does with an absolute, normalised path.
    ///
    /// - Parameters:
    ///   - rule: The rule.
    ///   - isEnabled: Whether it is in force.
    ///   - path: The path, under the name that the rule has for it.
    ///   - sights: What there is on the disk.
    package init(_ rule: Rule, isEnabled: Bool, path: PathBytes, sights: Sights) {
        self.rule = rule
        self.path = path
        holds = []
        if case .present(let snapshot) = sights.path { type = snapshot.type }
        let place: Place
        if let root = rule.root(taking: path) {
            place = Place(root: root, relative: PathBytes(path.relative(to: root) ?? []))
        } else if let unit = rule.filter.trees(holding: path.bytes).first.map({ PathBytes($0) }),
            let root = rule.root(taking: unit)
        {
            place = Place(root: root, relative: PathBytes(path.relative(to: root) ?? []), unit: unit)
        } else {
            guard let refusal = rule.filter.refusal(of: path.bytes) else {
                preconditionFailure("a rule has a glob, and what it leaves has a reason")
            }
            verdict = .left(.name(refusal))
            let root = PathBytes(refusal.glob.root)
            if path.isInside(root) {
                polling = Self.polling([rule], Self.folders(from: root, to: path), sights.polling)
            }
            return
        }
        polling = Self.polling([rule], Self.folders(from: place.root, to: path), sights.polling)
        if let reason = Self.obstacle(rule, path, place, sights) ?? (isEnabled ? nil : .disabled) {
            verdict = .left(reason)
        } else {
            let (answer, findings) = Self.conditions(rule, path, place, sights)
            if case .fails(let reason) = answer {
                verdict = .left(.condition(reason))
                return
            }
            if case .untold(let reason) = answer { untoldCondition = reason }
            self.findings = findings
            verdict = .taken(place)
            holds = Self.holds(rule, sights, isPolled: polling != nil)
        }
    }

    /// The first thing on the disk, or in the rule, that keeps a path of the right name from being told.
    private static func obstacle(_ rule: Rule, _ path: PathBytes, _ place: Place, _ sights: Sights) -> Reason? {
        switch sights.root(place.root) {
        case .absent: return .rootMissing(place.root)
        case .present(let snapshot) where snapshot.type != .directory:
            return .rootNotFolder(place.root, snapshot.type)
        case .present, .unreadable: break
        }
        for folder in folders(from: place.root, to: path).dropFirst() {
            if case .present(let snapshot) = sights.folder(folder), snapshot.type == .symlink {
                return .belowLink(folder)
            }
        }
        switch sights.path {
        case .present(let snapshot):
            if place.unit == nil, !rule.types.contains(snapshot.type) { return .type(snapshot.type) }
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .absent: break
        }
        return rule.events.subtracting(.lifecycle).isEmpty ? .noEvents : nil
    }

    /// Whether the rule's conditions hold at this moment.
    private static func conditions(
        _ rule: Rule, _ path: PathBytes, _ place: Place, _ sights: Sights
    ) -> (ConditionAnswer, findings: [String]) {
        // A unit is judged by its own facts, which nobody has looked at here.
        guard let condition = rule.condition, place.unit == nil else { return (.holds, []) }
        var facts = ConditionFacts(path: path, root: place.root, snapshot: nil, now: sights.now)
        if case .present(let snapshot) = sights.path { facts.snapshot = snapshot }
        let isThere = facts.snapshot != nil
        let answer = condition.answer(&facts) {
            isThere ? sights.content() : .untold("there is nothing to look at")
        }
        return (answer, answer == .holds ? condition.sights(facts) : [])
    }

    /// Why a root is polled that these rules have; nil when the kernel tells of changes.
    package static func polling(
        _ rules: [Rule], _ folders: [PathBytes], _ reason: (PathBytes) -> PollingReason?
    ) -> PollingReason? {
        if rules.contains(where: { $0.backend == .poll }) { return .asked }
        return rules.contains { $0.backend == .auto } ? folders.lazy.compactMap(reason).first : nil
    }

    private static func holds(_ rule: Rule, _ sights: Sights, isPolled: Bool) -> [Hold] {
        guard case .present(let snapshot) = sights.path, snapshot.type == .file else { return [] }
        var holds: [Hold] = []
        let waits = rule.settle.waitsForHolder(of: snapshot, at: sights.now)
        if rule.settle.writers == .wait, sights.writers != .nobody {
            if sights.writers == .somebody, waits {
                holds.append(.writer)
            } else if rule.settle.stable(isPolled: isPolled) == nil {
                holds.append(.unknown)
            }
        }
        if rule.settle.locks == .wait, waits, sights.locks == .somebody { holds.append(.lock) }
        if rule.settle.partial == .wait, sights.companion != nil { holds.append(.partial) }
        return holds
    }

    /// The root and the folders below it on the way to the path, without the path.
    package static func folders(from root: PathBytes, to path: PathBytes) -> [PathBytes] {
        var folders: [PathBytes] = []
        var folder = path.parent
        while folder != root, folder.isInside(root) {
            folders.append(folder)
            folder = folder.parent
        }
        return [root] + folders.reversed()
    }
}
