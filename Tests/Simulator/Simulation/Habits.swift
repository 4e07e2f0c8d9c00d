import System
import TestKit

/// The frequencies from which the steps of one run are drawn.
///
/// Half of the runs use some kinds more often and others never, so that they reach states that a uniform mixture
/// does not.
struct Habits {
    enum StepKind {
        case world, read, wait, turn, settle, lease, act, kill, halt, boot, retry, rescan, longWait, poll, list, hold,
            release, reload, hint
    }

    enum OperationKind {
        case create, write, replace, rename, delete, chmod, link, swap, moveDirectory, directory, touch, open
    }

    var names: [PathBytes]
    var steps = Weighted<StepKind>([
        .world: 165, .read: 35, .wait: 50, .turn: 30, .settle: 30, .lease: 60, .act: 100, .kill: 15, .halt: 3,
        .boot: 8, .retry: 3, .rescan: 3, .longWait: 5, .poll: 5, .list: 7, .hold: 2, .release: 3, .reload: 1,
        .hint: 2,
    ])
    var operations = Weighted<OperationKind>([
        .create: 1, .write: 1, .replace: 1, .rename: 2, .delete: 1, .chmod: 1, .link: 1, .swap: 1, .moveDirectory: 1,
        .directory: 1, .touch: 1, .open: 2,
    ])
    /// How often an operation immediately follows another.
    var burst = 0.0
    /// How often a kill is followed by leases, operations and time to settle.
    var afterKill = 0.0
    /// How often an operation uses a path of the previous one.
    var focus = 0.0

    init(_ dice: inout SeededGenerator, _ rules: [SimulatedRule]) {
        let directories = dice.pick([["x/", "y/", ""], [""], ["x/", ""]])
        let isGrouped = rules.contains { !$0.group.isEmpty }
        let letters = isGrouped ? ["a.x", "a.y", "b.x"] : ["a", "b", "c", "d"].prefix(2 + dice.below(3))
        names = directories.flatMap { directory in letters.map { PathBytes(directory + $0) } }
        guard dice.chance(0.6) else { return }
        steps.vary(&dice, by: [0, 1, 4, 4, 4, 12], keeping: [.world, .kill])
        operations.vary(&dice, by: [0, 0, 0, 4, 8], keeping: [.create, .write, .rename])
        burst = dice.pick([0, 0.3, 0.6])
        focus = dice.pick([0, 0.3, 0.6])
        afterKill = dice.pick([0, 0.5])
    }
}

/// Kinds with relative frequencies.
struct Weighted<Kind: Equatable> {
    private var weights: [(Int, Kind)]

    init(_ weights: KeyValuePairs<Kind, Int>) { self.weights = weights.map { ($1, $0) } }

    /// Makes some kinds more frequent and others less frequent or absent.
    mutating func vary(_ dice: inout SeededGenerator, by factors: [Int], keeping fixed: [Kind]) {
        for index in weights.indices {
            let factor = dice.pick(factors)
            weights[index].0 *= fixed.contains(weights[index].1) ? max(4, factor) : factor
        }
    }

    func pick(_ dice: inout SeededGenerator) -> Kind { dice.pick(weighted: weights) }
}
