import Rules
import Testing

struct DurationTextTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let text: String
        let duration: Duration
        var testDescription: String { "'\(text)' is \(duration)" }
    }

    static let cases = [
        Case(text: "0", duration: .zero),
        Case(text: "0s", duration: .zero),
        Case(text: "500ms", duration: .milliseconds(500)),
        Case(text: "2s", duration: .seconds(2)),
        Case(text: "1.5s", duration: .milliseconds(1_500)),
        Case(text: "0.25h", duration: .seconds(900)),
        Case(text: "10m", duration: .seconds(600)),
        Case(text: "1h", duration: .seconds(3_600)),
        Case(text: "1d", duration: .seconds(86_400)),
        Case(text: "365d", duration: .seconds(31_536_000)),
        Case(text: "1m30s", duration: .seconds(90)),
        Case(text: "1d2h3m4s5ms", duration: .milliseconds(93_784_005)),
        Case(text: "1.000000001s", duration: .nanoseconds(1_000_000_001)),
        Case(text: "007s", duration: .seconds(7)),
    ]

    @Test(arguments: cases)
    func `a duration is a number and a unit`(example: Case) throws {
        #expect(try DurationText.parse(example.text) == example.duration)
    }

    struct Wrong: Sendable, CustomTestStringConvertible {
        let text: String
        let help: String
        var testDescription: String { "'\(text)' is refused" }
    }

    static let wrong = [
        Wrong(text: "", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "2", help: "write '2s' or '2m'"),
        Wrong(text: "1.5", help: "write '1.5s' or '1.5m'"),
        Wrong(text: "500", help: "write '500ms' or '500s'"),
        Wrong(text: "2 s", help: "write '2s'"),
        Wrong(text: "2s ", help: "write '2s'"),
        Wrong(text: "1m 30s", help: "write '1m30s'"),
        Wrong(text: "10 minutes", help: "write '10m'"),
        Wrong(text: "2H", help: "write '2h'"),
        Wrong(text: "1m30", help: "write '1m30s'"),
        Wrong(text: "30s1m", help: "write it as in '1h30m'"),
        Wrong(text: "1s1s", help: "write it as in '1h30m'"),
        Wrong(text: "366d", help: "write '365d' at most"),
        Wrong(text: "365d1ms", help: "write '365d' at most"),
        Wrong(text: "999999999999999999d", help: "write '365d' at most"),
        Wrong(text: "99999999999999999999s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "-2s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "+2s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: ".5s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "1.s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "1..5s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "1,5s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "1e3s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "2 weeks", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "٢s", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
        Wrong(text: "soon", help: "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"),
    ]

    @Test(arguments: wrong)
    func `an invalid duration is refused with help`(example: Wrong) {
        do throws(Problem) {
            let duration = try DurationText.parse(example.text)
            Issue.record("'\(example.text)' is \(duration)")
        } catch {
            #expect(error.help == example.help)
        }
    }
}
