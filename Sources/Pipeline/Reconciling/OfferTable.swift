import FileEvents
import System

/// The unfinished offers of one view.
struct OfferTable {
    private(set) var all: [UInt64: Offer] = [:]
    /// The numbers of the offers that have changed since the last commit.
    private(set) var changed: Set<UInt64> = []
    /// The number of offers that wait for their next attempt.
    private(set) var retryingCount = 0
    /// The number of offers of which an interrupted attempt may have removed the input.
    private(set) var interruptedCount = 0
    private var numbers: [PathBytes: UInt64] = [:]
    /// The paths that running actions have declared as their outputs, by number of the offer.
    private var outputs: [PathBytes: UInt64] = [:]

    subscript(number: UInt64) -> Offer? { all[number] }

    /// The paths that the offers name.
    var paths: Dictionary<PathBytes, UInt64>.Keys { numbers.keys }

    /// Returns the number of the offer that names a path.
    func number(at path: PathBytes) -> UInt64? { numbers[path] }

    func offer(at path: PathBytes) -> Offer? { numbers[path].flatMap { all[$0] } }

    /// Adds an offer, or replaces the one with its number; it names its paths from now on.
    mutating func insert(_ offer: Offer) {
        set(offer)
        for path in offer.paths { numbers[path] = offer.number }
    }

    /// Replaces the offer with this number and the same paths.
    mutating func set(_ offer: Offer) {
        count(all.updateValue(offer, forKey: offer.number), -1)
        count(offer, 1)
        changed.insert(offer.number)
    }

    private mutating func count(_ offer: Offer?, _ change: Int) {
        guard let offer else { return }
        if !offer.isRunning { retryingCount += change }
        if offer.mayHaveRemovedInput { interruptedCount += change }
    }

    /// Changes an offer, if it is unfinished.
    mutating func update(_ number: UInt64, _ body: (inout Offer) -> Void) {
        guard var offer = all[number] else { return }
        body(&offer)
        set(offer)
    }

    mutating func remove(_ offer: Offer) {
        count(all.removeValue(forKey: offer.number), -1)
        changed.insert(offer.number)
        for path in offer.paths { numbers[path] = nil }
    }

    mutating func markCommitted() { changed.removeAll(keepingCapacity: true) }

    // MARK: Outputs

    func isOutput(_ path: PathBytes) -> Bool { outputs[path] != nil }

    mutating func declareOutput(_ path: PathBytes, of number: UInt64) { outputs[path] = number }

    /// Removes and returns the paths that an offer has declared as outputs, sorted.
    mutating func removeOutputs(of number: UInt64) -> [PathBytes] {
        guard !outputs.isEmpty else { return [] }
        let paths = outputs.filter { $0.value == number }.keys.sorted()
        for path in paths { outputs[path] = nil }
        return paths
    }
}
