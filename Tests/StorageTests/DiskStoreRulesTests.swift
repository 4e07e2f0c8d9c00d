import FileEvents
import GRDB
import PluginProtocol
import Reconciling
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// Rules, clocks and devices that change between two runs of the store.
struct DiskStoreRulesTests {
    let bench = StoreBench()

    private func rule(_ name: String, _ selection: String = "*", formerly: String...) -> RuleRecord {
        RuleRecord(name: name, formerly: formerly, selection: selection)
    }

    /// Begins rules in a new run, which starts a minute later.
    @discardableResult
    private func register(_ rules: RuleRecord..., isWatching: Bool = true) throws -> [StoredRule] {
        bench.kill()
        bench.wait(.seconds(60))
        return try bench.open().register(rules, isWatching: isWatching, at: bench.wall)
    }

    private func starts(_ rules: RuleRecord..., isWatching: Bool = true) throws -> [RuleStart] {
        bench.kill()
        bench.wait(.seconds(60))
        return try bench.open().register(rules, isWatching: isWatching, at: bench.wall).map(\.start)
    }

    // MARK: Rules

    @Test func `a rule is fresh, unfinished until all files are compared, then resumed or reselected`() throws {
        #expect(try starts(rule("a")) == [.fresh])
        // Nothing has been committed.
        #expect(try starts(rule("a")) == [.fresh])
        let started = bench.wall
        try bench.commit { _ in }
        #expect(try starts(rule("b"), rule("a")) == [.fresh, .unfinished(since: started)])
        try bench.commit { $0.hasStarted = true }
        let last = bench.wall
        #expect(try starts(rule("a"), rule("b", "other")) == [.resumed, .reselected(since: last, from: "*")])
        #expect(try bench.store.stored.lastCommit == last)
        #expect(try starts(rule("c"), isWatching: false) == [.resumed])
        try bench.commit { $0.due[RuleID(1)] = ["/in/a": .stored(nil)] }
        // A run that does not watch does not compare files.
        #expect(try starts(rule("c")) == [.fresh])
        #expect(try bench.store.stored.lastCommit == last)
    }

    @Test func `a rule that matches other paths is reselected until all files are compared`() throws {
        try register(rule("a", "x"))
        try bench.commit { $0.hasStarted = true }
        let last = bench.wall
        for selection in ["y", "z"] {
            #expect(try starts(rule("a", selection)) == [.reselected(since: last, from: "x")])
            try bench.commit { _ in }
        }
        // The rule is as it was before, so no file is new to it.
        #expect(try starts(rule("a", "x")) == [.resumed])
        try bench.commit { _ in }
        let later = bench.wall
        #expect(try starts(rule("a", "y")) == [.reselected(since: later, from: "x")])
        try bench.commit { $0.hasStarted = true }
        #expect(try starts(rule("a", "y")) == [.resumed])
    }

    @Test func `a rule without a name is found by its path, also under another name`() throws {
        func rule(_ name: String, _ path: String?) -> RuleRecord { RuleRecord(name: name, path: path, selection: "*") }
        try register(rule("in/*", "/x/in/*"))
        try bench.commit { $0.hasStarted = true }
        #expect(try starts(rule("./in/*", "/x/in/*")) == [.resumed])
        try bench.commit { _ in }
        #expect(try bench.store.id(of: "./in/*") == RuleID(1))
        // Another rule has that name now.
        #expect(try starts(rule("./in/*", "/y/in/*")) == [.fresh])
        #expect(try bench.store.currentName(of: "./in/*") == "/x/in/*")
        try bench.commit { $0.hasStarted = true }
        #expect(try bench.store.id(of: "/x/in/*") == RuleID(1))
        #expect(try bench.store.id(of: "./in/*") == RuleID(2))
        // Both are loaded, with exchanged names.
        #expect(try starts(rule("./in/*", "/x/in/*"), rule("/x/in/*", "/y/in/*")) == [.resumed, .resumed])
        try bench.commit { $0.hasStarted = true }
        #expect(try bench.store.id(of: "./in/*") == RuleID(1))
        #expect(try bench.store.id(of: "/x/in/*") == RuleID(2))
        // A rule with a name is another one, even if the name is a path.
        #expect(try starts(rule("./in/*", nil)) == [.fresh])
    }

    @Test func `a run that does not watch changes neither a rule's start nor the last commit's time`() throws {
        func apply(_ rule: RuleRecord) throws {
            try register(rule, isWatching: false)
            try bench.commit { $0.rows[RuleID(1)] = [PathBytes("/in/\(bench.wall.seconds)"): LedgerRow(.sample())] }
        }
        try apply(rule("a"))
        #expect(try starts(rule("a")) == [.fresh])
        let started = bench.wall
        try bench.commit { _ in }
        try apply(rule("a"))
        #expect(try starts(rule("a")) == [.unfinished(since: started)])
        try bench.commit { $0.hasStarted = true }
        let last = bench.wall
        try apply(rule("a", "other"))
        #expect(try starts(rule("a")) == [.resumed])
        #expect(try bench.store.stored.lastCommit == last)
        #expect(try starts(rule("a", "other")) == [.reselected(since: last, from: "*")])
        #expect(try bench.rows("SELECT count(*) FROM ledger") == ["3"])
    }

    @Test func `two rules that become one keep the ledger of the new name and the jobs of both`() throws {
        let ids = try register(rule("old"), rule("new")).map(\.id)
        try bench.commit(.leased(1, rule: "old"), .leased(2, rule: "new"))
        try bench.commit {
            for (index, id) in ids.enumerated() {
                $0.rows[id] = ["/in/a": LedgerRow(.sample(size: UInt64(index)))]
            }
            $0.hasStarted = true
        }
        // The name of a loaded rule is not a former name.
        #expect(try starts(rule("old"), rule("new", formerly: "old")) == [.resumed, .resumed])
        let started = try register(rule("new", formerly: "old"))
        #expect(started.map(\.id) == [ids[1]] && started.map(\.start) == [.resumed])
        for _ in 0..<2 {
            #expect(try bench.store.row(of: ids[1], at: "/in/a") == LedgerRow(.sample(size: 1)))
            #expect(try bench.unfinished(ids[1]).map(\.job.number) == [1, 2])
            try bench.commit { _ in }
        }
        #expect(try bench.rows("SELECT name FROM rules") == ["new"])
        #expect(try bench.rows("SELECT count(*) FROM ledger") == ["1"])
    }

    @Test(arguments: [true, false])
    func `a renamed rule has its ledger and its jobs, before and after a commit`(isCommitted: Bool) throws {
        let old = try register(rule("old"), rule("b")).map(\.id)
        try bench.commit(.leased(1, rule: "old"), .leased(2, rule: "b"), .leased(3, rule: "old"))
        try bench.end(.leased(4, rule: "old"), .failed, Outcome(.failed, "no", code: "ready"), isNew: true)
        try bench.commit {
            $0.rows[old[0]] = ["/in/a": LedgerRow(.sample())]
            $0.hasStarted = true
        }
        let new = try register(rule("b"), rule("new", formerly: "older", "old"))
        #expect(new.map(\.id) == [old[1], old[0]] && new.map(\.start) == [.resumed, .resumed])
        if isCommitted {
            try bench.commit { _ in }
            #expect(try bench.rows("SELECT rule FROM jobs ORDER BY id") == ["new", "b", "new", "new"])
        }
        #expect(try bench.store.row(of: old[0], at: "/in/a") == LedgerRow(.sample()))
        let jobs = try bench.unfinished(old[0])
        #expect(jobs.map(\.job.number) == [1, 3] && jobs.map(\.job.rule) == ["new", "new"])
        #expect(try bench.store.job(JobID("4"), at: bench.clocks)?.job.job.rule == "new")
        #expect(
            try bench.store.refusal(rule: "new", path: "/in/a.txt", snapshot: .sample())?.id == JobID("4"))
        #expect(try bench.store.stored.unloaded.isEmpty)
        // A job that finishes under the old name belongs to the new rule.
        try bench.end(jobs[0], .succeeded, Outcome(.succeeded))
        try bench.end(.leased(5, rule: "old"), .succeeded, Outcome(.succeeded), isNew: true)
        #expect(try bench.rows("SELECT rule FROM jobs WHERE id = '1'") == ["new"])
    }

    @Test func `a job committed with the renaming of its rule belongs to the new rule`() throws {
        try register(rule("old"))
        try bench.commit { $0.hasStarted = true }
        _ = try bench.store.register([rule("new", formerly: "old")], isWatching: true, at: bench.wall)
        try bench.commit(.leased(1, rule: "old"), .leased(2, rule: "new"))
        #expect(try bench.rows("SELECT rule FROM jobs ORDER BY id") == ["new", "new"])
    }

    @Test func `names swapped before a commit lead to the right jobs`() throws {
        let ids = try register(rule("a"), rule("b")).map(\.id)
        try bench.commit(.leased(1, rule: "a"), .leased(2, rule: "b"))
        bench.kill()
        let store = try bench.open()
        _ = store.register([rule("c", formerly: "a"), rule("b")], isWatching: true, at: bench.wall)
        _ = store.register([rule("c"), rule("a", formerly: "b")], isWatching: true, at: bench.wall)
        _ = store.register([rule("b", formerly: "c"), rule("a")], isWatching: true, at: bench.wall)
        for _ in 0..<2 {
            #expect(try bench.unfinished(ids[0]).map { "\($0.job.number) \($0.job.rule)" } == ["1 b"])
            #expect(try bench.unfinished(ids[1]).map { "\($0.job.number) \($0.job.rule)" } == ["2 a"])
            try bench.commit { _ in }
        }
        #expect(try bench.rows("SELECT id, rule FROM jobs ORDER BY id") == ["1|b", "2|a"])
    }

    @Test func `the unfinished jobs of rules that are not loaded are counted`() throws {
        try register(rule("a"), rule("b"))
        try bench.commit(.leased(1, rule: "a"), .leased(2, rule: "a"), .leased(3, rule: "b"))
        try bench.end(.leased(4, rule: "a"), .failed, Outcome(.failed), isNew: true)
        try register(rule("b"))
        #expect(try bench.store.stored.unloaded == ["a": 2])
        try register(rule("c", formerly: "a"))
        #expect(try bench.store.stored.unloaded == ["b": 1])
    }

    @Test func `pauses and mount points are stored`() throws {
        let pauses = Pauses(all: true, rules: ["r"])
        let mount = MountRecord(point: "/in", identity: Snapshot.sample().identity)
        try bench.commit {
            $0.pauses = pauses
            $0.mounts = [mount]
        }
        bench.kill()
        let stored = try bench.store.stored
        #expect(stored.pauses == pauses && stored.mounts == [mount])
        try bench.commit { $0.pauses = Pauses() }
        bench.kill()
        #expect(try bench.store.stored.pauses == Pauses())
        #expect(try bench.store.stored.mounts == [mount])
    }

    // MARK: Clocks

    private static let days = [-30, -1, 1, 30]

    /// Commits a job that waits 30 seconds for its next attempt.
    private func commitRetry() throws {
        try bench.commit(OpenJob.leased(1).retrying(at: bench.now + .seconds(30)))
    }

    private func due() throws -> Duration? { try bench.unfinished().first?.due.map { $0 - bench.now } }

    @Test(arguments: Self.days)
    func `a retry keeps its delay when the clock is set between two runs`(days: Int) throws {
        try commitRetry()
        bench.kill()
        bench.setClock(by: .seconds(days * 24 * 3600))
        bench.wait(.seconds(10))
        #expect(try due() == .seconds(20))
    }

    @Test(arguments: Self.days)
    func `a retry keeps its delay when the clock is set during a run`(days: Int) throws {
        try commitRetry()
        bench.setClock(by: .seconds(days * 24 * 3600))
        bench.wait(.seconds(10))
        #expect(try due() == .seconds(20))
        try bench.commit(.leased(2))
        let ahead = try bench.rows(
            "SELECT (a.due - b.due) / 1000000000 FROM jobs a, jobs b WHERE a.id = '1' AND b.id = '2'")
        #expect(ahead == ["20"])
        #expect(try due() == .seconds(20))
        bench.kill()
        #expect(try due() == .seconds(20))
    }

    @Test(arguments: Self.days)
    func `after a reboot a retry never waits longer than its delay`(days: Int) throws {
        try commitRetry()
        try bench.inspect { try $0.execute(sql: "UPDATE state SET value = value + 1 WHERE name = 'boot'") }
        bench.kill()
        bench.setClock(by: .seconds(days * 24 * 3600))
        // The time for which the machine was off is unknown.
        #expect(try due() == (days < 0 ? .seconds(30) : .seconds(30 - days * 24 * 3600)))
    }

    // MARK: Devices

    /// Creates the metadata of a file on the device of a directory.
    private func snapshot(_ directory: FileIdentity, inode: UInt64) -> Snapshot {
        var snapshot = Snapshot.sample(file: inode)
        snapshot.identity.deviceMajor = directory.deviceMajor
        snapshot.identity.deviceMinor = directory.deviceMinor
        return snapshot
    }

    @Test(arguments: [true, false])
    func `files on a device with a new number after a reboot are recognized`(isLoaded: Bool) throws {
        let directory = bench.root.appending("mounted")
        TestFile.makeDirectory(directory)
        let identity = try #require(KernelFileSystem().identity(of: directory))
        var former = identity
        former.deviceMinor &+= 7
        let (was, present) = (snapshot(former, inode: 5), snapshot(identity, inode: 5))
        let path = directory.appending("a")
        let job = OpenJob.leased(1, .sample(.modified, path, was, before: was)).changed { $1?.left = was }
        let failed = OpenJob.leased(2, .sample(.created, path, was)).changed { $1?.left = was }
        try bench.commit(job)
        try bench.end(failed, .failed, Outcome(.failed), isNew: true)
        try bench.commit {
            $0.rows[RuleID(1)] = [path: LedgerRow(was), "/elsewhere": LedgerRow(.sample(file: 6))]
            $0.mounts = [MountRecord(point: directory, identity: former)]
        }
        func check() throws {
            let store = try bench.store
            #expect(store.stored.mounts == [MountRecord(point: directory, identity: identity)])
            #expect(store.row(of: RuleID(1), at: path)?.handled == present)
            #expect(store.paths(of: RuleID(1), handling: present.identity, limit: .max) == [path])
            #expect(store.row(of: RuleID(1), at: "/elsewhere")?.handled == .sample(file: 6))
            for number in 1...2 as ClosedRange<UInt64> {
                let found = try #require(store.job(JobID("\(number)"), at: bench.clocks)?.job)
                #expect(found.job.event.snapshot == present && found.offer?.event.snapshot == present)
                #expect(found.offer?.left == present)
                if number == 1 { #expect(found.job.event.before == present) }
            }
        }
        for _ in 0..<2 {
            bench.kill()
            try check()
        }
        if !isLoaded {
            // The run that recognizes the device does not read the jobs.
            bench.kill()
            _ = try bench.open().register([rule("t")], isWatching: true, at: bench.wall)
        }
        for _ in 0..<2 {
            try bench.commit { _ in }
            try check()
            bench.kill()
        }
    }

    @Test func `files on two devices that swapped their numbers are distinguished`() throws {
        let (first, second) = (bench.root, PathBytes("/proc"))
        let one = try #require(KernelFileSystem().identity(of: first))
        let other = try #require(KernelFileSystem().identity(of: second))
        try #require(one.device != other.device)
        var (formerOne, formerOther) = (one, other)
        (formerOne.device, formerOther.device) = (other.device, one.device)
        let paths = [first.appending("a"), second.appending("b")]
        try bench.commit {
            $0.rows[RuleID(1)] = [
                paths[0]: LedgerRow(snapshot(formerOne, inode: 5)),
                paths[1]: LedgerRow(snapshot(formerOther, inode: 6)),
            ]
            $0.mounts = [
                MountRecord(point: first, identity: formerOne), MountRecord(point: second, identity: formerOther),
            ]
        }
        bench.kill()
        for _ in 0..<3 {
            let rows = try paths.map { try bench.store.row(of: RuleID(1), at: $0)?.handled?.identity.device }
            #expect(rows == [one.device, other.device])
            try bench.commit { _ in }
        }
    }
}
