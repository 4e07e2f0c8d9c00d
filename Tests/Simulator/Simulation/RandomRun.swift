import FileEvents
import Rules
import System
import TestKit

/// A run whose steps are drawn from a seed.
package struct RandomRun {
    package let seed: UInt64
    package private(set) var rules: [SimulatedRule]
    /// Whether the kernel delays some events.
    package let delays: Bool
    /// Whether files have birth times.
    package let hasBirth: Bool
    /// The performed steps, which repeat the run.
    package private(set) var steps: [Step] = []
    /// The error; nil if there is none.
    package private(set) var failure: String?

    /// A digest of everything that actions received and did.
    package private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325

    private let isFaulty: Bool
    private var dice: SeededGenerator
    /// The generator of the operations that happen between two inspections of files by the program.
    private var races: SeededGenerator
    private var habits: Habits
    /// The last rename, which may be undone.
    private var renamed: (from: PathBytes, to: PathBytes)?
    /// The paths of the last operation.
    private var recent: [PathBytes] = []
    /// The kinds of the next steps, in reverse order.
    private var coming: [Habits.StepKind] = []

    /// Draws a run and performs it.
    ///
    /// - Parameters:
    ///   - seed: The seed.
    ///   - count: The number of steps to draw.
    ///   - isFaulty: Whether the watcher reports only new paths.
    package init(seed: UInt64, steps count: Int, isFaulty: Bool = false) {
        self.isFaulty = isFaulty
        self.seed = seed
        dice = SeededGenerator(seed: seed)
        races = SeededGenerator(seed: seed &+ 2 << 32)
        var rules = [Self.rule(&dice, "rule")]
        if dice.chance(0.25) { rules.append(Self.rule(&dice, "other")) }
        // If one rule takes a file away, another may never see it: nothing is guaranteed then.
        if rules.count > 1, rules.contains(where: { $0.steps.contains { $0 == .take || $0 == .edit } }) {
            rules.removeLast()
        }
        if rules.count > 1, !rules.contains(where: \.isTree), dice.chance(0.3) {
            rules[0].stops = true
            rules[0].events = .differences
        }
        if rules.contains(where: \.follows) {
            // A file that is replaced can't be distinguished from one that has grown.
            for index in rules.indices { rules[index].steps = rules[index].steps.map { $0 == .copy ? .read : $0 } }
        }
        self.rules = rules
        delays = dice.chance(0.5)
        hasBirth = dice.chance(0.93)
        habits = Habits(&dice, rules)
        let run = makeRun()
        for _ in 0..<count {
            guard run.failure == nil else { break }
            let step = next(run)
            if run.take(step) { steps.append(step) }
        }
        failure = run.run([])
        for byte in run.history.joined(separator: "\n").utf8 {
            digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3
        }
    }

    /// Creates a run that has not started.
    package func makeRun() -> SimulatedRun {
        SimulatedRun(rules, seed: seed, delays: delays, hasBirth: hasBirth, isFaulty: isFaulty)
    }

    private static func rule(_ dice: inout SeededGenerator, _ name: String) -> SimulatedRule {
        var rule = SimulatedRule()
        rule.name = name
        // Plain rules have the strongest guarantees.
        if dice.chance(0.3) { return rule }
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
        if dice.chance(0.15) { rule.whileBusy = .restart }
        if rule.steps == [.read] || rule.steps == [.read, .note] { Self.addKind(&dice, &rule) }
        return rule
    }

    /// Gives the rule one of the special features.
    ///
    /// With these, an action that changes its input would trigger itself or remove files that the rest of a group
    /// waits for.
    private static func addKind(_ dice: inout SeededGenerator, _ rule: inout SimulatedRule) {
        switch dice.below(16) {
        case 0:
            rule.group = ["*.x", "*.y"]
            rule.events = [.created, .modified]
            (rule.batch, rule.whileBusy, rule.steps) = (nil, .coalesce, [.read])
        case 1:
            rule.isTree = true
            (rule.events, rule.refusedSize, rule.whileBusy) = (.differences, nil, .coalesce)
        case 2:
            rule.follows = true
            (rule.events, rule.refusedSize, rule.batch, rule.whileBusy) = (.differences, nil, nil, .coalesce)
        case 3: rule.opens = 9 * 60 + 1
        case 4: rule.refusesContent = true
        default: break
        }
    }

    private mutating func next(_ run: SimulatedRun) -> Step {
        let kind = coming.popLast() ?? habits.steps.pick(&dice)
        if coming.isEmpty, kind == .world, dice.chance(habits.burst) { coming = [.world] }
        // Changes while the program resumes interrupted work.
        if kind == .kill, dice.chance(habits.afterKill) { coming = [.settle, .world, .world, .lease] }
        switch kind {
        case .world:
            let step = world(run)
            guard case .world(let operation, isHintLost: false) = step, seed % 3 == 0, races.chance(0.3),
                // A file that is visible under two names is read under both.
                !rules.contains(where: \.follows)
            else { return step }
            switch operation {
            // A file may be opened between the last inspection and the lease.
            case .open: return step
            // A file system may be mounted there by then.
            case .hide, .show: return step
            default: break
            }
            coming = [races.pick([.turn, .settle, .lease, .lease, .act])]
            return .race(operation, inspections: races.below(races.pick([6, 40])))
        case .read: return dice.chance(0.5) ? .drain : .read
        case .wait: return .wait(milliseconds: dice.pick([3, 20, 60, 110, 250]))
        case .turn: return .turn
        case .settle: return .settle
        case .lease: return .lease
        case .act: return act(run)
        // Kills matter most while an action runs.
        case .kill where run.actions.isEmpty && dice.chance(0.7): return .lease
        case .kill: return dice.chance(0.5) ? .kill : .crash
        case .halt: return .halt
        case .boot: return .boot
        case .retry: return .retry
        case .rescan: return .rescan
        case .longWait: return .wait(milliseconds: 1_500)
        case .poll: return .poll
        case .list: return .list(nil)
        case .hold: return .hold
        case .release: return .release
        case .reload: return .reload
        case .hint: return .hint(dice.pick(habits.names))
        }
    }

    private mutating func act(_ run: SimulatedRun) -> Step {
        let stages = Set(run.actions.map(\.stage))
        guard !stages.isEmpty else { return .lease }
        let stage = dice.pick([.leased, .started, .done].filter(stages.contains))
        let path = dice.pick(run.actions.filter { $0.stage == stage }).path
        let chosen = path.map { run.world.name(of: $0) }
        switch stage {
        case .leased: return .begin(nil)
        case .started: return dice.chance(0.85) ? .run(chosen) : .miss(chosen)
        case .done: return dice.chance(0.85) ? .ok(chosen) : dice.chance(0.8) ? .fail(chosen) : .giveUp(chosen)
        }
    }

    private mutating func world(_ run: SimulatedRun) -> Step {
        let there = run.world.files(below: run.world.base).keys.map { run.world.name(of: $0) }.sorted()
        let known = recent
        func near(_ all: [PathBytes], _ dice: inout SeededGenerator, _ focus: Double) -> PathBytes {
            let near = known.filter(all.contains)
            return dice.pick(near.isEmpty || !dice.chance(focus) ? all : near)
        }
        let follows = run.rules.contains(where: \.follows)
        let name = near(habits.names, &dice, habits.focus)
        let isHintLost = dice.chance(0.1) && !run.rules.contains(where: \.isPolled)
        func step(_ operation: Operation) -> Step {
            recent = operation.paths
            return .world(operation, isHintLost: isHintLost)
        }
        guard !there.isEmpty else { return step(.create(name)) }
        let file = near(there, &dice, habits.focus)
        if let last = renamed, there.contains(last.to), dice.chance(0.2) {
            renamed = nil
            return step(.rename(last.to, last.from))
        }
        switch habits.operations.pick(&dice) {
        // A file that is replaced can't be distinguished from one that has grown.
        case .write where follows, .open where follows: return step(.append(file))
        case .create: return step(.create(name))
        case .write: return step(.write(file))
        case .replace: return step(.replace(file))
        case .rename:
            renamed = (file, name)
            return step(.rename(file, name))
        case .delete: return step(.delete(file))
        case .chmod: return step(.chmod(file))
        case .link:
            // An action that changes a file through one name changes all names; text is reported per name.
            return run.rules.contains { $0.steps.contains(.edit) || $0.steps.contains(.copy) || $0.follows }
                ? step(.touch(file)) : step(.link(file, name))
        case .swap: return step(.swap(file, dice.pick(there)))
        case .moveDirectory:
            let isThere = there.contains { $0.bytes.starts(with: "y/".utf8) }
            return isThere ? step(.directory("y/", "z/")) : step(.directory("x/", "y/"))
        case .directory:
            let directory = dice.pick(["x/", "y/", "x/e/", "z/"] as [PathBytes])
            let operations: [Operation] = [
                .mkdir(directory), .rmdir(directory), .swap("x/", "y/"),
                .mount(directory), .umount(directory), .symlink(name, "x/a"), .touch(file),
            ]
            // The kernel does not report the mode of a mounted directory.
            let modes: [Operation] = run.world.mountedOnce.isEmpty ? [.hide(directory), .show(directory)] : []
            return step(dice.pick(operations + modes))
        case .touch: return step(.touch(file))
        case .open:
            return run.world.isBeingWritten(run.world.base.appending(file.bytes))
                ? step(.close(file)) : step(.open(file))
        }
    }

    /// Removes steps while the run still fails in the same way, until none can be removed.
    ///
    /// - Returns: The necessary steps.
    package func shrunk() -> [Step] {
        guard let failure else { return [] }
        let kind = Self.kind(of: failure)
        var steps = steps
        func fails(_ steps: [Step]) -> Bool {
            let run = makeRun()
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

    /// Returns an error without its names and numbers, which identifies its kind.
    package static func kind(of failure: String) -> String {
        String(
            failure.split(separator: " ").filter { !$0.contains { $0.isNumber || "/:".contains($0) } && $0.count > 1 }
                .joined(separator: " ").prefix(40))
    }
}

extension SeededGenerator {
    mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }
    mutating func chance(_ part: Double) -> Bool { fraction() < part }
}
