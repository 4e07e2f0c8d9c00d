import FileEvents
import Journaling
import Rules
import TestKit
import Testing

/// What is known of a rule when it begins.
struct DiskRulesTests {
    let bench = DiskBench()

    /// Lets rules begin in a new run.
    private func begin(_ rules: RuleRecord...) throws -> [String: RuleStart] {
        bench.kill()
        bench.wait(.seconds(60))
        return try bench.open().begin(rules, at: bench.wall)
    }

    private func rule(_ name: String, _ selection: String = "*", formerly: String...) -> RuleRecord {
        RuleRecord(name: name, formerly: formerly, selection: selection)
    }

    private func finish() throws {
        try bench.journal.noteStarted(at: bench.wall)
        #expect(try bench.commit() == nil)
    }

    @Test func `a rule is fresh, unfinished until all has been noted, then resumed`() throws {
        #expect(try begin(rule("a")) == ["a": .fresh])
        let began = bench.wall
        // Nothing was committed, so it has not begun.
        #expect(try begin(rule("a")) == ["a": .fresh])
        #expect(bench.wall != began)
        let second = bench.wall
        #expect(try bench.commit() == nil)
        #expect(try begin(rule("a")) == ["a": .unfinished(since: second)])
        #expect(try begin(rule("a"), rule("b")) == ["a": .unfinished(since: second), "b": .fresh])
        try finish()
        #expect(try begin(rule("a"), rule("b")) == ["a": .resumed, "b": .resumed])
    }

    @Test func `a rule that takes other paths stays so until all has been noted, over a kill too`() throws {
        _ = try begin(rule("a", "x"), rule("b"))
        try finish()
        bench.wait(.seconds(5))
        try bench.set("/x", .sample(), rule: "a")
        #expect(try bench.commit() == nil)
        let last = bench.wall
        #expect(try begin(rule("a", "y"), rule("b")) == ["a": .reselected(since: last), "b": .resumed])
        #expect(try bench.known("/x", rule: "a") == .sample())
        try bench.set("/y", .sample(), rule: "a")
        #expect(try bench.commit() == nil)
        #expect(try begin(rule("a", "y")) == ["a": .reselected(since: last)])
        #expect(try begin(rule("a", "z")) == ["a": .reselected(since: last)])
        // As it was before: nothing is new to it.
        #expect(try begin(rule("a", "x")) == ["a": .resumed])
        #expect(try bench.commit() == nil)
        let later = bench.wall
        #expect(try begin(rule("a", "y")) == ["a": .reselected(since: later)])
        try finish()
        #expect(try begin(rule("a", "y")) == ["a": .resumed])
    }

    @Test func `to be run by hand is no beginning for a rule, and no look at what has happened`() throws {
        func applyByHand(_ rule: RuleRecord) throws {
            bench.kill()
            bench.wait(.seconds(60))
            _ = try bench.open().begin([rule], isWatching: false, at: bench.wall)
            try bench.accept("\(bench.wall.seconds)", .created, "/in/hand", rule: rule.name)
            try bench.end(try #require(try bench.lease(rule: rule.name).first))
            #expect(try bench.commit() == nil)
        }
        try applyByHand(rule("a"))
        #expect(try begin(rule("a")) == ["a": .fresh])
        #expect(try bench.known("/in/hand", rule: "a") == .sample())
        let began = bench.wall
        #expect(try bench.commit() == nil)
        try applyByHand(rule("a"))
        #expect(try begin(rule("a")) == ["a": .unfinished(since: began)])
        try finish()
        let last = bench.wall
        try applyByHand(rule("a", "other"))
        #expect(try begin(rule("a")) == ["a": .resumed])
        #expect(try bench.journal.lastKept == last)
        try applyByHand(rule("a", "other"))
        #expect(try begin(rule("a", "other")) == ["a": .reselected(since: last)])
    }

    @Test func `a rule that is there again after a while knows what it knew, and has its jobs`() throws {
        _ = try begin(rule("a"), rule("b"))
        try bench.accept("1", rule: "a")
        try finish()
        #expect(try begin(rule("b")) == ["b": .resumed])
        #expect(try bench.journal.waiting == ["a": 1])
        // Nobody waits for jobs that can't run.
        #expect(try bench.journal.counts.open == 0)
        #expect(try bench.journal.pendingRules.isEmpty)
        #expect(try bench.journal.nextDue(after: bench.now - .seconds(999)) == nil)
        try finish()
        #expect(try begin(rule("a"), rule("b")) == ["a": .resumed, "b": .resumed])
        #expect(try bench.known("/in/a", rule: "a") == .sample())
        #expect(try bench.lease(rule: "a").map(\.id.description) == ["1"])
    }

    @Test func `a renamed rule keeps its ledger and its jobs`() throws {
        _ = try begin(rule("old"), rule("b"))
        try bench.accept("1", rule: "old")
        try bench.accept("2", .created, "/in/b", rule: "old")
        try bench.end(try #require(try bench.lease(rule: "old").first))
        try finish()
        #expect(try begin(rule("new", formerly: "older", "old"), rule("b")) == ["new": .resumed, "b": .resumed])
        #expect(try bench.known("/in/a", rule: "new") == .sample())
        #expect(try bench.known("/in/a", rule: "old") == nil)
        #expect(try bench.lease(rule: "new").map(\.rule) == ["new"])
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT id, rule FROM jobs ORDER BY id") == ["1|new", "2|new"])
        #expect(try begin(rule("old"), rule("b")) == ["old": .fresh, "b": .resumed])
    }

    @Test(arguments: [true, false])
    func `when two rules become one, of two jobs of one path one is left, which tells of both`(
        oldIsFirst: Bool
    ) throws {
        _ = try begin(rule("old"), rule("new"))
        let rules = oldIsFirst ? ["old", "new"] : ["new", "old"]
        try bench.accept("1", .created, rule: rules[0])
        try bench.accept("2", .modified, rule: rules[1], .sample(size: 9))
        try bench.accept("3", .created, "/in/b", rule: "old")
        try finish()
        #expect(try begin(rule("new", formerly: "old")) == ["new": .resumed])
        #expect(try bench.journal.counts.pending == 2)
        #expect(try bench.commit() == nil)
        let open = try bench.rows("SELECT path, event FROM jobs WHERE state = 'pending' AND rule = 'new' ORDER BY path")
        #expect(open.count == 2)
        let jobs = try bench.journal.lease(rule: "new", limit: 9, busy: [], now: bench.now)
        #expect(Set(jobs.map(\.event.path)) == ["/in/a", "/in/b"])
        let job = try #require(jobs.first { $0.event.path == "/in/a" })
        #expect(job.event.kind == .created && job.event.snapshot.size == 9)
        #expect(try bench.rows("SELECT code FROM jobs WHERE state = 'skipped'") == ["superseded"])
    }

    @Test func `of two names that are known the new one's ledger stays, and the old one's jobs come`() throws {
        _ = try begin(rule("old"), rule("new"))
        try bench.accept("1", rule: "old")
        try bench.set("/in/a", .sample(size: 9), rule: "new")
        try finish()
        // A name that is in force is no former one.
        #expect(try begin(rule("old"), rule("new", formerly: "old")) == ["old": .resumed, "new": .resumed])
        #expect(try bench.known("/in/a", rule: "old") == .sample())
        #expect(try begin(rule("new", formerly: "old")) == ["new": .resumed])
        #expect(try bench.known("/in/a", rule: "new")?.size == 9)
        #expect(try bench.lease(rule: "new").map(\.id.description) == ["1"])
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT name FROM rules") == ["new"])
        #expect(try bench.rows("SELECT count(*) FROM ledger") == ["1"])
    }

    @Test func `names go round among rules before anything is committed`() throws {
        _ = try begin(rule("a"), rule("b"))
        try finish()
        let journal = try bench.journal
        _ = journal.begin([rule("c", formerly: "a"), rule("b")], at: bench.wall)
        _ = journal.begin([rule("c"), rule("a", formerly: "b")], at: bench.wall)
        _ = journal.begin([rule("b", formerly: "c"), rule("a")], at: bench.wall)
        try bench.accept("1", rule: "a")
        // What was another's name is left to the rule that has it now.
        _ = journal.begin([rule("b"), rule("a"), rule("d")], at: bench.wall)
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT name FROM rules ORDER BY id") == ["b", "a", "d"])
        #expect(try bench.lease(rule: "a").map(\.id.description) == ["1"])
    }
}
