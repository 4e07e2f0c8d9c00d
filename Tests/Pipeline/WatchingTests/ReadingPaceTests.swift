import Testing

@testable import Watching

struct ReadingPaceTests {
    /// Reads at each of the times in turn.
    ///
    /// Returns for each whether the queue is left alone afterwards.
    private static func pauses(_ times: [Duration]) -> [Bool] {
        let start = ContinuousClock.now
        var pace = ReadingPace(at: start)
        return times.map { pace.recordRead(at: start + $0) != nil }
    }

    @Test func `events of a few files are read without delay`() {
        // Four events per file, 300 files per second.
        let times = (0..<300).flatMap { file in (0..<4).map { Duration.microseconds(file * 3_333 + $0 * 50) } }
        #expect(!Self.pauses(times).contains(true))
    }

    @Test func `in a burst, reading pauses after each read until the burst is over`() {
        let storm = (0..<40).map { Duration.microseconds($0 * 100) }
        let pauses = Self.pauses(storm + [.milliseconds(10), .milliseconds(11)])
        #expect(pauses.prefix(16).allSatisfy { !$0 })
        #expect(pauses[16..<40].allSatisfy { $0 })
        #expect(!pauses[40] && !pauses[41])
    }
}
