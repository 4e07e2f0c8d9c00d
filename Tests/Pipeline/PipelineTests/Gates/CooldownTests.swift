import Engine
import Gates
import System
import Testing
import TestKit

struct CooldownTests {
    @Test func `a path cools down after a run, separately and no longer than configured`() {
        let now = ContinuousClock.now
        var cooldown = Cooldown(.seconds(10))
        cooldown.record("/a", at: now)
        #expect(cooldown.end(of: "/a", at: now) == now + .seconds(10))
        #expect(cooldown.end(of: "/b", at: now) == nil)
        #expect(cooldown.end(of: "/a", at: now + .milliseconds(9_999)) == now + .seconds(10))
        #expect(cooldown.end(of: "/a", at: now + .seconds(10)) == nil)
        cooldown.record("/b", at: now + .seconds(10))
        #expect(cooldown.count == 1)
    }

    @Test func `a later run for the path extends the cool-down`() {
        let now = ContinuousClock.now
        var cooldown = Cooldown(.seconds(10))
        cooldown.record("/a", at: now)
        cooldown.record("/a", at: now + .seconds(4))
        #expect(cooldown.end(of: "/a", at: now + .seconds(11)) == now + .seconds(14))
        #expect(cooldown.end(of: "/a", at: now + .seconds(14)) == nil)
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `the cool-down table agrees with a list of all runs and drops expired paths`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var cooldown = Cooldown(.milliseconds(100))
        var ends: [PathBytes: ContinuousClock.Instant] = [:]
        var now = ContinuousClock.now
        for _ in 0..<3_000 {
            now += .milliseconds(Int.random(in: 0...7, using: &generator))
            let path = PathBytes("/\(Int.random(in: 0..<60, using: &generator))")
            ends = ends.filter { $0.value > now }
            #expect(cooldown.end(of: path, at: now) == ends[path])
            if Bool.random(using: &generator) {
                cooldown.record(path, at: now)
                ends[path] = now + .milliseconds(100)
                #expect(cooldown.count == ends.count)
            }
        }
    }
}
