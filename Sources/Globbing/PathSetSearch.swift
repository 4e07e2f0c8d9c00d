/// Looks for a path that is in a set and matched by all filters, and for one that is not.
///
/// The set is read by one automaton, the filters by another whose states are
/// followed all at once, since what they leave out has to be known to the end.
/// Only one character of each kind that the patterns tell apart is tried.
struct PathSetSearch {
    /// What a state of the filters' automaton says of a path that ends there.
    private enum Mark: Hashable {
        case taken(glob: Int, Root)
        case leftOut(Root)
        case tooDeep(Root)
        /// The path is in a further set.
        case inSet(Int)
    }

    /// A root of a filter, both by their indices.
    private struct Root: Hashable {
        var filter: Int
        var index: Int
    }

    /// More steps than a set and a filter that anybody wrote need.
    private static let mostSteps = 20_000

    private let filters: [PathFilter]
    private let setCount: Int
    private var set = PathAutomaton()
    private let setStart: Int
    private let setEnd: Int
    private var wanted = PathAutomaton()
    private let wantedStart: Int
    private var marks: [Int: [Mark]] = [:]
    private var kinds: [UInt32] = []

    /// - Parameters:
    ///   - set: The paths that are tried.
    ///   - filters: The filters that have to match; the glob of the first one is reported.
    ///   - sets: Further sets that have to hold the path.
    init(_ set: PathSet, _ filters: [PathFilter], sets: [PathSet] = []) {
        self.filters = filters
        setCount = sets.count
        setStart = self.set.add()
        setEnd = Self.add(set.pieces, to: &self.set, from: setStart)
        wantedStart = wanted.add()
        for (number, filter) in filters.enumerated() { add(filter, number: number) }
        for (number, set) in sets.enumerated() {
            marks[Self.add(set.pieces, to: &wanted, from: wantedStart), default: []].append(.inSet(number))
        }
        kinds = Self.kinds(self.set, wanted)
    }

    private mutating func add(_ filter: PathFilter, number: Int) {
        let roots = filter.roots
        let numbers = Dictionary(uniqueKeysWithValues: zip(roots, roots.indices))
        for (index, glob) in filter.globs.enumerated() {
            guard let root = numbers[glob.root].map({ Root(filter: number, index: $0) }) else { continue }
            let end = wanted.glob(glob.program, .path, from: wantedStart)
            marks[end, default: []].append(.taken(glob: index, root))
            if filter.isTree {
                let below = wanted.add()
                wanted.link(end, below, .slashOnly)
                let inside = wanted.loop(from: below, .all)
                marks[inside, default: []].append(.taken(glob: index, root))
            }
        }
        for (index, root) in roots.enumerated() {
            let mark = Root(filter: number, index: index)
            let start = wanted.literal(root.last == .slash ? root : root + [.slash], from: wantedStart)
            for glob in filter.exclude.globs + filter.outputs.globs {
                let end = wanted.glob(glob.program, .path, from: start)
                marks[end, default: []].append(.leftOut(mark))
                let below = wanted.add()
                wanted.link(end, below, .slashOnly)
                marks[wanted.loop(from: below, .all), default: []].append(.leftOut(mark))
            }
            // Nobody's folders are deeper than that.
            if let depth = filter.depth, depth < 64 {
                var state = start
                for _ in 0...depth {
                    state = wanted.loop(from: state, .ofNames)
                    let next = wanted.add()
                    wanted.link(state, next, .slashOnly)
                    state = next
                }
                marks[wanted.loop(from: state, .all), default: []].append(.tooDeep(mark))
            }
        }
    }

    private static func add(_ pieces: [PathSet.Piece], to automaton: inout PathAutomaton, from start: Int) -> Int {
        var state = start
        for piece in pieces {
            let part: (globs: [Glob], PathAutomaton.Part)
            switch piece {
            case .literal(let bytes):
                state = automaton.literal(bytes, from: state)
                continue
            case .anyText:
                state = automaton.loop(from: state, .ofNames)
                continue
            case .anything:
                state = automaton.loop(from: state, .all)
                continue
            case .path(let globs): part = (globs, .path)
            case .relative(let globs): part = (globs, .relative)
            case .folder(let globs): part = (globs, .folder)
            case .name(let globs): part = (globs, .name)
            case .stem(let globs): part = (globs, .stem)
            case .extension(let globs): part = (globs, .extension)
            }
            let end = automaton.add()
            for glob in part.globs {
                let begin = automaton.add()
                automaton.jump(state, begin)
                automaton.jump(automaton.glob(glob.program, part.1, from: begin), end)
            }
            state = end
        }
        return state
    }

    /// One character of each kind, letters first, so that what is found looks like a name.
    private static func kinds(_ one: PathAutomaton, _ other: PathAutomaton) -> [UInt32] {
        let labels = Set((one.states + other.states).flatMap { $0.edges.map(\.characters) })
        var bounds: Set<UInt32> = [0x61, 0x78]
        for range in labels.flatMap(\.ranges) {
            bounds.insert(range.lowerBound)
            if range.upperBound < CharacterRanges.last { bounds.insert(range.upperBound + 1) }
        }
        func rank(_ value: UInt32) -> UInt32 { (0x61...0x7A).contains(value) ? value : value + 0x1000 }
        let ordered = Array(labels)
        var known: Set<[Bool]> = []
        return bounds.sorted { rank($0) < rank($1) }.filter { value in
            known.insert(ordered.map { $0.contains(value) }).inserted
        }
    }

    private struct Place: Hashable {
        var set: Int
        var wanted: Int
    }

    /// What a search comes to.
    enum Finding: Equatable {
        case nothing
        case meeting(PathSet.Meeting)
        /// It took too long.
        case unknown
    }

    /// Searches, shortest paths first.
    func run() -> Finding {
        var sets: [[Int]] = [wanted.closure([wantedStart])]
        var numbers: [[Int]: Int] = [sets[0]: 0]
        var steps: [[Int?]] = [Array(repeating: nil, count: kinds.count)]
        var places: [Place] = []
        var origins: [(from: Int, character: UInt32)] = []
        var known: Set<Place> = []
        func visit(_ place: Place, from: Int, _ character: UInt32) {
            for state in set.closure([place.set]) {
                let next = Place(set: state, wanted: place.wanted)
                guard known.insert(next).inserted else { continue }
                places.append(next)
                origins.append((from, character))
            }
        }
        visit(Place(set: setStart, wanted: 0), from: -1, 0)
        var found: (index: Int, glob: Int)?
        var isWhole = true
        var index = 0
        while index < places.count {
            guard index < Self.mostSteps else { return .unknown }
            let place = places[index]
            if place.set == setEnd {
                if let glob = glob(taking: sets[place.wanted]) {
                    if found == nil { found = (index, glob) }
                } else {
                    isWhole = false
                }
                if found != nil, !isWhole { break }
            }
            for edge in set.states[place.set].edges {
                for (kind, character) in kinds.enumerated() where edge.characters.contains(character) {
                    let next: Int
                    if let taken = steps[place.wanted][kind] {
                        next = taken
                    } else {
                        let reached = wanted.closure(
                            sets[place.wanted].flatMap { state in
                                wanted.states[state].edges.filter { $0.characters.contains(character) }.map(\.to)
                            })
                        if let number = numbers[reached] {
                            next = number
                        } else {
                            next = sets.count
                            numbers[reached] = next
                            sets.append(reached)
                            steps.append(Array(repeating: nil, count: kinds.count))
                        }
                        steps[place.wanted][kind] = next
                    }
                    visit(Place(set: edge.to, wanted: next), from: index, character)
                }
            }
            index += 1
        }
        guard let found else { return .nothing }
        var characters: [UInt32] = []
        var at = found.index
        while at >= 0 {
            if origins[at].from >= 0 { characters.append(origins[at].character) }
            at = origins[at].from
        }
        return .meeting(
            PathSet.Meeting(
                path: characters.reversed().flatMap(Self.bytes), glob: filters[0].globs[found.glob], isWhole: isWhole))
    }

    /// The glob of the first filter that matches a path which ends in all of these states, if all filters and sets do.
    private func glob(taking states: [Int]) -> Int? {
        let marks = states.flatMap { self.marks[$0] ?? [] }
        guard (0..<setCount).allSatisfy({ marks.contains(.inSet($0)) }) else { return nil }
        var globs: [Int: Int] = [:]
        for case .taken(let glob, let root) in marks
        where globs[root.filter] == nil && !marks.contains(.leftOut(root)) && !marks.contains(.tooDeep(root)) {
            globs[root.filter] = glob
        }
        return globs.count == filters.count ? globs[0] : nil
    }

    private static func bytes(of character: UInt32) -> [UInt8] {
        if character >= GlobCharacter.strayBase { return [UInt8(character - GlobCharacter.strayBase)] }
        return Unicode.Scalar(character).map { Array(String(Character($0)).utf8) } ?? []
    }
}
