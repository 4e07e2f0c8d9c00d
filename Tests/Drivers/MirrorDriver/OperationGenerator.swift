import System
import TestKit

/// The few names that all workers of a seed share, so that their operations collide.
struct Universe {
    /// The roots of the rule, and a directory that no rule matches.
    static let roots: [PathBytes] = ["one", "far/two"]
    static let outside: PathBytes = "outside"

    let directories: [PathBytes]
    let files: [PathBytes]
    /// Whether files get hard links, in which case nothing leaves the roots.
    ///
    /// The kernel does not report a change made through a name outside for the names
    /// inside, so no program can know it. Even seeds have links, odd ones have an
    /// outside directory.
    let hasLinks: Bool

    private static let names: [PathBytes] = [
        "a", "b", "c", "with blank", " leading", "-rf", "--", "new\nline", "tab\t", "caf\u{E9}", "cafe\u{301}",
        PathBytes([0x63, 0x61, 0x66, 0xE9]), PathBytes([0xFF, 0xFE]), PathBytes(String(repeating: "n", count: 255)),
        PathBytes(String(repeating: "\u{E9}", count: 127)), ".hidden", "..dots", "*", "[a]", "{b,c}", "${path}",
        "'\"", "back\\slash", "%41", "~", "a~", ".a.swp", "a.tmp", "a.part", ".git", "\u{1F389}", "\u{1B}[31m",
    ]

    /// Draws the names for a seed.
    init(seed: UInt64) {
        var random = SeededGenerator(seed: seed, parts: 1)
        var names = Self.names
        var drawn: [PathBytes] = []
        for _ in 0..<16 { drawn.append(names.remove(at: random.below(names.count))) }
        directories = Array(drawn[..<5])
        // Some names serve for both, so that a file replaces a directory.
        files = Array(drawn[3...])
        hasLinks = seed.isMultiple(of: 2)
    }

    func directory(_ random: inout SeededGenerator) -> PathBytes {
        var path = !hasLinks && random.isOne(in: 5) ? Self.outside : random.pick(Self.roots)
        for _ in 0..<random.pick([0, 1, 1, 1, 2, 2, 3]) { path = path.appending(random.pick(directories).bytes) }
        return path
    }

    func file(_ random: inout SeededGenerator) -> PathBytes { directory(&random).appending(random.pick(files).bytes) }
}

/// The operations of one worker in one round, determined by the seed only.
struct OperationGenerator {
    private var random: SeededGenerator
    private let universe: Universe
    private let hidesDirectories: Bool
    /// Recently used paths, which are likely to exist.
    private var recent: [PathBytes] = []

    /// Creates the generator of a worker.
    ///
    /// - Parameters:
    ///   - seed: The seed of the whole run.
    ///   - round: The number of the round.
    ///   - worker: The number of the worker.
    ///   - hidesDirectories: Whether directories are also made unreadable.
    init(seed: UInt64, round: Int, worker: Int, hidesDirectories: Bool) {
        random = SeededGenerator(seed: seed, parts: 2, UInt64(round), UInt64(worker))
        universe = Universe(seed: seed)
        self.hidesDirectories = hidesDirectories
    }

    /// The relative frequency of each kind.
    private static let weights: [(Int, @Sendable (inout OperationGenerator) -> Operation)] = [
        (12, { .create($0.remembered($0.anyFile()), size: $0.size()) }),
        (8, { .append($0.known(), size: $0.size()) }),
        (4, { .truncate($0.known(), size: $0.size()) }),
        (5, { .rewrite($0.known(), size: $0.size()) }),
        (4, { .map($0.known(), closesFirst: $0.random.isOne(in: 2)) }),
        (1, { .hold($0.remembered($0.anyFile()), size: $0.size(), milliseconds: $0.random.below(120)) }),
        (5, { .replace($0.known(), size: $0.size(), by: $0.anyFile()) }),
        (9, { .rename($0.known(), to: $0.remembered($0.anyFile())) }),
        (4, { .rename($0.anyDirectory(), to: $0.anyDirectory()) }),
        (3, { .exchange($0.known(), $0.known()) }),
        (1, { .exchange($0.anyDirectory(), $0.anyDirectory()) }),
        (5, { $0.linkOrCreate() }),
        (3, { .symlink(target: $0.target(), $0.remembered($0.anyFile())) }),
        (4, { .linkUnnamed($0.remembered($0.anyFile()), size: $0.size()) }),
        (1, { .pipe($0.remembered($0.anyFile())) }),
        (8, { .unlink($0.known()) }),
        (5, { .recreate($0.known(), size: $0.size()) }),
        (3, { .makeDirectory($0.anyDirectory()) }),
        (6, { .makeTree($0.anyDirectory(), names: $0.names(), size: $0.size()) }),
        (3, { .removeTree($0.anyDirectory()) }),
        (2, { .remakeTree($0.anyDirectory(), name: $0.names()[0], size: $0.size()) }),
        (1, { .moveAndMake($0.anyDirectory(), to: $0.anyDirectory()) }),
        (6, { .chmod($0.known(), mode: $0.mode()) }),
        (2, { .chmod($0.anyDirectory(), mode: $0.mode()) }),
        (5, { .touch($0.known(), $0.time()) }),
        (6, { .pause(milliseconds: $0.pause()) }),
    ]

    mutating func next() -> Operation {
        if hidesDirectories, random.isOne(in: 20) {
            return .chmod(anyDirectory(), mode: random.isOne(in: 2) ? 0 : 0o755)
        }
        // Occasionally an operation affects a whole root.
        if random.isOne(in: 400) {
            let root = random.pick(Universe.roots)
            switch random.below(4) {
            case 0: return .removeTree(root)
            case 1: return .remakeTree(root, name: random.pick(universe.files), size: size())
            case 2: return .moveAndMake(root, to: anyDirectory())
            default: return .rename(root, to: anyDirectory())
            }
        }
        let make = random.pick(weighted: Self.weights)
        return make(&self)
    }

    private mutating func linkOrCreate() -> Operation {
        let path = known()
        let other = remembered(anyFile())
        return universe.hasLinks ? .link(path, to: other) : .create(other, size: size())
    }

    // MARK: Operands

    private mutating func anyFile() -> PathBytes { universe.file(&random) }

    private mutating func anyDirectory() -> PathBytes {
        // Roots are excluded, because they have operations of their own.
        while true {
            let directory = universe.directory(&random)
            if directory != Universe.outside, !Universe.roots.contains(directory) { return directory }
        }
    }

    private mutating func known() -> PathBytes {
        recent.isEmpty || random.isOne(in: 5) ? anyFile() : random.pick(recent)
    }

    private mutating func remembered(_ path: PathBytes) -> PathBytes {
        if recent.count >= 40 { recent.remove(at: random.below(recent.count)) }
        recent.append(path)
        return path
    }

    private mutating func names() -> [PathBytes] {
        (0...random.below(4)).map { _ in random.pick(universe.files) }
    }

    private mutating func target() -> PathBytes {
        switch random.below(3) {
        case 0: PathBytes(known().lastComponent)
        case 1: PathBytes([.dot, .dot, .slash] + random.pick(universe.directories).bytes)
        default: "nowhere"
        }
    }

    private mutating func size() -> Int {
        switch random.below(40) {
        case 0..<8: 0
        case 8..<30: 1 + random.below(200)
        case 30..<39: 1 + random.below(100_000)
        default: 1_000_000 + random.below(3_000_000)
        }
    }

    /// Returns a mode with which the owner can still do everything.
    private mutating func mode() -> UInt16 { random.pick([0o700, 0o711, 0o744, 0o755, 0o750, 0o777, 0o1755]) }

    private mutating func time() -> Timestamp? {
        switch random.below(4) {
        case 0: nil
        case 1: Timestamp(seconds: Int64(random.below(1_700_000_000)), nanoseconds: 0)
        default:
            Timestamp(
                seconds: 1_700_000_000 + Int64(random.below(400_000_000)),
                nanoseconds: UInt32(random.below(1_000_000_000)))
        }
    }

    /// Returns a pause that is mostly shorter than the settle time, sometimes longer, so that paths also settle between
    /// two operations.
    private mutating func pause() -> Int { random.isOne(in: 8) ? 50 + random.below(100) : random.below(10) }
}
