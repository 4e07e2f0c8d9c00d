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

    @Test func `of a moved file both names are busy, but only the new one is worked on`() {
        var lanes = Lanes(limit: 3)
        let job = Job(id: JobID("1"), rule: "r", event: .sample(.moved, "/b", from: "/a"))
        lanes.start([job])
        #expect(lanes.busy == ["/a", "/b"])
        #expect(lanes.attempt(of: "r", at: "/b") == job.id)
        #expect(lanes.attempt(of: "r", at: "/a") == nil)
        lanes.end(job.id)
        #expect(lanes.busy.isEmpty)
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

    /// As the dispatcher does it, with rules that come and go, jobs of any length, and a rule that has very many.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `any play keeps all limits, the order within a rule, and every rule's turn`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let isShared = !seed.isMultiple(of: 2)
        let rules = ["a", "b", "c", "d"].map { name in
            Rule.sample(name, ["/in/*"], concurrency: Int.random(in: 1...4, using: &generator))
        }
        let limit = Int.random(in: 1...6, using: &generator)
        let journal = MemoryJournal()
        var lanes = Lanes(limit: limit)
        var running: [Job] = []
        var accepted: [String: [String]] = [:]
        var begun: [String: [String]] = [:]
        // How many jobs of others have begun while a rule had one that could.
        var passed: [String: Int] = [:]
        var serial = 0
        var now = ContinuousClock.now

        func accept(_ rule: String, _ path: PathBytes) {
            serial += 1
            let id = String(serial)
            journal.accept([Self.job(id, rule: rule, path: path)], [], now: now)
            accepted[rule, default: []].append(id)
        }
        for number in 0..<300 { accept("a", PathBytes("/many/\(number)")) }
        for step in 0..<2_000 {
            now += .milliseconds(1)
            if step < 1_500, Int.random(in: 0..<4, using: &generator) == 0 {
                let rule = try #require(rules.randomElement(using: &generator)).name
                // Each path is used once in a rule, so that nothing is merged; odd seeds have rules share them.
                let folder = isShared ? "shared" : rule
                accept(rule, PathBytes("/\(folder)/\(accepted[rule, default: []].count)"))
            }
            if !running.isEmpty, Int.random(in: 0..<3, using: &generator) > 0 {
                let index = Int.random(in: running.indices, using: &generator)
                let job = running.remove(at: index)
                lanes.end(job.id)
                _ = journal.record(job, nil, .ended(.succeeded, Outcome(.succeeded)), [])
            }
            var isProgress = true
            while isProgress {
                isProgress = false
                for name in lanes.round(journal.pendingRules) {
                    let rule = try #require(rules.first { $0.name == name })
                    guard lanes.room(for: rule) > 0 else { continue }
                    guard let job = journal.lease(rule: name, limit: 1, busy: lanes.busy, now: now).first else {
                        continue
                    }
                    #expect(!running.contains { $0.event.path == job.event.path })
                    lanes.start([job])
                    running.append(job)
                    begun[name, default: []].append(job.id.description)
                    passed[name] = 0
                    for other in journal.pendingRules where other != name {
                        guard let other = rules.first(where: { $0.name == other }), lanes.count(of: other.name) == 0
                        else { continue }
                        passed[other.name, default: 0] += 1
                    }
                    isProgress = true
                }
            }
            #expect(running.count <= limit && running.count == lanes.count)
            for rule in rules {
                #expect(running.count { $0.rule == rule.name } == lanes.count(of: rule.name))
                #expect(lanes.count(of: rule.name) <= rule.concurrency)
                // Where nobody else works on its paths, each other rule goes before it once at most.
                if !isShared { #expect(passed[rule.name, default: 0] < rules.count) }
            }
        }
        for rule in rules where !isShared {
            let order = begun[rule.name, default: []]
            #expect(order == Array(accepted[rule.name, default: []].prefix(order.count)))
        }
        #expect(begun.count == rules.count)
    }
}
