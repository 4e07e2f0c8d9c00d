import HeapModule

/// Places of jobs, of which the first comes out first.
///
/// Most come in the order in which they go: those are a plain row, and only the others cost a heap.
struct PlaceQueue {
    private var row: [JobPlace] = []
    /// How many of the row have been taken.
    private var taken = 0
    private var others = Heap<JobPlace>()

    var count: Int { row.count - taken + others.count }

    var isEmpty: Bool { taken == row.count && others.isEmpty }

    var first: JobPlace? {
        guard taken < row.count else { return others.min }
        guard let other = others.min, other < row[taken] else { return row[taken] }
        return other
    }

    /// All that are there, in no order.
    var places: some Sequence<JobPlace> { [AnySequence(row[taken...]), AnySequence(others.unordered)].joined() }

    mutating func insert(_ place: JobPlace) {
        if let last = row.last, taken < row.count, place < last { others.insert(place) } else { row.append(place) }
    }

    mutating func removeFirst() -> JobPlace? {
        guard taken < row.count else { return others.popMin() }
        if let other = others.min, other < row[taken] { return others.removeMin() }
        let place = row[taken]
        taken += 1
        if taken == row.count {
            row.removeAll(keepingCapacity: taken <= Self.spare)
            taken = 0
        } else if taken > Self.spare, taken > row.count / 2 {
            row.removeSubrange(..<taken)
            taken = 0
        }
        return place
    }

    /// Up to so many taken ones stay in the row.
    private static let spare = 1_024
}
