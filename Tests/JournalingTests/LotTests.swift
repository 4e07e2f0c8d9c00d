import FileEvents
import Journaling
import Reconciling
import Rules
import TestKit
import Testing

/// How many jobs are taken at once.
@Suite(.onEachJournal)
struct LotTests {
    let place = TestJournal()
    var journal: any Journal { place.journal }
    let start = ContinuousClock.now

    /// Jobs for files of so many bytes, which have their numbers as names.
    func accept(_ sizes: [UInt64]) {
        for (number, size) in sizes.enumerated() {
            let path = PathBytes("/in/\(number)")
            let job = Job(
                id: JobID("\(number)"), rule: "r",
                event: .sample(.created, path, .sample(file: UInt64(number), size: size)))
            journal.accept([job], [LedgerEntry(view: "r", path: path, snapshot: job.event.snapshot)], now: start)
        }
    }

    func lease(_ lot: Lot) -> [String] {
        journal.lease(rule: "r", lot: lot, busy: [], now: start).map(\.id.description)
    }

    @Test func `what is due is shared among the lanes that are free`() {
        accept([UInt64](repeating: 1, count: 10))
        #expect(lease(Lot(jobs: 16, lanes: 4)) == ["0", "1"])
        #expect(lease(Lot(jobs: 16, lanes: 3)) == ["2", "3"])
        #expect(lease(Lot(jobs: 16, lanes: 2)) == ["4", "5", "6"])
        #expect(lease(Lot(jobs: 2, lanes: 1)) == ["7", "8"])
        // One is more than nothing.
        #expect(lease(Lot(jobs: 16, lanes: 4)) == ["9"])
        #expect(lease(Lot(jobs: 16, lanes: 4)).isEmpty)
    }

    @Test func `files have no more bytes together than is allowed, but one of any size goes alone`() {
        accept([60, 40, 1, 200, 5, 5])
        #expect(lease(Lot(jobs: 16, bytes: 100)) == ["0", "1"])
        #expect(lease(Lot(jobs: 16, bytes: 100)) == ["2"])
        #expect(lease(Lot(jobs: 16, bytes: 100)) == ["3"])
        #expect(lease(Lot(jobs: 16, bytes: 100)) == ["4", "5"])
        #expect(journal.counts.running == 6)
    }

    @Test func `sizes that are too large to be added are not added`() {
        accept([.max, .max, 1])
        for name in ["0", "1", "2"] { #expect(lease(Lot(jobs: 16, bytes: 100)) == [name]) }
    }
}
