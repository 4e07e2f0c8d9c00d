import FileEvents

/// Cases that each show one rule of the core or a sequence that once failed.
enum CoreCases {
    static let all: [ScriptedCase] = [
        ScriptedCase("certain", "create a, start a, crash, delete a", gives: "created a, deleted a"),
        ScriptedCase("suppressed", "create a, settle, lease, delete a", gives: "") { $0.refusedSize = 0 },
        ScriptedCase("gone", "create a, settle, lease, delete a, begin", gives: "skipped a"),
        ScriptedCase("wait-for-move", "new a, rename a b, settle a, lease a", gives: "created a, moved a>b"),
        ScriptedCase(
            "recheck", "new a, write a, rename a b, settle, lease b, begin, run, ok",
            gives: "created a, moved a>b, modified b"),
        ScriptedCase("lease-check", "create a, settle a, hint a, lease a", gives: "created a"),
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
        ScriptedCase("settled-metadata", "create a, list, settle a, open a, lease a", gives: "created a") {
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
            gives: "created a, moved a>b, moved a>b, moved a>b, failed b, created a, modified b"),
        ScriptedCase("skipped", "create a, settle a, delete a", gives: "skipped a"),
        ScriptedCase(
            "retained-steps", "new b, run, ok, create a, start a, swap a b, run, swap a b, ok, fail",
            gives: "created b, note b, created a, note a, modified a, note a"
        ) { $0.steps = [.read, .note] },
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
            "over another, the old name first", "new a, new b, rename a b, settle a, lease a",
            gives: "created a, created b, moved a>b"),
        ScriptedCase(
            "each to the name of the next", "new a, new b, rename b c, rename a b, settle, lease a",
            gives: "created a, created b, moved b>c, moved a>b"),
        ScriptedCase(
            "three, each to the name of the next",
            "new a, new b, new c, rename c d, rename b c, rename a b, settle, lease a, lease b",
            gives: "created a, created b, created c, moved c>d, moved b>c, moved a>b"),
        ScriptedCase(
            "three, each to the name of the next, while down",
            "new a, new b, new c, halt, rename c d, rename b c, rename a b, boot",
            gives: "created a, created b, created c, moved c>d, moved b>c, moved a>b"),
        ScriptedCase(
            "renamed between two polls, before it is hinted again",
            "create x/a, list, give x/a, list, list x/, rename x/a x/b, list, settle x/a, lease x/a",
            gives: "created x/a, moved x/a>x/b"
        ) { $0.isPolled = true },
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
            gives: "created b, created a, modified a, modified b"),
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
            gives: "created a, created b, modified b, modified a"
        ),
        ScriptedCase(
            "written, then moved, then back, one by one", "new a, write a, settle, rename a b, settle, rename b a",
            gives: "created a, modified a"),
        ScriptedCase(
            "deleted after a swap, with a kill",
            "create c, start, create d, run c, ok c, swap c d, read, lease, kill, settle, replace d, settle, delete c",
            gives: "created c, deleted c, created d"
        ),
        ScriptedCase(
            "written, and moved after its lease", "new a, write a, settle, lease, rename a b",
            gives: "created a, moved a>b, modified b"),
        ScriptedCase(
            "its mode is set after its action has read it", "create a, start a, run, chmod a, ok",
            gives: "created a, modified a"
        ),
        ScriptedCase(
            "a file takes the name of one that is tried again",
            "create a, start a, delete a, create b, settle, lease, rename b a, begin, fail a", gives: "created a"),
        ScriptedCase(
            "swapped and replaced before it is tried again", "create b, create c, start b, miss b, swap b c, replace b",
            gives: "created b, created c"
        ),
        ScriptedCase(
            "another name after a move that waits", "new a, rename a c, settle, link c b, settle",
            gives: "created a, moved a>c, created b, modified c"
        ),
    ]
}
