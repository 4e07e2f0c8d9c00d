import FileEvents
import Reconciling
import System

/// The state that the action of one rule knows.
struct LedgerMirror {
    var contents: [PathBytes: Int] = [:]
    var untracked: Set<PathBytes> = []
    var archive: [UInt64: Snapshot] = [:]
    /// The trees of directories handled as one unit, as the action has read them.
    var trees: [PathBytes: [PathBytes: Int]] = [:]
    var noted: Set<UInt64> = []
    /// The failed offers that are not committed yet.
    var failed: [UInt64: Offer?] = [:]
    /// The files as the sum of the events whose actions have succeeded.
    var received: [PathBytes: Snapshot] = [:]
    /// The paths that an event has named and that the action may still know.
    var named: Set<PathBytes> = []
    /// The files that `copy` has written, by offer.
    var outputs: [UInt64: Set<PathBytes>] = [:]
    /// The offers of moves from a path that an action has written since.
    var rewritten: Set<UInt64> = []
    var isForgiven = false
    /// The text received for each followed file.
    var texts: TextMirror
    /// The rows of frozen events, first in, first out.
    ///
    /// They survive a kill.
    var frozen: [Offer] = []

    /// Appends a piece of text to the text received so far.
    ///
    /// - Returns: The error if the piece does not follow the text received.
    mutating func recordText(_ offer: Offer, in world: World) -> String? {
        let file = offer.event.snapshot.identity
        // Rows of different paths run at the same time.
        if frozen.contains(where: { $0.event.snapshot.identity == file && $0.path != offer.path }) {
            texts.lost.insert(file)
        }
        let isDoubtful = isForgiven || !untracked.isDisjoint(with: offer.paths)
        return texts.record(offer.event, isDoubtful: isDoubtful, isRepeated: offer.attempt > 1, in: world)
    }
}
