import FileEvents
import Testing

/// A case of the ledger: given these rows, when this happens, then these events and rows.
///
/// ``LedgerScene`` defines the words.
struct LedgerCase: Sendable, CustomTestStringConvertible {
    /// The name; by default what is given and what happens.
    var name: String
    var given: String
    var when: String
    /// The events received meanwhile.
    var gives: String
    /// The rows then.
    var rows: String
    /// The events received afterwards, when everything has settled.
    var next: String
    var rule = LedgerScene.Rule()

    var testDescription: String { name }

    init(
        _ name: String = "", given: String = "", when: String, gives: String = "", rows: String, next: String = "",
        _ change: (inout LedgerScene.Rule) -> Void = { _ in }
    ) {
        let situation = [given, when].filter { !$0.isEmpty }.joined(separator: " | ")
        self.name = name.isEmpty ? situation : "\(name): \(situation)"
        (self.given, self.when, self.gives, self.rows, self.next) = (given, when, gives, rows, next)
        change(&rule)
    }

    func check(_ location: SourceLocation = #_sourceLocation) {
        var scene = LedgerScene(rule)
        scene.give(given)
        scene.run(when)
        let (gives, rows) = (scene.takeHistory(), scene.rows)
        scene.rest()
        #expect([gives, rows, scene.takeHistory()] == [self.gives, self.rows, next], sourceLocation: location)
    }
}

/// Which paths are due, and with which event.
struct DueTests {
    private static let rowsAndDisk = [
        LedgerCase(when: "create a, settle", rows: "", next: "created a"),
        LedgerCase(when: "create a, settle, delete a, lease", gives: "skipped a", rows: ""),
        LedgerCase(given: "a certain", when: "hint a, settle", rows: "a certain"),
        LedgerCase(given: "a certain", when: "write a", rows: "a certain old", next: "modified a"),
        LedgerCase(given: "a certain", when: "chmod a", rows: "a certain old", next: "attributes a"),
        LedgerCase(given: "a certain", when: "touch a", rows: "a certain old", next: "attributes a"),
        LedgerCase(given: "a certain", when: "replace a", rows: "a certain old", next: "modified a"),
        LedgerCase(given: "a certain", when: "delete a", rows: "a certain old", next: "deleted a"),
        LedgerCase(given: "a certain", when: "delete a, create a", rows: "a certain old", next: "modified a"),
        LedgerCase(given: "a uncertain", when: "hint a", rows: "a uncertain", next: "modified a interrupted"),
        LedgerCase(given: "a uncertain", when: "chmod a", rows: "a uncertain old", next: "modified a interrupted"),
        LedgerCase(given: "a uncertain", when: "delete a", rows: "a uncertain old", next: "deleted a interrupted"),
        LedgerCase(given: "a lost", when: "create a", rows: "a lost", next: "created a interrupted"),
        LedgerCase(given: "a lost", when: "hint a", rows: "a lost", next: "deleted a interrupted"),
        LedgerCase(given: "a failed", when: "hint a, settle", rows: "a failed"),
        LedgerCase(given: "a failed", when: "write a", rows: "a failed old", next: "modified a"),
        LedgerCase(given: "a failed", when: "delete a", rows: "a failed old", next: "deleted a"),
        LedgerCase(given: "a refused", when: "hint a, settle", rows: "a refused"),
        LedgerCase(given: "a refused", when: "write a", rows: "a refused old", next: "modified a"),
        LedgerCase(given: "a withheld", when: "delete a, lease", rows: ""),
        LedgerCase(given: "a withheld", when: "write a", rows: "a withheld old", next: "modified a"),
    ]

    @Test(arguments: rowsAndDisk) func `a path is due if the disk differs from its row, or the row is uncertain`(
        _ ledger: LedgerCase
    ) { ledger.check() }

    private static let refusals = [
        LedgerCase(when: "create a, settle", rows: "a certain") { $0.mask = .modified },
        LedgerCase(given: "a certain", when: "write a, settle", rows: "a certain") { $0.mask = .deleted },
        LedgerCase(given: "a certain", when: "chmod a, settle", rows: "a certain") { $0.mask = .modified },
        LedgerCase(given: "a certain", when: "delete a, settle", rows: "") { $0.mask = .created },
        LedgerCase(given: "a uncertain", when: "hint a, settle", rows: "a certain") { $0.mask = .created },
        LedgerCase(when: "create a, settle, delete a", rows: "a certain old", next: "deleted a") { $0.mask = .deleted },
        LedgerCase(when: "refusing, create a, settle", rows: "a withheld"),
        LedgerCase(when: "refusing, create a, settle, accepting, write a", rows: "a withheld old", next: "modified a"),
        LedgerCase(given: "a certain", when: "refusing, write a, settle", rows: "a refused"),
        LedgerCase(given: "a certain", when: "refusing, chmod a, settle", rows: "a certain"),
        LedgerCase(given: "a uncertain", when: "refusing, hint a, settle", rows: "a certain"),
    ]

    @Test(arguments: refusals) func `what the mask or the condition refuses is handled without an event`(
        _ ledger: LedgerCase
    ) { ledger.check() }

    private static let leases = [
        LedgerCase("hinted since it settled", when: "create a, settle, hint a, take", rows: "", next: "created a"),
        LedgerCase(
            "changed without a hint", when: "create a, settle, write a, take", rows: "", next: "created a"
        ) { $0.isPolled = true },
        LedgerCase("in use", when: "create a, lease, write a, lease", gives: "created a", rows: "", next: ""),
        LedgerCase(
            "gone before its start", when: "create a, lease, delete a, take-back", gives: "created a", rows: "",
            next: "skipped a"),
        LedgerCase(
            "gone before its start", given: "a uncertain", when: "write a, lease, delete a, take-back",
            gives: "modified a interrupted", rows: "a uncertain old", next: "deleted a interrupted"),
        LedgerCase(
            "held before its start", when: "create a, lease, hold", gives: "created a", rows: "", next: "created a"),
        LedgerCase(
            "put back before its start",
            when: "create a, settle, create b, settle, create c, settle, take a, take b, put-back b, put-back a, take",
            gives: "created a, created b, created a, created b, created c", rows: ""),
        LedgerCase(
            "put back before its start", when: "create a, lease, put-back, delete a", gives: "created a", rows: "",
            next: "skipped a"),
        LedgerCase(
            "put back before its start", when: "create a, lease, write a, read, put-back, take", gives: "created a",
            rows: "", next: "created a"),
        LedgerCase(
            "put back before its next attempt", when: "create a, lease, retry, wait, lease, put-back",
            gives: "created a, created a again", rows: "", next: "created a again"),
    ]

    @Test(arguments: leases) func `a path is leased as it has settled, and a lease that is undone leaves no trace`(
        _ ledger: LedgerCase
    ) { ledger.check() }
}

/// Files that were handled at one path and are at another.
struct MoveTests {
    private static let leases = [
        LedgerCase(given: "a certain", when: "rename a b, settle", rows: "a certain old", next: "moved a>b"),
        LedgerCase(
            "at once", given: "a certain", when: "open a, rename a b, take", gives: "moved a>b", rows: "a certain old"),
        LedgerCase(
            "not before the target", given: "a certain", when: "rename a b, settle, take a", rows: "a certain old",
            next: "moved a>b"),
        LedgerCase(
            given: "a certain, b certain", when: "rename a b", rows: "a certain old, b certain old", next: "moved a>b"),
        LedgerCase(
            given: "a certain, b certain", when: "swap a b", rows: "a certain old, b certain old",
            next: "modified a, modified b"),
        LedgerCase(
            "its name is taken", given: "a certain", when: "rename a b, create a", rows: "a certain old",
            next: "moved a>b"),
        LedgerCase(
            given: "a certain", when: "rename a b", rows: "a certain old", next: "deleted a"
        ) { $0.mask = [.created, .deleted] },
        LedgerCase(given: "a withheld", when: "rename a b", rows: "a withheld old", next: "created b"),
        LedgerCase(
            "refused there", given: "a certain", when: "refusing, rename a b", rows: "a certain old", next: "deleted a"),
        LedgerCase(
            "its old name has a retry", given: "a certain", when: "write a, lease, retry, rename a b, lease",
            gives: "modified a, superseded a, moved a>b interrupted", rows: "a uncertain old"),
    ]

    @Test(arguments: leases) func `a file that was handled elsewhere is moved`(_ ledger: LedgerCase) { ledger.check() }

    private static let outcomes = [
        LedgerCase(
            given: "a certain", when: "rename a b, lease, succeed", gives: "moved a>b", rows: "b certain"),
        LedgerCase(
            given: "a uncertain", when: "rename a b, lease, succeed", gives: "moved a>b interrupted",
            rows: "b uncertain", next: "modified b interrupted"),
        LedgerCase(
            given: "a failed", when: "rename a b, lease, succeed", gives: "moved a>b", rows: "b uncertain",
            next: "modified b interrupted"),
        LedgerCase(
            given: "a refused", when: "rename a b, lease, succeed", gives: "moved a>b", rows: "b uncertain",
            next: "modified b interrupted"),
        LedgerCase(
            "written before", given: "a certain", when: "write a, rename a b, lease, succeed", gives: "moved a>b",
            rows: "b uncertain old", next: "modified b interrupted"),
        LedgerCase(
            given: "a certain", when: "rename a b, lease, give-up", gives: "moved a>b", rows: "b failed"),
        LedgerCase(
            given: "a certain", when: "rename a b, lease, refuse", gives: "moved a>b",
            rows: "a certain old, b withheld",
            next: "deleted a"),
        LedgerCase(
            given: "a certain", when: "rename a b, lease, create a, succeed", gives: "moved a>b", rows: "b uncertain",
            next: "created a, modified b interrupted"),
        LedgerCase(
            "retried", given: "a certain", when: "rename a b, lease, retry", gives: "moved a>b", rows: "a certain old",
            next: "moved a>b again"),
        LedgerCase(
            "retried, its old name taken", given: "a certain", when: "rename a b, lease, retry, create a",
            gives: "moved a>b", rows: "a certain old", next: "moved a>b again"),
        LedgerCase(
            "retried, moved on", given: "a certain", when: "rename a b, lease, retry, rename b c", gives: "moved a>b",
            rows: "a certain old", next: "superseded b, moved a>c interrupted, deleted b interrupted"),
        LedgerCase(
            "an output at its old name", given: "a certain", when: "rename a b, lease, create a, output a, succeed",
            gives: "moved a>b", rows: "a certain, b uncertain", next: "modified b interrupted"),
        LedgerCase(
            "moved back over its own output", given: "a certain",
            when: "rename a b, lease, create a, rename b a, output a, succeed", gives: "moved a>b",
            rows: "a uncertain, b uncertain old", next: "modified a interrupted, deleted b interrupted"),
    ]

    @Test(arguments: outcomes) func `the row of a moved file moves with it`(_ ledger: LedgerCase) { ledger.check() }
}

/// The effect of the end of an attempt on the rows of its paths.
struct LedgerOutcomeTests {
    private static let created = [
        LedgerCase("nothing", when: "create a, lease, succeed", gives: "created a", rows: "a certain"),
        LedgerCase(
            "renamed and back", when: "create a, lease, rename a b, rename b a, succeed", gives: "created a",
            rows: "a uncertain", next: "modified a interrupted"),
        LedgerCase(
            "its directory is renamed and back",
            when: "create x/a, lease, directory x/ z/, directory z/ x/, succeed", gives: "created x/a",
            rows: "x/a uncertain", next: "modified x/a interrupted"),
        LedgerCase(
            "written", when: "create a, lease, write a, succeed", gives: "created a", rows: "a uncertain old",
            next: "modified a interrupted"),
        LedgerCase(
            "its mode set", when: "create a, lease, chmod a, succeed", gives: "created a", rows: "a uncertain old",
            next: "modified a interrupted"),
        LedgerCase(
            "replaced", when: "create a, lease, replace a, succeed", gives: "created a", rows: "a uncertain old",
            next: "modified a interrupted"),
        LedgerCase(
            "deleted", when: "create a, lease, delete a, succeed", gives: "created a", rows: "a uncertain old",
            next: "deleted a interrupted"),
        LedgerCase(
            "another name comes and goes", when: "create a, lease, link a b, delete b, succeed", gives: "created a",
            rows: "a certain"),
        LedgerCase(
            "hints lost", when: "create a, lease, !chmod x/, succeed", gives: "created a", rows: "a certain"),
        LedgerCase(
            "renamed and back, the hints lost", when: "create a, lease, !rename a b, !rename b a, succeed",
            gives: "created a", rows: "a uncertain", next: "modified a interrupted"),
        LedgerCase("polled", when: "create a, lease, succeed", gives: "created a", rows: "a certain") {
            $0.isPolled = true
        },
        LedgerCase(
            "renamed and back between two polls", when: "create a, lease, rename a b, rename b a, succeed",
            gives: "created a", rows: "a uncertain", next: "modified a interrupted"
        ) { $0.isPolled = true },
        LedgerCase(
            "removed by its first step", when: "create a, lease, delete a, step, succeed", gives: "created a", rows: ""
        ) { $0.removesInput = true },
        LedgerCase(
            "removed by its first step, and a new file there",
            when: "create a, lease, delete a, step, create a, succeed", gives: "created a", rows: "",
            next: "created a interrupted"
        ) { $0.removesInput = true },
    ]

    @Test(arguments: created) func `after a success the row is certain if the action can only have read what it shows`(
        _ ledger: LedgerCase
    ) { ledger.check() }

    private static let repeats = [
        LedgerCase(
            "its own change", when: "create a, lease, write a, succeed, lease, write a, succeed",
            gives: "created a, modified a interrupted", rows: "a certain"
        ) { $0.isProgram = true },
        LedgerCase(
            "renamed and back",
            when: "create a, lease, write a, succeed, lease, write a, rename a b, rename b a, succeed",
            gives: "created a, modified a interrupted", rows: "a uncertain old", next: "modified a interrupted"
        ) { $0.isProgram = true },
        LedgerCase(
            "a built-in action", when: "create a, lease, write a, succeed, lease, write a, succeed",
            gives: "created a, modified a interrupted", rows: "a uncertain old", next: "modified a interrupted"),
    ]

    @Test(arguments: repeats) func `what a program changes in a repeat is its normal effect`(_ ledger: LedgerCase) {
        ledger.check()
    }

    private static let others = [
        LedgerCase(given: "a certain", when: "delete a, lease, succeed", gives: "deleted a", rows: ""),
        LedgerCase(
            given: "a certain", when: "delete a, lease, create a, succeed", gives: "deleted a", rows: "a lost",
            next: "created a interrupted"),
        LedgerCase(
            given: "a uncertain", when: "hint a, lease, succeed", gives: "modified a interrupted", rows: "a certain"),
        LedgerCase(when: "create a, lease, give-up", gives: "created a", rows: "a failed"),
        LedgerCase(
            when: "create a, lease, write a, give-up", gives: "created a", rows: "a failed old",
            next: "modified a interrupted"),
        LedgerCase(when: "create a, lease, refuse", gives: "created a", rows: "a withheld"),
        LedgerCase(given: "a certain", when: "write a, lease, refuse", gives: "modified a", rows: "a certain"),
        LedgerCase(
            given: "a certain", when: "write a, lease, write a, refuse", gives: "modified a", rows: "a certain old",
            next: "modified a interrupted"),
        LedgerCase(given: "a lost", when: "create a, lease, refuse", gives: "created a interrupted", rows: "a certain"),
        LedgerCase(
            given: "a certain", when: "write a, lease, delete a, gone", gives: "modified a, superseded a",
            rows: "a uncertain old", next: "deleted a interrupted"),
    ]

    @Test(arguments: others) func `other ends set the row as they say`(_ ledger: LedgerCase) { ledger.check() }
}

/// The next attempt at a job, and other changes of its rows.
struct RetryTests {
    private static let retries = [
        LedgerCase("as offered", when: "create a, lease, retry", gives: "created a", rows: "", next: "created a again"),
        LedgerCase(
            "written since", when: "create a, lease, retry, write a", gives: "created a", rows: "",
            next: "superseded a, created a interrupted"),
        LedgerCase(
            "gone", when: "create a, lease, retry, delete a", gives: "created a", rows: "",
            next: "superseded a, deleted a interrupted"),
        LedgerCase(
            "as its attempt left it", when: "create a, lease, write a, retry", gives: "created a", rows: "",
            next: "created a again interrupted"),
        LedgerCase(
            "gone, which an interrupted step may have done", when: "create a, lease, delete a, interrupt, retry",
            gives: "created a", rows: "", next: "created a again interrupted"
        ) { $0.removesInput = true },
        LedgerCase(
            "gone, which an interrupted step cannot have done", when: "create a, lease, delete a, interrupt, retry",
            gives: "created a", rows: "", next: "superseded a, deleted a interrupted"),
        LedgerCase(
            "removed by a finished step, and a new file there",
            when: "create a, lease, delete a, step, retry, create a", gives: "created a", rows: "",
            next: "created a again"
        ) { $0.removesInput = true },
        LedgerCase(
            "named between two attempts, with a finished step",
            when: "create a, lease, step, retry, rename a b, rename b a, wait, lease, succeed",
            gives: "created a, created a again", rows: "a uncertain", next: "modified a interrupted"),
        LedgerCase(
            "named between two attempts, without",
            when: "create a, lease, retry, rename a b, rename b a, wait, lease, succeed",
            gives: "created a, created a again", rows: "a certain"),
        LedgerCase(
            "named in an earlier attempt", when: "create a, lease, rename a b, rename b a, retry, wait, lease, succeed",
            gives: "created a, created a again", rows: "a certain"),
        LedgerCase(
            "stopped for a change", when: "create a, lease, write a, overtake", gives: "created a", rows: "",
            next: "superseded a, created a interrupted"
        ) { $0.whileBusy = .restart },
    ]

    @Test(arguments: retries) func `a job is retried if the disk is as it was offered`(_ ledger: LedgerCase) {
        ledger.check()
    }

    private static let requests = [
        LedgerCase(
            "an output", when: "create a, lease, create b, output b, succeed", gives: "created a",
            rows: "a certain, b certain"),
        LedgerCase(
            "an output", given: "b uncertain", when: "create a, lease, write b, output b, succeed", gives: "created a",
            rows: "a certain, b uncertain", next: "modified b interrupted"),
        LedgerCase("undo", given: "a uncertain", when: "undo a", rows: "a certain"),
        LedgerCase("undo", when: "create a, lease, retry, undo a", gives: "created a, superseded a", rows: "a certain"),
        LedgerCase("undo", when: "create a, lease, undo a", gives: "created a, no undo of a", rows: ""),
        LedgerCase("apply", when: "create a, settle, apply a", rows: "a certain"),
        LedgerCase(
            "apply", given: "a uncertain", when: "apply a, hint a", rows: "a uncertain", next: "modified a interrupted"),
        LedgerCase(
            "retry", when: "create a, lease, give-up, try-again a", gives: "created a", rows: "a failed",
            next: "created a again"),
        LedgerCase(
            "retry after a later success", when: "create a, lease, give-up, write a, lease, succeed, try-again a",
            gives: "created a, modified a", rows: "a certain"),
        LedgerCase(
            "retry of a move, its old name taken since",
            given: "a certain", when: "rename a b, lease, give-up, create a, lease, succeed, try-again b",
            gives: "moved a>b, created a", rows: "a certain, b uncertain", next: "modified b interrupted"),
    ]

    @Test(arguments: requests) func `own writes and requests of the user set rows`(_ ledger: LedgerCase) {
        ledger.check()
    }
}
