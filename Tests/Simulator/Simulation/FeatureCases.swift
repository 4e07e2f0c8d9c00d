import FileEvents
import Rules

/// Cases with several rules, gates, and special file systems.
enum FeatureCases {
    static let all: [ScriptedCase] = [
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
        ScriptedCase(
            "a set of which one file was moved and changed",
            "create y/a.x, link y/a.x b.x, crash, rename b.x a.y, write a.y, rename a.y y/a.y",
            gives: "modified y/a.x, moved b.x>y/a.y, modified y/a.x, modified y/a.y"
        ) {
            $0.group = ["*.x", "*.y"]
            $0.catchUp = false
        },
        ScriptedCase(
            "a set of which one file is in use by another rule",
            "create a.x, create a.y, settle, lease, begin, run a.x, ok a.x, lease",
            gives: "created a.x, created a.y, other: created a.x, other: created a.y"
        ).beside { $0.group = ["*.x", "*.y"] },
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
        ) { $0.steps = [.copy] },
        ScriptedCase(
            "an output is moved, written again, and moved back",
            "new a, rename o/a a, settle, lease, begin, run, rename a o/a, ok, delete o/a",
            gives: "created a, moved o/a>a, deleted a, deleted o/a"
        ) { $0.steps = [.copy] },
        ScriptedCase("an output, and a crash", "create y/a, start, crash", gives: "created y/a, created y/a") {
            $0.steps = [.copy]
        },
        ScriptedCase("a batch", "create a, create b, create c", gives: "created a, created b, created c") {
            $0.batch = 2
        },
        ScriptedCase("restart", "create a, start a, write a, settle, run, ok", gives: "created a, created a") {
            $0.whileBusy = .restart
        },
        ScriptedCase(
            "restart, after its effect", "create a, start a, run, write a, settle", gives: "created a, created a"
        ) { $0.whileBusy = .restart },
        ScriptedCase("arriving", "create a, read, turn, write a", gives: "arriving a, created a") {
            $0.events = [.arriving, .created]
        },
        ScriptedCase("raw", "new a, read a", gives: "opened a, created a, opened a, accessed a, closed a") {
            $0.events = [.created, .opened, .accessed, .closed]
        },
        ScriptedCase(
            "a rescan that is reported", "rescan, rest", gives: "scanStarted , scanEnded "
        ) { $0.events = [.scanStarted, .scanEnded] },
        ScriptedCase("a directory is renamed", "new x/a, directory x/ z/", gives: "created x/a, moved x/a>z/a"),
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
        ) { $0.edits() },
        ScriptedCase(
            "text whose action was killed, and another rule", "create c, settle, kill, lease, crash, settle, lease",
            gives: "created c, other: created c"
        ).beside {
            $0.follows = true
            $0.isPolled = true
        },
        ScriptedCase(
            "a rescan while its action runs", "create a, start a, rescan, turn, read, turn, run, ok", gives: "created a"
        ),
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
        ScriptedCase(
            "the deletion of a file without unread text",
            """
            create b, settle, lease, rename b d, begin, run b, !create b, settle, !rename d c, ok b, touch c, settle, \
            !rename c d, rename d a, replace a
            """, gives: "created b, modified b, created a"
        ) { $0.follows = true },
        ScriptedCase(
            "a file of a set that has got another name of the set while the program was off",
            "create b.x, link b.x a.y, settle, rename b.x x/a.y, kill, rename x/a.y a.x",
            gives: "moved x/a.y>a.x, created a.y"
        ) {
            $0.group = ["*.x", "*.y"]
            $0.events = .differences
            $0.catchUp = false
        },
        ScriptedCase(
            "a set that is retried when a file is gone",
            "create a.x, create a.y, start, crash, settle, lease, begin, give-up a.x, delete a.x, retry",
            gives: "created a.x, created a.y, failed a.x, failed a.y, created a.x, created a.y"
        ) {
            $0.group = ["*.x", "*.y"]
            $0.events = [.created, .modified]
        },
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
            gives: "created a, created c, moved c>a"
        ) { $0.follows = true },
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
            @7 directory x/ y/, boot
            """,
            gives: "take y/b, note y/b, take y/a, note y/a, failed a"
        ) {
            $0.events = [.created, .modified, .attributes]
            $0.steps = [.take, .note]
        },
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
