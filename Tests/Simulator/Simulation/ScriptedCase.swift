import FileEvents
package import Reconciling
import Rules
import System

/// A run of given steps, and the events that the action must receive.
package struct ScriptedCase: Sendable, CustomStringConvertible {
    package var name: String
    /// The rules.
    ///
    /// The second one is named `other`, also in the expected events.
    package var rules: [SimulatedRule]
    private var hasBirth = true
    private var foldsCase = false
    package var steps: String
    /// The expected events in the notation of ``RunRecord``; the order of different paths is ignored.
    package var expected: String

    /// The expected events of the reconciler of `Sources/Pipeline`, if they differ.
    private var expectedOfLedger: String?

    package var description: String { name }

    /// Whether the reconciler alone can run the case.
    package var isForLedger: Bool {
        return !foldsCase && rules.allSatisfy(\.isForLedger) && !steps.contains("hold")
    }

    /// Whether the engine can run the case: here it has no undo and no jobs on other hosts.
    package var isForEngine: Bool { !steps.contains("undo") && !rules.contains(where: \.isRemote) }

    fileprivate func onLedger(gives expected: String) -> Self {
        var changed = self
        changed.expectedOfLedger = expected
        return changed
    }

    init(_ name: String, _ steps: String, gives expected: String, _ change: (inout SimulatedRule) -> Void = { _ in }) {
        self.name = name
        self.steps = steps
        self.expected = expected
        var rule = SimulatedRule()
        change(&rule)
        rules = [rule]
    }

    /// Returns the case with a second rule.
    fileprivate func beside(_ change: (inout SimulatedRule) -> Void = { _ in }) -> Self {
        var rule = SimulatedRule()
        rule.name = "other"
        change(&rule)
        var both = self
        both.rules.append(rule)
        return both
    }

    fileprivate func withoutBirthTimes() -> Self {
        var changed = self
        changed.hasBirth = false
        return changed
    }

    fileprivate func foldingCase() -> Self {
        var changed = self
        changed.foldsCase = true
        return changed
    }

    /// Runs the case.
    ///
    /// - Returns: The error; nil if there is none.
    package func run(trace: (@Sendable (String) -> Void)? = nil) -> String? {
        let run = SimulatedRun(rules, hasBirth: hasBirth, foldsCase: foldsCase)
        run.trace = trace
        let fault = run.run(Step.script(steps))
        let given = run.record.history
        let allowed = [expected, expectedOfLedger].compactMap(\.self)
        let isAllowed = allowed.contains { wanted in
            Self.byPath(given)
                == Self.byPath(wanted.isEmpty ? [] : wanted.split(separator: ",").map(Self.trimmed))
        }
        if !isAllowed {
            return "given: \(given.joined(separator: ", ")); expected: \(expected)" + (fault.map { "; \($0)" } ?? "")
        }
        return fault
    }

    /// Runs the case with the reconciler of `Sources/Pipeline`.
    ///
    /// - Returns: The error; nil if there is none.
    package func runLedger(
        omitting rule: CoreRule? = nil, trace: (@Sendable (String) -> Void)? = nil
    ) -> String? {
        let run = LedgerRun(rules, hasBirth: hasBirth, foldsCase: foldsCase, omitting: rule)
        run.trace = trace
        run.isStrict = rule != nil
        let fault = run.run(Step.script(steps))
        let given = run.history
        let wanted = expectedOfLedger ?? expected
        if Self.byPath(given) != Self.byPath(wanted.isEmpty ? [] : wanted.split(separator: ",").map(Self.trimmed)) {
            return "given: \(given.joined(separator: ", ")); expected: \(wanted)" + (fault.map { "; \($0)" } ?? "")
        }
        return fault
    }

    private static func trimmed(_ text: Substring) -> String { String(text.drop { $0 == " " }) }

    private static func byPath(_ history: [String]) -> [String: [String]] {
        Dictionary(grouping: history) { line in
            let path = line.split(separator: " ").last ?? ""
            return String(path.split(separator: ">").last ?? path)
        }
    }
}

extension SimulatedRule {
    /// Makes the action take the file away, then record it.
    fileprivate mutating func takes() {
        steps = [.take, .note]
        events = [.created, .modified]
    }

    /// Makes the action change its input.
    fileprivate mutating func edits() { steps = [.edit] }
}

extension ScriptedCase {
    package static let all = model + others

    /// Cases that each show one rule of the core or a sequence that once failed.
    private static let model: [ScriptedCase] = [
        ScriptedCase("certain", "create a, start a, crash, delete a", gives: "created a, deleted a"),
        ScriptedCase("withheld", "create a, settle, lease, delete a", gives: "") { $0.refusedSize = 0 },
        ScriptedCase("gone", "create a, settle, lease, delete a, begin", gives: "skipped a"),
        ScriptedCase("wait-for-move", "new a, rename a b, settle a, lease a", gives: "created a, moved a>b"),
        ScriptedCase(
            "recheck", "new a, write a, rename a b, settle, lease b, begin, run, ok",
            gives: "created a, moved a>b, modified b"),
        ScriptedCase("lease-look", "create a, settle a, hint a, lease a", gives: "created a"),
        ScriptedCase("keep-uncertain", "create a, start a, crash, delete a", gives: "created a, deleted a"),
        ScriptedCase(
            "busy", "create a, start a, write a, settle a, lease a, run, ok", gives: "created a, modified a"),
        ScriptedCase(
            "read-what-was-offered", "new b, create a, start a, swap a b, run, swap a b, read, ok",
            gives: "created b, created a, modified a"),
        ScriptedCase(
            "drain", "new b, create a, start a, swap a b, run, swap a b, ok", gives: "created b, created a, modified a"),
        ScriptedCase(
            "read-first", "new a, rename a c, settle a, settle c, rename c b, lease a", gives: "created a, moved a>b"),
        ScriptedCase("settled-facts", "create a, list, settle a, open a, lease a", gives: "created a") {
            $0.isPolled = true
        },
        ScriptedCase("steps", "new a, fail, create a, settle a", gives: "take a, note a, take a, note a") {
            $0.takes()
        },
        ScriptedCase("reenter", "create a, start a, crash", gives: "take a, note a") { $0.takes() },
        ScriptedCase("left-behind", "create a, failing", gives: "created a, created a, created a, failed a") {
            $0.edits()
        },
        ScriptedCase(
            "listing", "create x/a, list, give x/a, list, rename x/a y/b, list x/, settle x/a, lease x/a",
            gives: "created x/a, moved x/a>y/b"
        ) { $0.isPolled = true },
        ScriptedCase(
            "names", "new a, link a b, rest, write b",
            gives: "created a, created b, attributes a, modified b, modified a"),
        ScriptedCase(
            "move-at-once", "new a, open a, rename a b, settle, lease, begin, run, ok",
            gives: "created a, moved a>b, modified b"),
        ScriptedCase("due-rows", "create a, settle a, halt, create b, boot", gives: "created a") { $0.catchUp = false },
        ScriptedCase(
            "overtaken", "new a, rename a b, failing, new a, retry b",
            gives: "created a, moved a>b, moved a>b, moved a>b, failed b, created a, modified b, modified a"),
        ScriptedCase("skipped", "create a, settle a, delete a", gives: "skipped a"),
        ScriptedCase(
            "kept-steps", "new b, run, ok, create a, start a, swap a b, run, swap a b, ok, fail",
            gives: "created b, note b, created a, note a, modified a, note a"
        ) { $0.steps = [.read, .note] },
        ScriptedCase(
            "own-lane", "new a, rename a b, settle, lease, begin, fail, undo b", gives: "created a, deleted a"),
        ScriptedCase(
            "sent", "new b, create a, start a, swap a b, run, swap a b, kill, ok",
            gives: "created b, created a, modified a"
        ) { $0.isRemote = true },
        ScriptedCase("swap", "new a, new b, swap a b", gives: "created a, created b, modified b, modified a"),
        ScriptedCase(
            "swap, seen apart", "new a, new b, rename a c, give c, rename b a, give a, rename c b",
            gives: "created a, created b, moved a>c, moved b>a, moved c>b"),
        ScriptedCase("chain", "new a, rename a b, rename b c", gives: "created a, moved a>c"),
        ScriptedCase(
            "chain, seen apart", "new a, rename a b, give b, rename b c", gives: "created a, moved a>b, moved b>c"),
        ScriptedCase("there and back", "new a, rename a b, rename b a", gives: "created a"),
        ScriptedCase(
            "renamed and written again", "new a, rename a b, create a", gives: "created a, moved a>b, created a"),
        ScriptedCase("over another", "new a, new b, rename a b", gives: "created a, created b, moved a>b"),
        ScriptedCase(
            "interrupted move", "new a, rename a b, settle, lease b, begin, crash, create a",
            gives: "created a, moved a>b, moved a>b, modified b, created a"),
        ScriptedCase("moved to a name that is refused", "new a, rename a b", gives: "created a, deleted a") {
            $0.outside = ["b"]
        },
        ScriptedCase("touched while its job waits", "create a, settle, touch a, settle", gives: "created a") {
            $0.events = [.created, .modified]
        },
        ScriptedCase(
            "renamed while down, polled", "create a, list, give a, list, give a, halt, rename a b, boot",
            gives: "created a, moved a>b"
        ) { $0.isPolled = true },
        // The first size is 42, the second one is less than 40.
        ScriptedCase(
            "refused, then of a size that is let through, and deleted",
            "create a, rest, replace a, rest, delete a", gives: ""
        ) {
            $0.refusedSize = 40
            $0.events = [.created, .deleted]
        },
        ScriptedCase("refused by its content, and deleted", "create a, rest, delete a", gives: "") {
            $0.refusesContent = true
        },
        ScriptedCase(
            "deleted, and back before it begins", "create a, settle a, lease a, rename a b, begin, rename b a",
            gives: "created a"),
        ScriptedCase(
            "one of a batch changes",
            "create a, create b, settle, lease, begin, begin, run a, fail a, run b, fail b, write a",
            gives: "created a, created b, created b, created a"),
        ScriptedCase("step succeeded, then a kill", "new a, kill", gives: "take a, note a") { $0.takes() },
        ScriptedCase(
            "kill inside a step, and a new file", "create a, start a, crash, create a",
            gives: "take a, note a, take a, note a"
        ) { $0.takes() },
        ScriptedCase(
            "step fails before it takes the file, which changes", "create a, start a, fail, write a",
            gives: "take a, note a"
        ) { $0.takes() },
        ScriptedCase("a program changes its input", "create a", gives: "created a, modified a") { $0.edits() },
        ScriptedCase("the same, polled", "create a", gives: "created a, modified a") {
            $0.edits()
            $0.isPolled = true
        },
        ScriptedCase(
            "given up, then moved", "create a, failing, rename a b",
            gives: "created a, created a, created a, failed a, moved a>b, modified b"),
        ScriptedCase(
            "retried by hand", "create a, failing, retry", gives: "created a, created a, created a, failed a, created a"
        ),
        ScriptedCase("silent while down", "new a, halt, write a, create b, boot", gives: "created a") {
            $0.catchUp = false
        },
        ScriptedCase(
            "an overflow hides a swap", "new b, create a, start a, !swap a b, run, !swap a b, ok",
            gives: "created b, created a, modified a"),
        ScriptedCase(
            "a name of two is deleted", "new a, link a b, rest, delete b",
            gives: "created a, created b, attributes a, attributes a, deleted b"),
        ScriptedCase(
            "written by another name after it settled", "create a, link a b, settle, open b, lease a",
            gives: "created a"
        ) { $0.outside = ["b"] },
        ScriptedCase(
            "what comes to a name that a move left, after a kill",
            "new a, new b, write a, write b, start, begin, kill, lease, write a, write b, settle, begin, begin, rename a b, create a, settle, lease",
            gives: "created a, created b, moved a>b, modified a"
        ).onLedger(gives: "created a, created b, modified b, modified a"),
        ScriptedCase(
            "written, then moved, then back, one by one", "new a, write a, settle, rename a b, settle, rename b a",
            gives: "created a, modified a"),
        ScriptedCase(
            "deleted after a swap, with a kill",
            "create c, start, create d, run c, ok c, swap c d, read, lease, kill, settle, replace d, settle, delete c",
            gives: "created c, skipped c, created d, deleted c"
        ).onLedger(gives: "created c, deleted c, created d"),
        ScriptedCase(
            "written, and moved after its lease", "new a, write a, settle, lease, rename a b",
            gives: "created a, moved a>b, modified b"),
        ScriptedCase(
            "its mode is set after its action has read it", "create a, start a, run, chmod a, ok",
            gives: "created a, attributes a"
        ).onLedger(gives: "created a, modified a"),
        ScriptedCase(
            "a file takes the name of one that is tried again",
            "create a, start a, delete a, create b, settle, lease, rename b a, begin, fail a", gives: "created a"),
        ScriptedCase(
            "swapped and replaced before it is tried again", "create b, create c, start b, miss b, swap b c, replace b",
            gives: "created b, created c"
        ).onLedger(gives: "created c, modified c, created b"),
        ScriptedCase(
            "another name after a move that waits", "new a, rename a c, settle, link c b, settle",
            gives: "created a, moved a>c, created b, attributes c"
        ).onLedger(gives: "created a, moved a>c, created b, modified c"),
    ]

    /// Cases with several rules, gates, and special file systems.
    private static let others: [ScriptedCase] = [
        ScriptedCase("two rules on a file", "create a, write a", gives: "created a, other: created a").beside(),
        ScriptedCase("stop", "create a, settle, delete a", gives: "skipped a") { $0.stops = true }.beside(),
        ScriptedCase(
            "stop, for what where lets pass", "create a, rest, write a", gives: "other: created a, other: modified a"
        ) {
            $0.stops = true
            $0.refusedSize = 0
        }.beside(),
        ScriptedCase("a pause", "create a, hold, settle, lease, write a, settle, lease, release", gives: "created a"),
        ScriptedCase("a pause outlives a kill", "hold, turn, create a, settle, lease, kill, lease", gives: "created a"),
        ScriptedCase("reload while a path settles", "create a, read, turn, reload, write a", gives: "created a"),
        ScriptedCase(
            "reload while its action runs", "create a, start a, reload, write a, settle, run, ok",
            gives: "created a, modified a"),
        ScriptedCase("cooldown", "new a, write a, settle, lease, write a", gives: "created a, modified a") {
            $0.cooldown = .seconds(1)
        },
        ScriptedCase(
            "on_failure", "create a, failing", gives: "created a, created a, created a, note a, failed a"
        ) { $0.onFailure = [.note] },
        ScriptedCase(
            "on_failure, then a change", "create a, failing, write a",
            gives: "created a, created a, created a, note a, failed a, modified a"
        ) { $0.onFailure = [.note] },
        ScriptedCase("a declared output", "create a", gives: "created a, other: created a, other: created o/a") {
            $0.steps = [.copy]
        }.beside(),
        ScriptedCase(
            "a declared output that is deleted, and written again", "new d, write d, delete o/d",
            gives: "created d, deleted o/d, modified d, modified o/d"
        ) { $0.steps = [.copy] }.onLedger(gives: "created d, deleted o/d, modified d"),
        ScriptedCase("an output, and a crash", "create y/a, start, crash", gives: "created y/a, created y/a") {
            $0.steps = [.copy]
        }.onLedger(gives: "created y/a, created y/a, created o/a, modified o/a"),
        ScriptedCase("a batch", "create a, create b, create c", gives: "created a, created b, created c") {
            $0.batch = 2
        },
        ScriptedCase("restart", "create a, start a, write a, settle, run, ok", gives: "created a, created a") {
            $0.whileBusy = .restart
        }.onLedger(gives: "created a"),
        ScriptedCase(
            "restart, after its effect", "create a, start a, run, write a, settle", gives: "created a, created a"
        ) { $0.whileBusy = .restart },
        ScriptedCase("queue", "new a, write a, settle, write a, settle", gives: "created a, modified a, modified a") {
            $0.whileBusy = .queue
        },
        ScriptedCase("drop", "create a, start a, write a, settle, run, ok", gives: "created a") {
            $0.whileBusy = .drop
        },
        ScriptedCase(
            "drop, and a move", "create a, start a, rename a b, settle, run, ok",
            gives: "created a, moved a>b"
        ) { $0.whileBusy = .drop }.onLedger(gives: "created a, moved a>b, modified b"),
        ScriptedCase("arriving", "create a, read, turn, write a", gives: "arriving a, created a") {
            $0.events = [.arriving, .created]
        },
        ScriptedCase("raw", "new a, read a", gives: "opened a, created a, opened a, accessed a, closed a") {
            $0.events = [.created, .opened, .accessed, .closed]
        }.onLedger(gives: "created a, opened a, opened a, accessed a, closed a"),
        ScriptedCase(
            "a rescan that is reported", "rescan, rest", gives: "scanBegan , scanEnded "
        ) { $0.events = [.scanBegan, .scanEnded] },
        ScriptedCase("a directory is renamed", "new x/a, folder x/ z/", gives: "created x/a, moved x/a>z/a"),
        ScriptedCase("a directory is removed", "new x/a, rmdir x/", gives: "created x/a, deleted x/a"),
        ScriptedCase("directories are exchanged", "new x/a, swap x/ y/", gives: "created x/a, moved x/a>y/a"),
        ScriptedCase("an unreadable directory", "new x/a, hide x/, rescan, settle, show x/", gives: "created x/a"),
        ScriptedCase(
            "a file system comes and goes",
            "mount x/, read, list, create x/a, give x/a, umount x/, read, list, settle, mount x/, read, list, write x/a",
            gives: "created x/a, modified x/a"),
        ScriptedCase(
            "hidden by a mount while its action runs",
            "create x/a, settle, lease, begin, !mount x/, run x/a, ok x/a, umount x/",
            gives: "created x/a, modified x/a, modified x/a"
        ) { $0.edits() }.onLedger(gives: "created x/a"),
        ScriptedCase("an overflow", "new a, !write a, !create b, !delete a", gives: "created a, created b, deleted a"),
        ScriptedCase(
            "no birth times", "new a, rename a b", gives: "created a, deleted a, created b"
        ).withoutBirthTimes(),
        ScriptedCase("another case", "new a, rename a A", gives: "created a, moved a>A").foldingCase(),
        ScriptedCase("another case, without moves", "new a, rename a A", gives: "created a, deleted a, created A") {
            $0.events = [.created, .modified, .deleted]
        }.foldingCase(),
        ScriptedCase("a set", "create a.x, settle, lease, create a.y", gives: "created a.x, created a.y") {
            $0.group = ["*.x", "*.y"]
        },
        ScriptedCase(
            "a set of which one changes", "create a.x, create a.y, start, write a.y, run, ok",
            gives: "created a.x, created a.y, modified a.x, modified a.y"
        ) { $0.group = ["*.x", "*.y"] },
        ScriptedCase(
            "a set that is cut off", "create a.x, create a.y, start, crash",
            gives: "created a.x, created a.y, created a.x, created a.y"
        ) { $0.group = ["*.x", "*.y"] },
        ScriptedCase("a tree", "mkdir d/, create d/a, settle, write d/a", gives: "created d") { $0.isTree = true },
        ScriptedCase(
            "a tree that changes later", "mkdir d/, create d/a, rest, write d/a", gives: "created d, modified d"
        ) {
            $0.isTree = true
        },
        ScriptedCase(
            "a tree that changes while its action runs", "mkdir d/, create d/a, start d, create d/b, settle, run, ok",
            gives: "created d, modified d"
        ) { $0.isTree = true },
        ScriptedCase(
            "a tree of which a file is made after its action has read it",
            "mkdir d/, create d/a, start d, run, create d/b, ok",
            gives: "created d, modified d"
        ) { $0.isTree = true },
        ScriptedCase(
            "text", "new a, append a, start a, append a, run, ok, append a", gives: "created a, modified a, modified a"
        ) {
            $0.follows = true
        },
        ScriptedCase(
            "text, and a kill", "new a, append a, start a, crash, append a",
            gives: "created a, modified a, modified a, modified a"
        ) {
            $0.follows = true
        },
        ScriptedCase(
            "rotation", "new a, append a, rename a b, create a, rest, append a",
            gives: "created a, moved a>b, modified b, created a, modified a"
        ) {
            $0.follows = true
        },
        ScriptedCase(
            "a file with text is replaced", "new a, append a, replace a, settle, append a",
            gives: "created a, modified a, modified a"
        ) { $0.follows = true },
        ScriptedCase(
            "text that takes the place of another while both wait", "create a, create c, settle, rename c a",
            gives: "created a"
        ) { $0.follows = true }.onLedger(gives: "created a, created c, moved c>a"),
        ScriptedCase(
            "text of a file that is renamed and renamed back while it waits",
            "create a, settle, rename a b, settle, !rename b a, crash, settle", gives: "created a"
        ) {
            $0.follows = true
            $0.outside = ["b"]
        },
        ScriptedCase(
            "text of a file that is deleted before it is reported",
            "create b, settle, append b, lease, begin, run b, settle, ok b, lease, delete b, kill",
            gives: "created b, modified b, deleted b"
        ) { $0.follows = true },
        ScriptedCase("text of a file that came while down", "halt, create a, boot", gives: "created a") {
            $0.follows = true
        },
        ScriptedCase(
            "text of a file that has rested when it is seen at a start", "create a, halt, wait 1500ms, boot",
            gives: "created a"
        ) {
            $0.follows = true
        },
        ScriptedCase(
            "text of a file that was new elsewhere while its name was out of sight",
            "hide y/, new x/b, append x/b, swap x/ y/, rename y/b b, settle, lease, rename b x/b",
            gives: "created x/b, created b, deleted b"
        ) { $0.follows = true },
        ScriptedCase(
            "gone when its turn in the queue comes, and back",
            "create c, settle, lease, !rename c b, begin, rename b c",
            gives: "skipped c, created c"
        ) {
            $0.whileBusy = .queue
            $0.outside = ["b"]
        }.onLedger(gives: "created c, modified c"),
        ScriptedCase(
            "gone while its action from the queue runs, and back",
            "create c, settle, lease, begin, rename c b, run c, rename b c",
            gives: "created c, modified c"
        ) {
            $0.whileBusy = .queue
            $0.outside = ["b"]
        },
        ScriptedCase(
            "retried by hand after it was deleted",
            "new a, write a, settle, lease, begin, run a, give-up a, delete a, rest, retry, rest",
            gives: "created a, modified a, failed a, deleted a"
        ),
        ScriptedCase(
            "a set of which a file is gone at the lease, and back at the start",
            "create b.x, settle, @4 rename b.x a.y, lease, rename a.y b.x", gives: ""
        ) { $0.group = ["*.x", "*.y"] },
        ScriptedCase(
            "a refused file at a path whose text has not been received",
            "create a, rename a b, rename b a, append a, settle, lease, begin, ok a, !rename a c, create a, settle",
            gives: "modified a, other: created a, other: moved a>c"
        ) {
            $0.stops = true
            $0.refusedSize = 70
            $0.outside = ["b"]
        }.beside {
            $0.follows = true
            $0.outside = ["b"]
        },
        ScriptedCase(
            "a directory is replaced between the restored jobs and the first listing",
            """
            create a, settle, lease, rename a y/b, settle, lease, halt, rename y/b x/b, create b, rename b x/a, \
            @7 folder x/ y/, boot
            """,
            gives: "take y/b, note y/b, take y/a, note y/a, failed a"
        ) {
            $0.events = [.created, .modified, .attributes]
            $0.steps = [.take, .note]
        }.onLedger(gives: "take y/b, note y/b, take y/a, note y/a"),
        ScriptedCase(
            "a set of which a file is replaced while the former one waits for another set",
            "create a.x, create a.y, rest, rename a.x b.x, create a.x",
            gives: "created a.x, created a.y, modified a.x, modified a.y"
        ) { $0.group = ["*.x", "*.y"] },
        ScriptedCase("a window", "create a, settle, lease, write a, settle, lease", gives: "created a") {
            $0.opens = 23 * 60 + 59
        },
    ]
}
