import Rules
import System
import Testing
import TestKit

struct RunWindowTests {
    /// UTC, without clock changes.
    static let plain = LocalClock { _ in 0 }

    /// Central Europe in 2026: summer time from March 29th to October 25th, both at 01:00 UTC.
    static let berlin = LocalClock { seconds in
        (time("2026-03-29T01:00:00Z").seconds..<time("2026-10-25T01:00:00Z").seconds).contains(seconds)
            ? 7_200 : 3_600
    }

    /// A zone that skips a whole day, as Samoa did: from UTC-10 to UTC+14.
    static let samoa = LocalClock { seconds in seconds < time("2026-06-12T10:00:00Z").seconds ? -36_000 : 50_400 }

    static func time(_ text: String) -> Timestamp {
        let numbers = text.split(whereSeparator: { !$0.isNumber }).compactMap { Int64($0) }
        // Days before the year, with a leap year every four years; the tests use no year that is an exception.
        var days = (numbers[0] - 1970) * 365 + (numbers[0] - 1969) / 4
        let lengths: [Int64] = [31, numbers[0] % 4 == 0 ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        days += lengths.prefix(Int(numbers[1]) - 1).reduce(0, +) + numbers[2] - 1
        return Timestamp(seconds: days * 86_400 + numbers[3] * 3_600 + numbers[4] * 60 + numbers[5], nanoseconds: 0)
    }

    static func window(_ texts: String...) throws -> RunWindow {
        RunWindow(try texts.map { try WindowText.parse($0) })
    }

    @Test func `a window includes its start and excludes its end`() throws {
        let window = try Self.window("08:00-17:30")
        #expect(!window.isOpen(at: Self.time("2026-11-20T07:59:59Z"), Self.plain))
        #expect(window.isOpen(at: Self.time("2026-11-20T08:00:00Z"), Self.plain))
        #expect(window.isOpen(at: Self.time("2026-11-20T17:29:59Z"), Self.plain))
        #expect(!window.isOpen(at: Self.time("2026-11-20T17:30:00Z"), Self.plain))
    }

    @Test func `a window across midnight belongs to the day on which it starts`() throws {
        // November 20th, 2026 is a Friday.
        let window = try Self.window("Mon-Fri 22:00-06:00")
        #expect(window.isOpen(at: Self.time("2026-11-20T22:00:00Z"), Self.plain))
        #expect(window.isOpen(at: Self.time("2026-11-21T05:59:59Z"), Self.plain))
        #expect(!window.isOpen(at: Self.time("2026-11-21T22:00:00Z"), Self.plain))
        #expect(!window.isOpen(at: Self.time("2026-11-23T05:00:00Z"), Self.plain))
        let opening = window.opening(after: Self.time("2026-11-21T06:00:00Z"), Self.plain)
        #expect(opening == Self.time("2026-11-23T22:00:00Z"))
    }

    @Test func `the earliest of several spans opens`() throws {
        let window = try Self.window("Wed 12:00-13:00", "Tue 20:00-21:00", "Wed 08:00-09:00")
        #expect(
            window.opening(after: Self.time("2026-11-24T22:00:00Z"), Self.plain)
                == Self.time("2026-11-25T08:00:00Z"))
        // The next opening is on the same day of the following week.
        let once = try Self.window("Fri 00:00-00:01")
        #expect(
            once.opening(after: Self.time("2026-11-20T00:01:00Z"), Self.plain) == Self.time("2026-11-27T00:00:00Z"))
    }

    @Test func `a window opens at the local hour on both sides of a clock change`() throws {
        let window = try Self.window("22:00-06:00")
        #expect(
            window.opening(after: Self.time("2026-03-28T12:00:00Z"), Self.berlin)
                == Self.time("2026-03-28T21:00:00Z"))
        #expect(
            window.opening(after: Self.time("2026-03-29T12:00:00Z"), Self.berlin)
                == Self.time("2026-03-29T20:00:00Z"))
        #expect(
            window.opening(after: Self.time("2026-10-25T12:00:00Z"), Self.berlin)
                == Self.time("2026-10-25T21:00:00Z"))
    }

    @Test func `hours that a clock change skips do not occur, and the remaining ones do`() throws {
        let none = try Self.window("02:15-02:45")
        #expect(
            none.opening(after: Self.time("2026-03-29T00:00:00Z"), Self.berlin)
                == Self.time("2026-03-30T00:15:00Z"))
        let half = try Self.window("02:30-03:30")
        // 02:30 does not exist; the clocks continue at 03:00.
        #expect(
            half.opening(after: Self.time("2026-03-29T00:00:00Z"), Self.berlin)
                == Self.time("2026-03-29T01:00:00Z"))
    }

    @Test func `hours that a clock change repeats open twice`() throws {
        let window = try Self.window("02:15-02:45")
        #expect(
            window.opening(after: Self.time("2026-10-25T00:00:00Z"), Self.berlin)
                == Self.time("2026-10-25T00:15:00Z"))
        #expect(!window.isOpen(at: Self.time("2026-10-25T00:50:00Z"), Self.berlin))
        #expect(
            window.opening(after: Self.time("2026-10-25T00:50:00Z"), Self.berlin)
                == Self.time("2026-10-25T01:15:00Z"))
        // The window closes at 02:30 and opens again when the clocks go back to 02:00.
        let night = try Self.window("22:00-02:30")
        #expect(
            night.opening(after: Self.time("2026-10-25T00:40:00Z"), Self.berlin)
                == Self.time("2026-10-25T01:00:00Z"))
    }

    @Test func `a skipped day has no window`() throws {
        // The local date Friday, June 12th, does not exist in that zone.
        let window = try Self.window("Fri 10:00-11:00")
        #expect(
            window.opening(after: Self.time("2026-06-12T09:00:00Z"), Self.samoa)
                == Self.time("2026-06-18T20:00:00Z"))
    }

    /// Compares the computed opening with a check of every minute.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `the opening is the first open time`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<10 {
            let spans = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                let start = Int.random(in: 0..<1_440, using: &generator)
                var end = Int.random(in: 0...1_440, using: &generator)
                if end == start { end = (start + 1) % 1_441 }
                let days = (0..<7).filter { _ in Bool.random(using: &generator) }
                return RunWindow.Span(days: days.isEmpty ? [0] : Set(days), start: start, end: end)
            }
            let window = RunWindow(spans)
            let base = Self.time(seed.isMultiple(of: 2) ? "2026-03-27T00:00:00Z" : "2026-10-23T00:00:00Z").seconds
            let start = base + Int64.random(in: 0..<4 * 86_400, using: &generator)
            let now = Timestamp(seconds: start, nanoseconds: 500_000_000)
            guard !window.isOpen(at: now, Self.berlin) else { continue }
            let opening = window.opening(after: now, Self.berlin)
            #expect(window.isOpen(at: opening, Self.berlin))
            var minute = start - start % 60 + 60
            while minute < opening.seconds {
                #expect(!window.isOpen(at: Timestamp(seconds: minute, nanoseconds: 0), Self.berlin))
                minute += 60
            }
        }
    }

    @Test(arguments: [
        ("Mon-Fri 22:00-06:00", [1, 2, 3, 4, 5]), ("Sat-Mon 1:00-2:00", [0, 1, 6]), ("sun 0:00-24:00", [0]),
        ("Monday,Wed,FRIDAY 08:00-09:00", [1, 3, 5]), ("08:00-09:00", [0, 1, 2, 3, 4, 5, 6]),
    ])
    func `days are parsed`(text: String, days: [Int]) throws {
        #expect(try WindowText.parse(text).days == Set(days))
    }

    @Test(arguments: [
        "", "22:00", "22-06", "22:00-06:00-07:00", "24:01-06:00", "22:60-06:00", "+1:00-2:00", "Mon- 1:00-2:00",
        "Mon,, 1:00-2:00", "Mon-Tue-Wed 1:00-2:00", "1:00-1:00", "1:0-2:00", "٢:00-3:00", "24:00-01:00",
    ])
    func `an invalid window is an error`(text: String) {
        #expect(throws: Problem.self) { try WindowText.parse(text) }
    }
}
