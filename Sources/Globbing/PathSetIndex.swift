/// Finds among many filters those that could take a path of a set, so that few have to be searched.
///
/// Paths of two sets are the same only if the literal beginnings of both agree as
/// far as the shorter one goes, and so do their ends.
package struct PathSetIndex: Sendable {
    /// A glob of a filter.
    private struct Target: Sendable {
        var filter: Int
        /// The literal ends of its paths, in lower case.
        var tails: [[UInt8]]
    }

    private let filters: [PathFilter]
    /// By the literal folder in front of all that they take, with its slash.
    private var targets: [ArraySlice<UInt8>: [Target]] = [:]
    /// The keys of `targets`, sorted.
    private var heads: [ArraySlice<UInt8>] = []

    package init(_ filters: [PathFilter]) {
        self.filters = filters
        for (index, filter) in filters.enumerated() {
            for glob in filter.globs {
                let tails = filter.isTree ? [[]] : glob.tails
                targets[glob.program.lead[...], default: []].append(Target(filter: index, tails: tails))
            }
        }
        heads = targets.keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// The filters that could take a path of the set, by their index and in their order.
    package func candidates(for set: PathSet) -> [Int] {
        var found: Set<Int> = []
        let tails = set.tails
        func add(_ head: ArraySlice<UInt8>, below folder: ArraySlice<UInt8>?) {
            for target in targets[head] ?? [] where !found.contains(target.filter) {
                guard target.tails.contains(where: { tail in tails.contains { tail.endsAs($0) } }) else { continue }
                if let folder, !filters[target.filter].reaches(below: Array(folder)) { continue }
                found.insert(target.filter)
            }
        }
        for head in set.heads {
            // Those above, or in the same place: all of the set is below one folder, which they have to enter.
            for end in head.indices where head[end] == .slash {
                let slash = head.lastIndex(of: .slash) ?? end
                add(head[...end], below: slash == 0 ? [.slash] : head[..<slash])
            }
            // Those below.
            var index = firstHead(notBefore: head[...])
            while index < heads.count, heads[index].starts(with: head) {
                add(heads[index], below: nil)
                index += 1
            }
        }
        return found.sorted()
    }

    private func firstHead(notBefore head: ArraySlice<UInt8>) -> Int {
        var low = 0
        var high = heads.count
        while low < high {
            let middle = (low + high) / 2
            if heads[middle].lexicographicallyPrecedes(head) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension PathSet {
    /// What its paths begin with: each with one of these.
    fileprivate var heads: [[UInt8]] {
        switch pieces.first {
        case .literal(let bytes): [bytes]
        case .path(let globs): globs.map(\.program.lead)
        // A folder has no slash at its end, and that of `/x` is nothing.
        case .folder(let globs): globs.map { Array($0.program.lead.dropLast()) }
        default: [[]]
        }
    }

    /// What its paths end with: each with one of these, in lower case.
    fileprivate var tails: [[UInt8]] {
        switch pieces.last {
        case .literal(let bytes): [bytes.map(\.lowercased)]
        case .path(let globs), .relative(let globs), .name(let globs): globs.flatMap(\.tails)
        default: [[]]
        }
    }
}

extension Glob {
    /// What its paths end with: each with one of these, in lower case.
    fileprivate var tails: [[UInt8]] {
        program.alternatives.map { alternative in
            guard let literal = alternative.suffix else { return [] }
            return program.bytes[literal.start..<(literal.start + literal.count)].map(\.lowercased)
        }
    }
}

extension [UInt8] {
    /// Whether both could be the end of one text.
    fileprivate func endsAs(_ other: [UInt8]) -> Bool {
        count < other.count ? other.suffix(count).elementsEqual(self) : suffix(other.count).elementsEqual(other)
    }
}
