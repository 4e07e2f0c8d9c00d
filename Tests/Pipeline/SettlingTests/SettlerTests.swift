import Settling
import Testing

struct SettlerTests {
    let start = ContinuousClock.now

    private func add(
        _ settler: inout Settler<String, Int>, _ key: String, at offset: Duration, quiet: Duration = .seconds(2)
    ) {
        settler.add(key, note: 1, quiet: quiet, at: start + offset) { $0 += 1 }
    }

    private func due(_ settler: inout Settler<String, Int>, at offset: Duration) -> [String] {
        settler.takeDue(at: start + offset).map(\.key)
    }

    @Test func `a second write restarts the settle time`() {
        var settler = Settler<String, Int>()
        add(&settler, "a", at: .zero)
        add(&settler, "a", at: .seconds(1))
        #expect(due(&settler, at: .seconds(2)).isEmpty)
        #expect(due(&settler, at: .milliseconds(2999)).isEmpty)
        #expect(due(&settler, at: .seconds(3)) == ["a"])
        #expect(due(&settler, at: .seconds(9)).isEmpty)
    }

    @Test func `hints for one path merge`() {
        var settler = Settler<String, Int>()
        for step in 0..<50 { add(&settler, "a", at: .milliseconds(10 * step)) }
        let taken = settler.takeDue(at: start + .seconds(3))
        #expect(taken.map(\.entry.note) == [50])
        #expect(settler.count == 0)
    }

    @Test func `a busy path does not delay another`() {
        var settler = Settler<String, Int>()
        add(&settler, "quiet", at: .zero)
        for step in 0..<40 { add(&settler, "busy", at: .milliseconds(100 * step)) }
        #expect(due(&settler, at: .seconds(2)) == ["quiet"])
        #expect(settler.nextDeadline.map { $0 > start + .seconds(2) } == true)
        #expect(due(&settler, at: .milliseconds(5900)) == ["busy"])
    }

    @Test func `paths are returned in the order of their deadlines`() {
        var settler = Settler<String, Int>()
        add(&settler, "late", at: .seconds(1))
        add(&settler, "early", at: .zero)
        add(&settler, "middle", at: .milliseconds(500))
        #expect(due(&settler, at: .seconds(5)) == ["early", "middle", "late"])
    }

    @Test func `a settle time of zero is due at once`() {
        var settler = Settler<String, Int>()
        add(&settler, "a", at: .zero, quiet: .zero)
        #expect(settler.nextDeadline == start)
        #expect(due(&settler, at: .zero) == ["a"])
    }

    @Test func `a shorter settle time brings the deadline forward`() {
        var settler = Settler<String, Int>()
        add(&settler, "a", at: .zero, quiet: .seconds(60))
        add(&settler, "a", at: .seconds(1), quiet: .zero)
        #expect(due(&settler, at: .seconds(1)) == ["a"])
        #expect(due(&settler, at: .seconds(100)).isEmpty)
    }

    @Test func `a path that is put back keeps its note and counts its rounds`() {
        var settler = Settler<String, Int>()
        add(&settler, "a", at: .zero)
        for (key, entry) in settler.takeDue(at: start + .seconds(2)) {
            settler.putBack(key, entry, until: start + .seconds(3))
        }
        let again = settler.takeDue(at: start + .seconds(3))
        #expect(again.map(\.entry.rounds) == [1])
        #expect(again.map(\.entry.since) == [start])
    }

    @Test func `a hint after a path was put back restarts the rounds`() {
        var settler = Settler<String, Int>()
        add(&settler, "a", at: .zero)
        for (key, entry) in settler.takeDue(at: start + .seconds(2)) {
            settler.putBack(key, entry, until: start + .seconds(3))
        }
        add(&settler, "a", at: .milliseconds(2500))
        #expect(due(&settler, at: .seconds(3)).isEmpty)
        #expect(settler.takeDue(at: start + .milliseconds(4500)).map(\.entry.rounds) == [0])
    }

    @Test func `S37 a path that never settles is due when its longest wait is over, and again later`() {
        var settler = Settler<String, Int>()
        var due: [Int] = []
        for step in 0...250 {
            settler.add(
                "a", note: 0, quiet: .seconds(2), longest: .seconds(10), at: start + .milliseconds(100 * step)
            ) { _ in }
            if !settler.takeDue(at: start + .milliseconds(100 * step)).isEmpty { due.append(step) }
        }
        // The path becomes dirty again with the first write after it was taken.
        #expect(due == [100, 201])
    }

    @Test func `S37 the longest wait counts from the first hint, even if the path was put back`() {
        var settler = Settler<String, Int>()
        func add(at offset: Duration) {
            settler.add("a", note: 0, quiet: .seconds(2), longest: .seconds(5), at: start + offset) { _ in }
        }
        add(at: .zero)
        for (key, entry) in settler.takeDue(at: start + .seconds(2)) {
            settler.putBack(key, entry, until: start + .seconds(60))
        }
        add(at: .seconds(4))
        #expect(settler.takeDue(at: start + .milliseconds(4_999)).isEmpty)
        #expect(settler.takeDue(at: start + .seconds(5)).map(\.entry.since) == [start])
    }

    @Test func `S37 a path that settles sooner does not wait for the longest time`() {
        var settler = Settler<String, Int>()
        settler.add("a", note: 0, quiet: .seconds(2), longest: .seconds(10), at: start) { _ in }
        #expect(due(&settler, at: .seconds(2)) == ["a"])
    }

    @Test func `random traffic is due exactly when it has been quiet`() {
        var random = SystemRandomNumberGenerator()
        var settler = Settler<Int, Int>()
        var last: [Int: Int] = [:]
        for step in 0..<20_000 {
            let key = Int.random(in: 0..<200, using: &random)
            if Int.random(in: 0..<3, using: &random) > 0 {
                settler.add(key, note: 0, quiet: .milliseconds(50), at: start + .milliseconds(step)) { _ in }
                last[key] = step
            }
            for (key, _) in settler.takeDue(at: start + .milliseconds(step)) {
                #expect(last[key] == step - 50)
                last[key] = nil
            }
        }
        #expect(last.values.allSatisfy { $0 > 19_999 - 50 })
    }

    @Test func `the last of very many paths are returned as if there had been few`() {
        var settler = Settler<Int, Int>()
        func add(_ key: Int, at offset: Duration) {
            settler.add(key, note: 1, quiet: .seconds(2), at: start + offset) { $0 += 1 }
        }
        for number in 0..<10_000 { add(number, at: .milliseconds(number)) }
        // Some paths are touched again, so that their old deadlines must be skipped.
        let late = Array(stride(from: 9_000, to: 10_000, by: 2))
        for number in late { add(number, at: .seconds(10)) }
        var taken: [Int] = []
        for offset in [11_500, 11_999, 12_000] {
            taken += settler.takeDue(at: start + .milliseconds(offset)).map(\.key)
        }
        #expect(taken == Array(0..<9_000) + late.map { $0 + 1 } + late)
        #expect(settler.count == 0 && settler.nextDeadline == nil)
        add(1, at: .seconds(60))
        #expect(settler.takeDue(at: start + .seconds(62)).map(\.key) == [1])
    }

    @Test func `a note remains valid when its neighbors are taken`() {
        var settler = Settler<String, Int>()
        for number in 0..<5_000 { add(&settler, "\(number)", at: .zero) }
        settler.add("stays", note: 7, quiet: .seconds(3_600), at: start) { _ in }
        #expect(due(&settler, at: .seconds(2)).count == 5_000)
        #expect(settler.waiting("stays")?.note == 7)
        #expect(settler.nextDeadline == start + .seconds(3_600))
    }
}
