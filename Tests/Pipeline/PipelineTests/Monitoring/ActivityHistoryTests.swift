import Engine
import Monitoring
import PluginProtocol
import Rules
import System
import Testing

/// The history of the last half hour.
struct ActivityHistoryTests {
    private let start = ContinuousClock.now
    private let wall = Timestamp(seconds: 1_000_000, nanoseconds: 0)

    private func points(_ history: ActivityHistory, after seconds: Double) -> [ActivityHistory.Point] {
        history.points(at: start + .seconds(seconds), wall: wall.advanced(by: .seconds(seconds)))
    }

    @Test func `a slot is reported when it has ended, and empty slots are not`() {
        var history = ActivityHistory(start: start)
        for _ in 0..<3 { history.recordEvent(at: start + .seconds(6)) }
        history.record(queue: 2, at: start + .seconds(6))
        history.record(.succeeded, at: start + .seconds(7))
        history.record(.failed, at: start + .seconds(7))
        history.record(.skipped, at: start + .seconds(9))
        history.record(.seconds(2), of: .run, at: start + .seconds(9))
        #expect(points(history, after: 9).count == 1)
        let slots = points(history, after: 21)
        #expect(slots.map(\.events) == [0, 3, 0, 0])
        #expect(slots.map(\.queue) == [0, 2, 2, 2])
        #expect(slots[1].succeeded == 1 && slots[1].failed == 1 && slots[1].skipped == 1)
        #expect(slots[1].time == wall.advanced(by: .seconds(5)))
        #expect(slots[1].waitMedian == nil && slots[2].runMedian == nil)
        let median = slots[1].runMedian.map { $0 / .seconds(1) } ?? 0
        #expect(abs(median - 2) < 0.2)
    }

    @Test func `the history covers half an hour`() {
        var history = ActivityHistory(start: start)
        for number in 0..<500 { history.record(queue: number, at: start + .seconds(5 * number)) }
        let slots = points(history, after: 2500)
        #expect(slots.count == 360)
        #expect(slots.map(\.queue) == Array(140..<500))
        #expect(points(history, after: 10_000).allSatisfy { $0.events == 0 })
    }

    @Test func `the last minute has the numbers of twelve slots, without extrapolation`() {
        var history = ActivityHistory(start: start)
        for _ in 0..<60 { history.recordEvent(at: start + .seconds(1)) }
        for _ in 0..<30 { history.record(.succeeded, at: start + .seconds(2)) }
        for _ in 0..<7 { history.record(.pending, at: start + .seconds(2)) }
        #expect(history.lastMinute(at: start + .seconds(3)) == (60, 30))
        #expect(history.lastMinute(at: start + .seconds(59)) == (60, 30))
        #expect(history.lastMinute(at: start + .seconds(70)) == (0, 0))
    }

    @Test func `a quantile is off by at most a tenth`() {
        var histogram = LogHistogram()
        #expect(histogram.quantile(0.5) == nil)
        for number in 1...1000 { histogram.add(.milliseconds(number)) }
        for (share, exact) in [(0.5, 0.5), (0.99, 0.99), (0.01, 0.01)] {
            let found = histogram.quantile(share).map { $0 / .seconds(1) } ?? 0
            #expect(abs(found - exact) < exact * 0.11, "\(share): \(found)")
        }
        histogram.add(.seconds(1_000_000_000))
        #expect(histogram.quantile(1) != nil)
    }
}
