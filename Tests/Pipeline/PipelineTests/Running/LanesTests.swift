import Engine
import FileEvents
import Jobs
import Rules
import Running
import System
import Testing
import TestKit

struct LanesTests {
    static func job(_ id: String, rule: String, path: PathBytes) -> Job {
        Job(id: JobID(id), rule: rule, event: .sample(.created, path))
    }

    static let start = ContinuousClock.now

    /// Rules whose actions are programs, in the order of the names.
    static func rules(_ names: String..., concurrency: Int = 1) -> [Rule] {
        names.map { Rule.sample($0, ["/in/*"], concurrency: concurrency) }
    }

    /// Starts an attempt of a rule at a path of its own.
    static func run(_ lanes: inout Lanes, _ rule: String, _ id: String, at time: Duration = .zero) {
        lanes.start([job(id, rule: rule, path: PathBytes("/\(id)"))], at: start + time)
    }

    static func end(_ lanes: inout Lanes, _ id: String, at time: Duration) {
        lanes.end(JobID(id), at: start + time)
    }

    /// Fills the slots as the dispatcher does while only these rules have due work.
    ///
    /// Returns the rules that started.
    static func fill(_ lanes: inout Lanes, _ rules: [Rule], due: Set<String>, at time: Duration) -> [String] {
        var started: [String] = []
        lanes.startFilling()
        repeat {
            for level in lanes.levels(due) {
                for name in lanes.round(level, at: start + time) {
                    guard let rule = rules.first(where: { $0.name == name }), lanes.count(of: name) < rule.concurrency
                    else { continue }
                    if lanes.capacity(for: rule, at: start + time) > 0 {
                        run(&lanes, name, "\(name) \(time)", at: time)
                        started.append(name)
                    } else if lanes.count(of: name) == 0 {
                        lanes.wait(name, at: start + time)
                    }
                }
            }
        } while lanes.endFilling()
        return started
    }

    @Test func `a job takes a slot of the program and a slot of its rule`() {
        let wide = Rule.sample("wide", ["/in/*"], concurrency: 9)
        let narrow = Rule.sample("narrow", ["/in/*"], concurrency: 1)
        var lanes = Lanes(limit: 3, rules: [wide, narrow])
        #expect(lanes.capacity(for: wide, at: Self.start) == 3)
        #expect(lanes.capacity(for: narrow, at: Self.start) == 1)
        Self.run(&lanes, "narrow", "a")
        #expect(lanes.capacity(for: narrow, at: Self.start) == 0)
        #expect(lanes.capacity(for: wide, at: Self.start) == 2)
        Self.run(&lanes, "wide", "b")
        Self.run(&lanes, "wide", "c")
        #expect(lanes.capacity(for: wide, at: Self.start) == 0)
        #expect(lanes.count == 3)
        Self.end(&lanes, "a", at: .seconds(1))
        #expect(lanes.capacity(for: narrow, at: Self.start) == 1)
    }

    // MARK: Kinds

    @Test func `brief actions take no slot and have a separate limit`() {
        let brief = ["log", "move"].map { Rule.sample($0, ["/in/*"], actions: [$0], concurrency: 9) }
        let program = Rule.sample("program", ["/in/*"], concurrency: 9)
        var lanes = Lanes(limit: 2, rules: brief + [program])
        Self.run(&lanes, "program", "1")
        Self.run(&lanes, "program", "2")
        #expect(lanes.capacity(for: program, at: Self.start) == 0)
        #expect(lanes.capacity(for: brief[0], at: Self.start) == 2)
        Self.run(&lanes, "log", "3")
        Self.run(&lanes, "move", "4")
        #expect(lanes.capacity(for: brief[0], at: Self.start) == 0)
        Self.end(&lanes, "1", at: .seconds(1))
        #expect(lanes.capacity(for: program, at: Self.start) == 1)
        #expect(lanes.capacity(for: brief[0], at: Self.start) == 0)
    }

    @Test(arguments: ["webhook", "a program", "a program of ready", "a program after a failure"])
    func `an action that may take long takes a slot`(_ what: String) {
        let log = Rule.sample("r", ["/in/*"], actions: ["log"])
        let program = Rule.sample("p", ["/in/*"], actions: ["x"], isProgram: true).actions
        let rule =
            switch what {
            case "webhook": Rule.sample("r", ["/in/*"], actions: ["webhook"])
            case "a program": log.with { $0.actions += program }
            case "a program of ready":
                log.with {
                    $0.ready = Readiness()
                    $0.ready?.command = [Template(literal: "/bin/true")]
                }
            default: log.with { $0.onFailure = program }
            }
        #expect(rule.takesSlot)
        #expect(!log.takesSlot)
    }

    // MARK: Turns

    @Test func `rules take turns by the slot time that they have used, whatever their names are`() {
        let rules = Self.rules("c", "b", "a")
        var lanes = Lanes(limit: 1, rules: rules)
        let lengths = ["c": 10, "b": 1, "a": 2]
        var time = 0
        var used: [String: Int] = [:]
        var order: [String] = []
        while time < 600 {
            let name = Self.fill(&lanes, rules, due: ["a", "b", "c"], at: .seconds(time)).first ?? ""
            order.append(name)
            time += lengths[name] ?? 1
            used[name, default: 0] += lengths[name] ?? 1
            Self.end(&lanes, "\(name) \(Duration.seconds(time - (lengths[name] ?? 1)))", at: .seconds(time))
        }
        // No rule has used any time yet, so they start in their order.
        #expect(order.prefix(3) == ["c", "b", "a"])
        #expect(lengths.keys.allSatisfy { abs((used[$0] ?? 0) - 200) <= 10 }, "\(used)")
    }

    @Test func `an idle rule accumulates no credit but goes before a rule that runs continuously`() {
        let rules = Self.rules("busy", "late")
        var lanes = Lanes(limit: 1, rules: rules)
        for time in 0..<100 {
            Self.run(&lanes, "busy", "\(time)", at: .seconds(time))
            Self.end(&lanes, "\(time)", at: .seconds(time + 1))
        }
        var order: [String] = []
        for time in 100..<106 {
            let name = Self.fill(&lanes, rules, due: ["busy", "late"], at: .seconds(time)).first ?? ""
            order.append(name)
            Self.end(&lanes, "\(name) \(Duration.seconds(time))", at: .seconds(time + 1))
        }
        #expect(order.first == "late")
        #expect(order.count { $0 == "late" } == 3, "\(order)")
    }

    @Test func `the order of the rules decides only what starts first`() {
        let rules = Self.rules("z", "y", "x", "w")
        var lanes = Lanes(limit: 2, rules: rules)
        #expect(Self.fill(&lanes, rules, due: ["w", "x", "y", "z"], at: .zero) == ["z", "y"])
        Self.end(&lanes, "z \(Duration.zero)", at: .seconds(1))
        Self.end(&lanes, "y \(Duration.zero)", at: .seconds(2))
        // The rules that have used no time get the slots, whatever comes before them.
        #expect(Self.fill(&lanes, rules, due: ["w", "x", "y", "z"], at: .seconds(2)) == ["x", "w"])
        for name in ["w", "x"] { Self.end(&lanes, "\(name) \(Duration.seconds(2))", at: .seconds(3)) }
        // With a slot for each rule, the used time has no effect.
        #expect(Self.fill(&lanes, rules, due: ["y", "z"], at: .seconds(3)) == ["z", "y"])
    }

    @Test func `when nothing runs or waits, the used time is reset`() {
        let rules = Self.rules("first", "second")
        var lanes = Lanes(limit: 1, rules: rules)
        Self.run(&lanes, "first", "1")
        Self.end(&lanes, "1", at: .seconds(60))
        #expect(lanes.round(["first", "second"], at: Self.start + .seconds(60)) == ["second", "first"])
        #expect(Self.fill(&lanes, rules, due: [], at: .seconds(60)).isEmpty)
        #expect(lanes.round(["first", "second"], at: Self.start + .seconds(61)) == ["first", "second"])
    }

    // MARK: Extra slots

    @Test func `a rule that waits for a second gets an extra slot and keeps it while it has due work`() {
        let rules = Self.rules("slow", "quick", "other")
        var lanes = Lanes(limit: 1, extra: 1, rules: rules)
        #expect(Self.fill(&lanes, rules, due: ["slow", "quick"], at: .zero) == ["slow"])
        #expect(lanes.waiting.keys.sorted() == ["quick"])
        #expect(lanes.deadline == Self.start + .seconds(1))
        #expect(Self.fill(&lanes, rules, due: ["slow", "quick"], at: .milliseconds(999)).isEmpty)
        #expect(Self.fill(&lanes, rules, due: ["slow", "quick"], at: .seconds(1)) == ["quick"])
        #expect(lanes.waiting.isEmpty && lanes.deadline == nil)
        // It continues without a wait, although another rule has not used any time yet.
        for step in 1..<9 {
            Self.end(&lanes, "quick \(Duration.seconds(step))", at: .seconds(step + 1))
            #expect(Self.fill(&lanes, rules, due: ["slow", "quick", "other"], at: .seconds(step + 1)) == ["quick"])
        }
        #expect(lanes.waiting.keys.sorted() == ["other"])
        // No slot is left, so there is no deadline to wait for.
        #expect(lanes.deadline == nil)
        // The waiting rule takes the released slot in the same turn.
        Self.end(&lanes, "quick \(Duration.seconds(9))", at: .seconds(10))
        #expect(Self.fill(&lanes, rules, due: ["slow", "other"], at: .seconds(10)) == ["other"])
        #expect(lanes.count == 2)
    }

    @Test func `a rule that already runs an action gets no extra slot, and a strict limit allows none`() {
        let rules = Self.rules("slow", "quick") + [.sample("wide", ["/in/*"], concurrency: 9)]
        var lanes = Lanes(limit: 2, extra: 2, rules: rules)
        #expect(Self.fill(&lanes, rules, due: ["slow", "wide"], at: .zero) == ["slow", "wide"])
        #expect(Self.fill(&lanes, rules, due: ["slow", "wide"], at: .seconds(5)).isEmpty)
        #expect(lanes.deadline == nil)
        var strict = Lanes(limit: 1, rules: rules)
        #expect(Self.fill(&strict, rules, due: ["slow", "quick"], at: .zero) == ["slow"])
        #expect(Self.fill(&strict, rules, due: ["slow", "quick"], at: .seconds(5)).isEmpty)
        #expect(strict.waiting.keys.sorted() == ["quick"] && strict.deadline == nil)
    }

    @Test func `a rule that had no due work in between waits from the start`() {
        let rules = Self.rules("slow", "quick")
        var lanes = Lanes(limit: 1, extra: 1, rules: rules)
        _ = Self.fill(&lanes, rules, due: ["slow", "quick"], at: .zero)
        #expect(Self.fill(&lanes, rules, due: ["slow"], at: .milliseconds(900)).isEmpty)
        #expect(lanes.deadline == nil)
        #expect(Self.fill(&lanes, rules, due: ["slow", "quick"], at: .milliseconds(1_100)).isEmpty)
        #expect(lanes.deadline == Self.start + .milliseconds(2_100))
    }

    /// One slot and three rules, one of which has a thousand jobs, driven as by the dispatcher.
    @Test func `a rule with a thousand jobs does not starve those with few`() {
        var backlog = Backlog()
        var now = ContinuousClock.now
        for number in 0..<1_000 { backlog.add(Self.job("l\(number)", rule: "large", path: PathBytes("/l\(number)"))) }
        for rule in ["alpha", "zeta"] { backlog.add(Self.job(rule, rule: rule, path: PathBytes("/\(rule)"))) }
        var lanes = Lanes(limit: 1, rules: Self.rules("large", "alpha", "zeta"))
        var order: [String] = []
        while let rule = lanes.round(backlog.rules, at: now).first, let job = backlog.take(rule) {
            lanes.start([job], at: now)
            now += .milliseconds(1)
            lanes.end(job.id, at: now)
            backlog.release(job)
            order.append(job.rule)
        }
        #expect(order.count == 1_002)
        #expect(Set(order.prefix(3)) == ["alpha", "large", "zeta"])
    }

    /// Driven as by the dispatcher, with rules that come and go, jobs of any length and one rule with very many jobs.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `every random run keeps all limits, the order within a rule and every rule's turn`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let isShared = !seed.isMultiple(of: 2)
        let rules = ["a", "b", "c", "d"].map { name in
            Rule.sample(name, ["/in/*"], concurrency: Int.random(in: 1...4, using: &generator))
        }
        let limit = Int.random(in: 1...6, using: &generator)
        var backlog = Backlog()
        var lanes = Lanes(limit: limit, extra: 2, rules: rules)
        var running: [Job] = []
        var accepted: [String: [String]] = [:]
        var started: [String: [String]] = [:]
        // How long each rule has had a job that could start.
        var waited: [String: Duration] = [:]
        var serial = 0
        var now = ContinuousClock.now

        func accept(_ rule: String, _ path: PathBytes) {
            serial += 1
            let id = String(serial)
            backlog.add(Self.job(id, rule: rule, path: path))
            accepted[rule, default: []].append(id)
        }
        for number in 0..<300 { accept("a", PathBytes("/many/\(number)")) }
        for step in 0..<2_000 {
            now += .milliseconds(1)
            if step < 1_500, Int.random(in: 0..<4, using: &generator) == 0 {
                let rule = try #require(rules.randomElement(using: &generator)).name
                // Each path is used once per rule, so that nothing is merged. With odd seeds, rules share paths.
                let directory = isShared ? "shared" : rule
                accept(rule, PathBytes("/\(directory)/\(accepted[rule, default: []].count)"))
            }
            if !running.isEmpty, Int.random(in: 0..<3, using: &generator) > 0 {
                let index = Int.random(in: running.indices, using: &generator)
                let job = running.remove(at: index)
                lanes.end(job.id, at: now)
                backlog.release(job)
            }
            var isProgress = true
            lanes.startFilling()
            while isProgress {
                isProgress = false
                for name in lanes.round(backlog.rules, at: now) {
                    let rule = try #require(rules.first { $0.name == name })
                    guard lanes.capacity(for: rule, at: now) > 0 else {
                        if lanes.count(of: name) == 0, backlog.hasDue(name) { lanes.wait(name, at: now) }
                        continue
                    }
                    guard let job = backlog.take(name) else { continue }
                    lanes.start([job], at: now)
                    running.append(job)
                    started[name, default: []].append(job.id.description)
                    waited[name] = .zero
                    isProgress = true
                }
                if !isProgress { isProgress = lanes.endFilling() }
            }
            #expect(running.count <= limit + 2 && running.count == lanes.count)
            for rule in rules where lanes.count(of: rule.name) == 0 && lanes.waiting[rule.name] != nil {
                waited[rule.name, default: .zero] += .milliseconds(1)
            }
            for rule in rules {
                #expect(running.count { $0.rule == rule.name } == lanes.count(of: rule.name))
                #expect(lanes.count(of: rule.name) <= rule.concurrency)
                // The attempts are short, so a rule's turn comes long before an extra slot does.
                #expect(waited[rule.name, default: .zero] < .milliseconds(200))
            }
        }
        for rule in rules where !isShared {
            let order = started[rule.name, default: []]
            #expect(order == Array(accepted[rule.name, default: []].prefix(order.count)))
        }
        #expect(started.count == rules.count)
    }
}

/// The waiting jobs of rules, in order.
///
/// At most one job runs per path.
private struct Backlog {
    private var jobs: [String: [Job]] = [:]
    private var busy: Set<PathBytes> = []

    var rules: Set<String> { Set(jobs.keys) }

    mutating func add(_ job: Job) { jobs[job.rule, default: []].append(job) }

    func hasDue(_ rule: String) -> Bool { jobs[rule, default: []].contains { !busy.contains($0.event.path) } }

    /// Removes and returns the first job whose path is free.
    mutating func take(_ rule: String) -> Job? {
        guard let index = jobs[rule]?.firstIndex(where: { !busy.contains($0.event.path) }) else { return nil }
        let job = jobs[rule]?.remove(at: index)
        if jobs[rule]?.isEmpty == true { jobs[rule] = nil }
        if let job { busy.insert(job.event.path) }
        return job
    }

    mutating func release(_ job: Job) { busy.remove(job.event.path) }
}
