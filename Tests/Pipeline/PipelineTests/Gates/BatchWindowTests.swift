import Engine
import Gates
import Rules
import System
import Testing

/// The times at which gathered events are released, with a manual clock.
struct BatchWindowTests {
    let start = ContinuousClock.now
    let batch = Rule.Batch(files: 3, wait: .seconds(2), maximumWait: .seconds(5))

    @Test func `a closed window delays nothing`() {
        var window = BatchWindow(batch)
        #expect(window.deadline == nil)
        let mayLease = window.mayLease(at: start)
        #expect(mayLease)
    }

    @Test func `each event restarts the wait, up to the maximum`() {
        var window = BatchWindow(batch)
        for second in [0, 1, 2, 3, 4] { window.record("/a", at: start + .seconds(second)) }
        #expect(window.deadline == start + .seconds(5))
        var mayLease = window.mayLease(at: start + .milliseconds(4_999))
        #expect(!mayLease)
        mayLease = window.mayLease(at: start + .seconds(5))
        #expect(mayLease)
    }

    @Test func `a window is complete when no event has arrived for the wait, until it is closed`() {
        var window = BatchWindow(batch)
        window.record("/a", at: start)
        #expect(window.deadline == start + .seconds(2))
        var mayLease = window.mayLease(at: start + .seconds(2))
        #expect(mayLease)
        window.record("/b", at: start + .seconds(2))
        mayLease = window.mayLease(at: start + .seconds(2))
        #expect(mayLease && window.deadline == nil)
        window.close()
        window.record("/c", at: start + .seconds(3))
        mayLease = window.mayLease(at: start + .seconds(3))
        #expect(!mayLease && window.deadline == start + .seconds(5))
    }

    @Test func `a full batch waits no longer, and repeated events of a path count once`() {
        var window = BatchWindow(batch)
        for _ in 0..<10 { window.record("/a", at: start) }
        window.record("/b", at: start)
        var mayLease = window.mayLease(at: start)
        #expect(!mayLease)
        window.record("/c", at: start)
        mayLease = window.mayLease(at: start)
        #expect(mayLease)
    }
}
