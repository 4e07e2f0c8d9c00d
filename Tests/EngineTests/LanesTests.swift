import Engine
import FileEvents
import Journaling
import PluginProtocol
import Rules
import TestKit
import Testing

struct LanesTests {
    static func job(_ id: String, rule: String, path: PathBytes) -> Job {
        Job(id: JobID(id), rule: rule, event: .sample(.created, path))
    }

    @Test func `a job takes a slot of the program and one of its rule`() {
        var lanes = Lanes(limit: 3)
        let wide = Rule.sample("wide", ["/in/*"], concurrency: 9)
        let narrow = Rule.sample("narrow", ["/in/*"], concurrency: 1)
        #expect(lanes.room(for: wide) == 3)
        #expect(lanes.room(for: narrow) == 1)
        lanes.start([Self.job("1", rule: "narrow", path: "/a")])
        #expect(lanes.room(for: narrow) == 0)
        #expect(lanes.room(for: wide) == 2)
        lanes.start([Self.job("2", rule: "wide", path: "/b")])
        lanes.start([Self.job("3", rule: "wide", path: "/c")])
        #expect(lanes.room(for: wide) == 0)
        #expect(lanes.count == 3)
        #expect(lanes.busy == ["/a", "/b", "/c"])
        lanes.end(JobID("1"))
        #expect(lanes.room(for: narrow) == 1)
        #expect(lanes.busy == ["/b", "/c"])
    }

    @Test func `rules take turns, beginning after the one served last`() {
        var lanes = Lanes(limit: 9)
        #expect(lanes.round(["b", "a", "c"]) == ["a", "b", "c"])
        lanes.start([Self.job("1", rule: "b", path: "/1")])
        #expect(lanes.round(["b", "a", "c"]) == ["c", "a", "b"])
        lanes.start([Self.job("2", rule: "c", path: "/2")])
        #expect(lanes.round(["b", "a", "c"]) == ["a", "b", "c"])
        #expect(lanes.round([]).isEmpty)
        // The one served last need not be there any more.
        #expect(lanes.round(["d", "a"]) == ["d", "a"])
    }

    /// One slot, three rules, of which one has a thousand jobs: as the dispatcher does it.
    @Test func `a rule with a thousand jobs does not starve those with few`() {
        let journal = MemoryJournal()
        let now = ContinuousClock.now
        for number in 0..<1_000 {
            journal.accept([Self.job("l\(number)", rule: "large", path: PathBytes("/l\(number)"))], [], now: now)
        }
        let few = [Self.job("a", rule: "alpha", path: "/a"), Self.job("z", rule: "zeta", path: "/z")]
        journal.accept(few, [], now: now)
        var lanes = Lanes(limit: 1)
        var order: [String] = []
        while let rule = lanes.round(journal.pendingRules).first,
            let job = journal.lease(rule: rule, limit: 1, busy: lanes.busy, now: now).first
        {
            lanes.start([job])
            lanes.end(job.id)
            _ = journal.record(job, nil, .ended(.succeeded, Outcome(.succeeded)), [])
            order.append(job.rule)
        }
        #expect(order.count == 1_002)
        #expect(Set(order.prefix(3)) == ["alpha", "large", "zeta"])
    }
}
