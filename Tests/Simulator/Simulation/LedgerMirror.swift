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
    var texts: [FileIdentity: [UInt8]] = [:]
    /// The files of which an action has given up a piece of text.
    var lost: Set<FileIdentity> = []
    /// The rows of frozen events, first in, first out.
    ///
    /// They survive a kill.
    var frozen: [Offer] = []

    /// Appends a piece of text to the text received so far; the text of a failed row is lost.
    mutating func recordText(_ offer: Offer, _ run: LedgerRun) {
        let event = offer.event
        let file = event.snapshot.identity
        // Rows of different paths run at the same time.
        if frozen.contains(where: { $0.event.snapshot.identity == file && $0.path != event.path }) {
            lost.insert(file)
        }
        let isDoubtful =
            !run.hasBirth || isForgiven || lost.contains(file)
            || offer.paths.contains { untracked.contains($0) }
        guard let tail = event.tail else { return }
        let isOther = event.kind == .created || event.kind == .modified && event.isReplaced
        if tail.isReset || isOther && tail.offset == 0 { texts[file] = nil }
        let start = Int(tail.offset)
        let known =
            isDoubtful
            ? run.world.text(of: file) ?? Array(repeating: 0, count: start) : texts[file] ?? []
        if !isDoubtful, start > known.count || start < known.count && offer.attempt == 1 {
            run.fault = run.fault ?? "\(run.world.name(of: event.path)): text from \(start) after \(known.count) bytes"
        }
        texts[file] = known.prefix(start) + tail.bytes
    }
}
