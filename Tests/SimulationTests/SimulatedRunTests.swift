import FileEvents
import LedgerReconciling
import Simulation
import TestKit
import Testing

/// The core in simulated worlds: see `Tests/Simulation`.
@Suite struct ScriptedCaseTests {
    /// What the core does not do as it should.
    static let known: Set<String> = [
        // It has no undo and no remote jobs in the simulator.
        "own-lane", "sent",
        // Its raw events are not judged.
        "raw",
        "certain", "keep-uncertain", "read-what-was-offered", "drain", "steps", "overtaken", "kept-steps", "swap",
        "interrupted move", "deleted, and back before it begins", "kill inside a step, and a new file",
        "given up, then moved", "an overflow hides a swap", "a declared output that is deleted, and written again",
        "another case", "another case, without moves", "a tree",
        "written, and moved after its lease", "its mode is set after its action has read it",
        "a file takes the name of one that is tried again", "swapped and replaced before it is tried again",
        "another name after a move that waits",
        "text that takes the place of another while both wait",
        "text of a file that is renamed and renamed back while it waits",
        "text of a file that has rested when it is seen at a start",
    ]

    @Test(arguments: ScriptedCase.all) func `a scripted run gives the action what it has to receive`(
        _ scripted: ScriptedCase
    ) {
        guard Self.known.contains(scripted.name) else {
            #expect(scripted.run() == nil)
            return
        }
        withKnownIssue { #expect(scripted.run() == nil) }
    }
}

/// The reconciler of `Sources/Pipeline` in the same worlds.
@Suite struct LedgerCaseTests {
    @Test(arguments: ScriptedCase.all.filter(\.isForLedger)) func `a scripted run is offered what it has to receive`(
        _ scripted: ScriptedCase
    ) {
        #expect(scripted.runLedger() == nil)
    }

    @Test(arguments: ["create a, start a, run, fail", "create a, settle, lease, begin, run, fail, wait 1500ms, turn"])
    func `a job runs to its end after its rule matches the path no longer`(_ steps: String) {
        let run = LedgerRun([SimulatedRule()], inMemory: true)
        for step in Step.script(steps) { run.take(step) }
        var rule = SimulatedRule()
        rule.outside = ["a"]
        run.reload([rule])
        run.take(.rest)
        #expect(run.history == ["created a", "created a"])
        #expect(!run.hasOffers)
    }

    @Test func `a path that is due is not offered after its rule matches it no longer`() {
        let run = LedgerRun([SimulatedRule()], inMemory: true)
        for step in Step.script("create a, settle, create b, read, turn") { run.take(step) }
        var rule = SimulatedRule()
        rule.outside = ["a"]
        run.reload([rule])
        run.take(.rest)
        #expect(run.history == ["created b"])
    }

    @Test func `a file that stays open for writing is held`() {
        let run = LedgerRun([SimulatedRule()], inMemory: true)
        for step in Step.script("create a, open a") + Array(repeating: .wait(milliseconds: 1_000), count: 59) {
            run.take(step)
            run.take(.drain)
            run.take(.turn)
        }
        #expect(run.held.isEmpty)
        for step in Step.script("wait 1000ms, turn, wait 1000ms, turn, wait 1000ms, turn") { run.take(step) }
        #expect(run.held == ["a"])
        run.take(.rest)
        #expect(run.held.isEmpty)
    }

    @Test(arguments: CoreRule.allCases) func `a case shows each rule of the core`(_ rule: CoreRule) throws {
        let scripted = try #require(
            ScriptedCase.all.first { $0.name == rule.rawValue || $0.name.hasPrefix("\(rule.rawValue),") })
        #expect(scripted.runLedger(omitting: rule) != nil)
    }
}

/// Runs drawn from seeds; `make soak` draws new ones.
struct SimulatedRunTests {
    private static let processes = Blocking(atMost: 2)

    struct Range: Sendable {
        var first: Int
        /// Seeds whose runs show a fault of the core that is not mended yet.
        var known: String
    }

    @Test(arguments: [
        Range(
            first: 1,
            known:
                "51,145,161,219,231,236,238,274,281,299,469,499,512,575,647,652,671,697,716,750,799,816,867,906,928,944,987"
        ),
        Range(first: 1001, known: "1015,1128,1256,1263,1338,1418,1508,1548,1550,1563,1775,1798,1989"),
    ])
    func `at rest the actions know all files as they are`(_ range: Range) async throws {
        try await Self.processes.run {
            let (status, output) = Self.simulate(
                ["--first", "\(range.first)", "--runs", "1000", "--keep-going", "--known", range.known])
            #expect(status == 0, "\(output)")
        }
    }

    @Test func `what the reconciler offers adds up to the files`() async throws {
        try await Self.processes.run {
            let (status, output) = Self.simulate(["--ledger", "--runs", "1500", "--keep-going"])
            #expect(status == 0, "\(output)")
        }
    }

    @Test func `a seed gives the same run each time`() async throws {
        try await Self.processes.run {
            let digests = (0..<2).map { _ in
                Self.simulate(["--runs", "30", "--keep-going"]).output.split(separator: "\n").filter {
                    $0.hasPrefix("digest")
                }
            }
            #expect(digests[0].count == 1)
            #expect(digests[0] == digests[1])
        }
    }

    @Test func `a run that fails is printed as steps that repeat it`() async throws {
        try await Self.processes.run {
            let (status, output) = Self.simulate(["--seed", "51"])
            #expect(status == 1)
            #expect(output.contains("shrunk from"), "\(output)")
            #expect(!output.contains("it holds when it is repeated"), "\(output)")
        }
    }

    private static func simulate(_ arguments: [String]) -> (status: Int32?, output: String) {
        withTempTree { tree in
            let simulator = RunningProgram(
                Places.products.appending("simulator"), arguments, in: tree.root, output: tree.path("simulator"))
            let status = simulator.wait(within: .seconds(900))
            return (status, simulator.output + simulator.error)
        }
    }
}
