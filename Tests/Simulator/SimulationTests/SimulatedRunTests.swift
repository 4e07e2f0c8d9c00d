import FileEvents
import Rules
import Simulation
import System
import Testing
import TestKit

/// Scripted runs of the core in simulated worlds; see `Tests/Simulator/Simulation`.
@Suite struct ScriptedCaseTests {
    @Test(arguments: ScriptedCase.all) func `a scripted run delivers the expected events to the action`(
        _ scripted: ScriptedCase
    ) {
        #expect(scripted.run() == nil)
    }

    @Test func `a due path is not offered after its rule no longer matches it`() {
        let run = SimulatedRun([SimulatedRule()])
        for step in Step.script("create a, settle, create b, read, turn") { run.take(step) }
        var rule = SimulatedRule()
        rule.outside = ["a"]
        run.reload([rule])
        run.take(.rest)
        #expect(run.history == ["created b"])
        run.end()
    }

    @Test func `a file is inspected after its hint, before its action, and after its action`() {
        var rule = SimulatedRule()
        rule.events = [.created, .modified]
        let run = SimulatedRun([rule])
        for step in Step.script("create a, read, turn, wait 250ms, lease, begin, run, ok, lease") { run.take(step) }
        #expect(run.history == ["created a"])
        #expect(run.world.looks(at: "a") == 3)
        run.end()
    }

    @Test func `the work for a file with n names is proportional to n`() {
        func inspections(ofNames count: Int) -> Int {
            let run = SimulatedRun([SimulatedRule()])
            let links = (1..<count).map { Step.script("link a l\($0)") }.joined()
            for step in Step.script("create a") + links + Step.script("rest, write l1, rest, write a, rest") {
                run.take(step)
            }
            #expect(run.history.count == 3 * count)
            defer { run.end() }
            return run.world.inspections
        }
        #expect(inspections(ofNames: 80) < 6 * inspections(ofNames: 20))
    }

    @Test(arguments: ["rename l# x/l#", "rename l# n#", "rename l# x/n#", "delete l#"])
    func `the work for changes of n names of a file is proportional to n`(change: String) {
        func inspections(ofNames count: Int) -> Int {
            let run = SimulatedRun([SimulatedRule()])
            defer { run.end() }
            func take(_ script: String) { for step in Step.script(script) { run.take(step) } }
            func each(_ script: String) {
                for number in 1..<count { take(script.replacing("#", with: "\(number)")) }
            }
            take("create a")
            each("link a l#")
            take("rest, write a, rest")
            let (events, inspections) = (run.history.count, run.world.inspections)
            each(change)
            take("rest")
            // The content is the same.
            #expect(run.history[events...].count { !$0.starts(with: "attributes") } == count - 1)
            #expect(!run.history[events...].contains { $0.starts(with: "modified") })
            take("write a, rest")
            return run.world.inspections - inspections
        }
        #expect(inspections(ofNames: 80) < 6 * inspections(ofNames: 20))
    }

    /// The first steps, and the change that happens while the program inspects files in the steps after them.
    private static let races = [
        ("new a, rename a b, rename b a", "write a"),
        ("new a, link a b, delete b", "write a"),
        ("new a, rename a b", "write b"),
        ("new a, rename a b", "rename b a"),
        ("new a, new b, swap a b", "write a"),
        ("new x/a, new y/a, swap x/ y/", "write x/a"),
        ("new a, write a", "replace a"),
        ("create a", "write a"),
        ("create a", "rename a b"),
        ("new a, chmod a", "chmod a"),
        ("new a, delete a", "create a"),
    ]

    @Test(arguments: races) func `a change between any two inspections is noticed`(
        _ before: String, _ change: String
    ) {
        for count in 0..<80 {
            let steps = Step.script("\(before), @\(count) \(change), settle, lease, begin, run, ok, settle, lease")
            #expect(SimulatedRun([SimulatedRule()]).run(steps) == nil, "after \(count) inspections")
        }
    }

    @Test func `a file that returns between the listing of a polled directory and the comparison is not missed`() {
        var rule = SimulatedRule()
        (rule.isPolled, rule.catchUp) = (true, false)
        for count in 0..<40 {
            let steps = Step.script("create a, kill, halt, rename a b, @\(count) rename b a, boot, delete a")
            #expect(SimulatedRun([rule]).run(steps) == nil, "after \(count) inspections")
        }
    }

    @Test func `files in a directory that is removed before it was listed are compared`() {
        var rule = SimulatedRule()
        rule.refusedSize = 1
        for count in 0..<40 {
            let steps = Step.script("create x/c, swap x/ y/, @\(count) rename y/c x/c, settle, rmdir x/")
            #expect(SimulatedRun([rule]).run(steps) == nil, "after \(count) inspections")
        }
    }
}

/// Runs drawn from seeds; `make soak` draws new ones.
struct SimulatedRunTests {
    private static let processes = Blocking(atMost: 2)

    @Test(arguments: [1, 1001]) func `when idle, the actions know the state of all files`(_ first: Int) async throws {
        try await Self.processes.run {
            let (status, output) = Self.simulate(["--first", "\(first)", "--runs", "1000", "--keep-going"])
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

    @Test func `a failing run is printed as steps that repeat it`() async throws {
        try await Self.processes.run {
            let (status, output) = Self.simulate(["--faulty", "--seed", "3"])
            #expect(status == 1)
            #expect(output.contains("shrunk from"), "\(output)")
            #expect(!output.contains("it passes when it is repeated"), "\(output)")
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
