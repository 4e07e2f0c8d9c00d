package import FileEvents
package import Globbing
package import System

/// An explanation of what a rule does with one path, and why: `alight explain`.
///
/// It is computed from the rule and the state of the disk, in the order of the checks: the name, the directories of the
/// path, the type, and then the rule itself.
package struct Explanation: Sendable {
    /// The reason why the rule does not match the path.
    package enum Reason: Sendable, Hashable {
        case name(PathFilter.Refusal)
        /// The path is below a symbolic link, which is not followed.
        case belowLink(PathBytes)
        case type(FileType)
        /// The file system returned an error.
        case unreadable(errno: Int32)
        /// The rule receives only events about the watching, not about paths.
        case noEvents
        case rootMissing(PathBytes)
        /// The root exists and is not a directory.
        case rootNotDirectory(PathBytes, FileType)
        case disabled
        /// A condition fails, for this reason.
        case condition(String)
        /// The rule does not receive such an event.
        case event(String)
        /// An earlier rule matches the event, and stops later rules from receiving it.
        case stopped(by: String)
    }

    /// The location of the path in the rule.
    package struct Location: Sendable, Hashable {
        package var root: PathBytes
        /// The path below the root.
        package var relative: PathBytes
        /// The directory above the path that forms a unit with it, and that the rule receives instead.
        package var unit: PathBytes?

        package init(root: PathBytes, relative: PathBytes, unit: PathBytes? = nil) {
            (self.root, self.relative, self.unit) = (root, relative, unit)
        }
    }

    /// A reason that would delay an action now.
    package enum WaitReason: String, Sendable, Hashable {
        /// A process has the file open for writing.
        case writer
        /// A process holds a write lock on the file.
        case lock
        /// A companion file shows that the transfer is not complete.
        case partial
        /// Whether the file is open for writing is unknown, so two checks a second apart must agree.
        case unknown
    }

    package enum Verdict: Sendable, Hashable {
        case matched(Location)
        case unmatched(Reason)
    }

    package var rule: Rule
    package var path: PathBytes
    /// The type of the file; nil if it does not exist or cannot be read.
    package var type: FileType?
    package var verdict: Verdict
    /// The reason why the root is polled; nil if the kernel reports changes, or if no root contains the path.
    package var polling: PollingReason?
    package var holds: [WaitReason] = []
    /// The reason why the rule's conditions cannot be evaluated; nil if they can.
    package var unknownCondition: String?
    /// The values that make the rule's conditions hold, each with the expected value.
    package var findings: [String] = []

    /// Whether the rule matches the path.
    package var isMatch: Bool { if case .matched = verdict { true } else { false } }
}

extension Explanation {
    /// The observed state of a path and of the directories above it.
    package struct Inspection: Sendable {
        package var path: DiskProbe.StatResult
        package var writers: DiskProbe.Holders
        package var locks: DiskProbe.Holders
        /// The companion file that shows that the transfer is not complete; nil for none.
        package var companion: PathBytes?
        /// Returns the metadata of a directory without following a link.
        package var directory: @Sendable (PathBytes) -> DiskProbe.StatResult
        /// Returns the metadata of a root, which may be a link to a directory.
        package var root: @Sendable (PathBytes) -> DiskProbe.StatResult
        /// Returns the reason why a directory must be polled; nil if the kernel reports all changes there.
        package var polling: @Sendable (PathBytes) -> PollingReason?
        /// Returns the content type; called only if a condition depends on it.
        package var content: @Sendable () -> ConditionInput.Content = { .unknown("its content was not checked") }
        /// The current time, which ages are relative to.
        package var now = Timestamp(seconds: 0, nanoseconds: 0)

        package init(
            path: DiskProbe.StatResult, writers: DiskProbe.Holders = .free, locks: DiskProbe.Holders = .free,
            directory: @escaping @Sendable (PathBytes) -> DiskProbe.StatResult,
            root: @escaping @Sendable (PathBytes) -> DiskProbe.StatResult,
            polling: @escaping @Sendable (PathBytes) -> PollingReason?
        ) {
            (self.path, self.writers, self.locks, self.directory) = (path, writers, locks, directory)
            (self.root, self.polling) = (root, polling)
        }
    }

    /// Creates an explanation of what a rule does with an absolute, normalized path.
    ///
    /// - Parameters:
    ///   - rule: The rule.
    ///   - isEnabled: Whether the rule is enabled.
    ///   - path: The path, with the name that the rule uses for it.
    ///   - inspection: The observed state of the disk.
    package init(_ rule: Rule, isEnabled: Bool, path: PathBytes, inspection: Inspection) {
        (self.rule, self.path) = (rule, path)
        let snapshot = inspection.path.snapshot
        type = snapshot?.type
        let unit =
            rule.root(matching: path) == nil ? rule.filter.trees(holding: path.bytes).first.map { PathBytes($0) } : nil
        guard let root = rule.root(matching: unit ?? path) else {
            guard let refusal = rule.filter.refusal(of: path.bytes) else {
                preconditionFailure("a rule has a glob, and what it leaves has a reason")
            }
            verdict = .unmatched(.name(refusal))
            let root = PathBytes(refusal.glob.root)
            if path.isInside(root) {
                polling = Self.polling([rule], Self.directories(from: root, to: path), inspection.polling)
            }
            return
        }
        polling = Self.polling([rule], Self.directories(from: root, to: path), inspection.polling)
        let location = Location(root: root, relative: PathBytes(path.relative(to: root) ?? []), unit: unit)
        if let reason = Self.obstacle(rule, path, location, inspection) ?? (isEnabled ? nil : .disabled) {
            verdict = .unmatched(reason)
            return
        }
        // A unit is evaluated with its own metadata, which is not read here.
        if let condition = rule.condition, unit == nil {
            var input = ConditionInput(path: path, root: root, snapshot: snapshot, now: inspection.now)
            let answer = condition.answer(&input) {
                snapshot == nil ? .unknown("the file does not exist") : inspection.content()
            }
            switch answer {
            case .holds: findings = condition.inspection(input)
            case .fails(let reason):
                // Its conditions may hold when the file is old enough.
                let event = snapshot.map {
                    FileEvent(kind: .created, path: path, root: root, snapshot: $0, origin: .scan, time: inspection.now)
                }
                guard event.flatMap(rule.opening) != nil else {
                    verdict = .unmatched(.condition(reason))
                    return
                }
            case .unknown(let reason): unknownCondition = reason
            case .needsContent, .unreadable: break
            }
        }
        verdict = .matched(location)
        holds = Self.holds(rule, inspection, isPolled: polling != nil)
    }

    /// Returns the first reason on the disk, or in the rule, that prevents an event for a path with a matching name.
    private static func obstacle(_ rule: Rule, _ path: PathBytes, _ location: Location, _ inspection: Inspection)
        -> Reason?
    {
        switch inspection.root(location.root) {
        case .absent: return .rootMissing(location.root)
        case .present(let snapshot) where snapshot.type != .directory:
            return .rootNotDirectory(location.root, snapshot.type)
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .present: break
        }
        for parent in directories(from: location.root, to: path).dropFirst() {
            if inspection.directory(parent).snapshot?.type == .symlink { return .belowLink(parent) }
        }
        switch inspection.path {
        case .present(let snapshot):
            if location.unit == nil, !rule.types.contains(snapshot.type) { return .type(snapshot.type) }
        case .unreadable(let errno): return .unreadable(errno: errno)
        case .absent: break
        }
        return rule.events.subtracting(.lifecycle).isEmpty ? .noEvents : nil
    }

    /// Returns the reason why a root of these rules is polled; nil if the kernel reports changes.
    package static func polling(
        _ rules: [Rule], _ directories: [PathBytes], _ reason: (PathBytes) -> PollingReason?
    ) -> PollingReason? {
        if rules.contains(where: { $0.backend == .poll }) { return .asked }
        return rules.contains { $0.backend == .auto } ? directories.lazy.compactMap(reason).first : nil
    }

    private static func holds(_ rule: Rule, _ inspection: Inspection, isPolled: Bool) -> [WaitReason] {
        guard let snapshot = inspection.path.snapshot, snapshot.type == .file else { return [] }
        var holds: [WaitReason] = []
        let waits = rule.settle.waitsForHolder(of: snapshot, at: inspection.now)
        if rule.settle.writers == .wait, inspection.writers != .free {
            if inspection.writers == .held, waits {
                holds.append(.writer)
            } else if rule.settle.stable(isPolled: isPolled) == nil {
                holds.append(.unknown)
            }
        }
        if rule.settle.locks == .wait, waits, inspection.locks == .held { holds.append(.lock) }
        if rule.settle.partial == .wait, inspection.companion != nil { holds.append(.partial) }
        return holds
    }

    /// Returns the root and the directories below it that lead to the path, without the path.
    package static func directories(from root: PathBytes, to path: PathBytes) -> [PathBytes] {
        var directories: [PathBytes] = []
        var directory = path.parent
        while directory != root, directory.isInside(root) {
            directories.append(directory)
            directory = directory.parent
        }
        return [root] + directories.reversed()
    }
}
