import Engine
import Gates
import System
import Testing

/// Rules whose attempts fail in a row, with a manual clock.
struct CircuitBreakerTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The results of the attempts for files 1, 2, 3 …; `-` is none, `!` can't start, `=` fails for the
        /// previous file, `a` fails again.
        let results: String
        /// The number of the result that opens the breaker; nil for none.
        let opens: Int?
        var failures = CircuitBreaker.limit
        var cannotStart = false
    }

    static let cases = [
        Case(testDescription: "four failures are few", results: "ffff", opens: nil),
        Case(testDescription: "five open it", results: "fffff", opens: 5),
        Case(testDescription: "a success restarts the count", results: "ffffsffff", opens: nil),
        Case(testDescription: "five behind a success open it", results: "ffffsfffff", opens: 10),
        Case(testDescription: "a job without a result changes nothing", results: "ff--ff-f", opens: 8),
        Case(testDescription: "a file that fails repeatedly counts once", results: "f=========", opens: nil),
        Case(testDescription: "files that fail again count once", results: "ffffaaaaaaaa", opens: nil),
        Case(testDescription: "files that fail again do not restart the count", results: "ffffaaaf", opens: 8),
        Case(testDescription: "two can't start", results: "!!", opens: nil),
        Case(
            testDescription: "three that can't start open it", results: "!!!", opens: 3, failures: 3, cannotStart: true),
        Case(testDescription: "a failure in between is a start", results: "!!f!", opens: nil),
        Case(testDescription: "both kinds together count as failures", results: "!!f!f", opens: 5),
        Case(testDescription: "a success in between is a start too", results: "!!s!!", opens: nil),
    ]

    @Test(arguments: cases)
    func `the breaker opens after failures of several files in a row`(_ example: Case) {
        var breaker = CircuitBreaker()
        let now = ContinuousClock.now
        var opened: (number: Int, change: CircuitBreaker.Change)?
        var job = 0
        for (index, character) in example.results.enumerated() where opened == nil {
            let results: [Character: CircuitBreaker.Sign] = [
                "s": .works, "!": .cannotStart, "-": .nothing, "a": .failsAgain,
            ]
            if character != "=" { job += 1 }
            breaker.start(PathBytes("/\(job)"))
            if let change = breaker.record(results[character] ?? .fails, of: PathBytes("/\(job)"), random: 1, at: now) {
                opened = (index + 1, change)
            }
        }
        #expect(opened?.number == example.opens)
        #expect(breaker.isOpen == (example.opens != nil))
        if let opened {
            #expect(opened.change == .opened(failures: example.failures, cannotStart: example.cannotStart))
        }
    }

    /// A breaker that opened at a given time.
    static func open(at now: ContinuousClock.Instant) -> CircuitBreaker {
        var breaker = CircuitBreaker()
        for number in 0..<CircuitBreaker.limit {
            _ = breaker.record(.fails, of: PathBytes("/\(number)"), random: 1, at: now)
        }
        return breaker
    }

    @Test func `one job is tried at a time, after delays that grow to a minute, until one succeeds`() {
        var now = ContinuousClock.now
        var breaker = Self.open(at: now)
        for (number, seconds) in [1, 2, 4, 8, 16, 32, 60, 60, 60].enumerated() {
            let file = PathBytes("/p\(number)")
            #expect(breaker.nextProbe == now + .seconds(seconds))
            #expect(!breaker.canStart(running: 0, at: now + .seconds(seconds) - .milliseconds(1)))
            now += .seconds(seconds)
            #expect(breaker.canStart(running: 0, at: now))
            #expect(!breaker.canStart(running: 1, at: now))
            breaker.start(file)
            #expect(breaker.record(number == 0 ? .fails : .failsAgain, of: file, random: 1, at: now) == nil)
        }
        now += .seconds(60)
        breaker.start(PathBytes("/good"))
        #expect(breaker.record(.works, of: PathBytes("/good"), random: 1, at: now) == .closed)
        #expect(!breaker.isOpen)
        #expect(breaker.canStart(running: 7, at: now))
        #expect(breaker.record(.fails, of: PathBytes("/again"), random: 1, at: now) == nil)
    }

    @Test func `a job started before the breaker opened extends no delay and closes it by a success`() {
        let now = ContinuousClock.now
        var breaker = Self.open(at: now)
        let nextProbe = breaker.nextProbe
        for number in 0..<7 {
            #expect(breaker.record(.fails, of: PathBytes("/old\(number)"), random: 1, at: now + .seconds(1)) == nil)
        }
        #expect(breaker.nextProbe == nextProbe)
        #expect(breaker.record(.works, of: PathBytes("/old"), random: 1, at: now) == .closed)
    }

    @Test func `a job without a result allows the next one to be tried at once`() {
        let now = ContinuousClock.now
        var breaker = Self.open(at: now)
        breaker.start(PathBytes("/gone"))
        #expect(breaker.record(.nothing, of: PathBytes("/gone"), random: 1, at: now + .seconds(2)) == nil)
        #expect(breaker.canStart(running: 0, at: now + .seconds(2)))
        // If this job runs again, it is no longer a probe.
        #expect(breaker.record(.fails, of: PathBytes("/gone"), random: 1, at: now + .seconds(9)) == nil)
        #expect(breaker.nextProbe == now + .seconds(1))
    }
}
