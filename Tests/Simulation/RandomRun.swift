import FileEvents
import Handling
import Rules
import TestKit

/// A run whose steps are drawn from a seed.
package struct RandomRun {
    package let seed: UInt64
    package let rules: [SimulatedRule]
    /// Whether the kernel tells of some things late.
    package let delays: Bool
    /// Whether files have birth times.
    package let hasBirth: Bool
    /// The steps as they were done; they repeat the run.
    package private(set) var steps: [Step] = []
    /// What is wrong; nil if nothing is.
    package private(set) var fault: String?

    /// Stands for all that actions received and did.
    package private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325

    private let checksInvariant: Bool
    private var dice: SeededGenerator
    /// The last rename, which may be undone.
    private var renamed: (from: PathBytes, to: PathBytes)?
    private static let names: [PathBytes] = ["x/", "y/", ""].flatMap { directory in
        ["a", "b", "c", "d"].map { PathBytes(directory + $0) }
    }

    /// Draws a run and does it.
    ///
    /// - Parameters:
    ///   - seed: What it is drawn from.
    ///   - count: How many steps are drawn.
    ///   - checksInvariant: See ``SimulatedRun/checksInvariant``.
    package init(seed: UInt64, steps count: Int, checksInvariant: Bool = false) {
        self.checksInvariant = checksInvariant
        self.seed = seed
        dice = SeededGenerator(seed: seed)
        var rules = [Self.rule(&dice, "rule")]
        if dice.chance(0.25) { rules.append(Self.rule(&dice, "other")) }
        // What one rule takes away, another one never sees: nothing is promised of that.
        if rules.count > 1, rules.contains(where: { $0.steps.contains { $0 == .take || $0 == .edit } }) {
            rules.removeLast()
        }
        self.rules = rules
        delays = dice.chance(0.5)
        hasBirth = dice.chance(0.93)
        let run = SimulatedRun(rules, seed: seed, delays: delays, hasBirth: hasBirth)
        run.checksInvariant = checksInvariant
        for _ in 0..<count {
            guard run.record.fault == nil else { break }
            let step = next(run)
            if run.take(step) { steps.append(step) }
        }
        fault = run.run([])
        for byte in run.record.history.joined(separator: "\n").utf8 {
            digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3
        }
    }

    private static func rule(_ dice: inout SeededGenerator, _ name: String) -> SimulatedRule {
        var rule = SimulatedRule()
        rule.name = name
        rule.steps =
            dice.pick([
                [.read], [.read], [.read], [.read], [.read], [.read], [.take, .note], [.take], [.edit], [.read, .note],
                [.edit, .note], [.copy], [.copy, .note],
            ])
        if dice.chance(0.5) {
            let kinds: [EventMask] = [.created, .modified, .deleted, .moved, .attributes]
            var mask: EventMask = []
            for kind in kinds where dice.chance(0.6) { mask.formUnion(kind) }
            rule.events = mask.isEmpty ? .created : mask
        }
        if rule.steps.contains(.take) {
            rule.events = dice.chance(0.5) ? [.created, .modified] : [.created, .modified, .attributes]
        }
        if dice.chance(0.4) { rule.refusedSize = dice.pick([40, 50]) }
        if dice.chance(0.5) { rule.outside = ["b", "y/b"] }
        rule.isPolled = dice.chance(0.15)
        rule.catchUp = dice.chance(0.85)
        if dice.chance(0.2) { rule.concurrency = 1 }
        if dice.chance(0.1) { rule.batch = 3 }
        if dice.chance(0.1) { rule.cooldown = .seconds(1) }
        if dice.chance(0.1) { rule.onFailure = [.note] }
        // With `queue`, an action reads the file after the event, and one that changes it feeds itself.
        if dice.chance(0.15) { rule.whileBusy = .restart }
        return rule
    }

    private mutating func next(_ run: SimulatedRun) -> Step {
        let roll = dice.fraction()
        switch roll {
        case ..<0.33: return world(run)
        case ..<0.40: return dice.chance(0.5) ? .drain : .read
        case ..<0.50: return .wait(milliseconds: dice.pick([3, 20, 60, 110, 250]))
        case ..<0.56: return .turn
        case ..<0.58: return .settle
        case ..<0.70: return .lease
        case ..<0.90: return act(run)
        case ..<0.92: return dice.chance(0.5) ? .kill : .crash
        case ..<0.925: return .halt
        case ..<0.94: return .boot
        case ..<0.945: return .retry
        case ..<0.95: return .rescan
        case ..<0.96: return .wait(milliseconds: 1_500)
        case ..<0.97: return .poll
        case ..<0.985: return .list(nil)
        case ..<0.988: return .hold
        case ..<0.993: return .release
        case ..<0.996: return .reload
        default: return .hint(dice.pick(Self.names))
        }
    }

    private mutating func act(_ run: SimulatedRun) -> Step {
        let stages = Set(run.activities.map(\.stage))
        guard !stages.isEmpty else { return .lease }
        let stage = dice.pick([.leased, .begun, .done].filter(stages.contains))
        let path = dice.pick(run.activities.filter { $0.stage == stage }).invocations.first?.job.event.path
        let chosen = path.map { run.world.name(of: $0) }
        switch stage {
        case .leased: return .begin(nil)
        case .begun: return dice.chance(0.85) ? .run(chosen) : .miss(chosen)
        case .done: return dice.chance(0.85) ? .ok(chosen) : dice.chance(0.8) ? .fail(chosen) : .giveUp(chosen)
        }
    }

    private mutating func world(_ run: SimulatedRun) -> Step {
        let there = run.world.files(below: run.world.base).keys.map { run.world.name(of: $0) }.sorted()
        let name = dice.pick(Self.names)
        let isHintLost = dice.chance(0.1) && !run.rules.contains(where: \.isPolled)
        func step(_ operation: Operation) -> Step { .world(operation, isHintLost: isHintLost) }
        guard !there.isEmpty else { return step(.create(name)) }
        let file = dice.pick(there)
        if let last = renamed, there.contains(last.to), dice.chance(0.2) {
            renamed = nil
            return step(.rename(last.to, last.from))
        }
        switch dice.below(14) {
        case 0: return step(.create(name))
        case 1: return step(.write(file))
        case 2: return step(.replace(file))
        case 3, 4:
            renamed = (file, name)
            return step(.rename(file, name))
        case 5: return step(.delete(file))
        case 6: return step(.chmod(file))
        case 7:
            // An action that changes a file by one name changes it by all.
            return run.rules.contains { $0.steps.contains(.edit) || $0.steps.contains(.copy) }
                ? step(.touch(file)) : step(.link(file, name))
        case 8: return step(.swap(file, dice.pick(there)))
        case 9:
            let isThere = there.contains { $0.bytes.starts(with: "y/".utf8) }
            return isThere ? step(.folder("y/", "z/")) : step(.folder("x/", "y/"))
        case 10:
            let directory = dice.pick(["x/", "y/", "x/e/", "z/"] as [PathBytes])
            let operations: [Operation] = [
                .mkdir(directory), .rmdir(directory), .swap("x/", "y/"),
                .mount(directory), .umount(directory), .symlink(name, "x/a"), .touch(file),
            ]
            // The kernel does not tell of the mode of a mounted directory.
            let modes: [Operation] = run.world.mountedOnce.isEmpty ? [.hide(directory), .show(directory)] : []
            return step(dice.pick(operations + modes))
        case 11: return step(.touch(file))
        default:
            return run.world.isBeingWritten(run.world.base.appending(file.bytes))
                ? step(.close(file)) : step(.open(file))
        }
    }

    /// Leaves out steps while the run still fails in the same way, until none can be spared.
    ///
    /// - Returns: The steps that matter.
    package func shrunk() -> [Step] {
        guard let fault else { return [] }
        let kind = Self.kind(of: fault)
        var steps = steps
        func fails(_ steps: [Step]) -> Bool {
            let run = SimulatedRun(rules, seed: seed, delays: delays, hasBirth: hasBirth)
            run.checksInvariant = checksInvariant
            return run.run(steps).map { Self.kind(of: $0) == kind } ?? false
        }
        guard fails(steps) else { return steps }
        var size = max(1, steps.count / 2)
        while true {
            var isShorter = false
            var start = 0
            while start < steps.count {
                var fewer = steps
                fewer.removeSubrange(start..<min(start + size, steps.count))
                if fails(fewer) {
                    steps = fewer
                    isShorter = true
                } else {
                    start += size
                }
            }
            if size == 1, !isShorter { return steps }
            if !isShorter || size > 1 { size = max(1, size / 2) }
        }
    }

    /// A fault without the names and numbers in it, by which faults of one kind are told apart.
    package static func kind(of fault: String) -> String {
        String(
            fault.split(separator: " ").filter { !$0.contains { $0.isNumber || $0 == "/" } && $0.count > 1 }
                .joined(separator: " ").prefix(40))
    }
}

extension SeededGenerator {
    mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }
    mutating func chance(_ part: Double) -> Bool { fraction() < part }
}
