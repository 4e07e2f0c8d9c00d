import CAlightLinux
import FileEvents
import Glibc
import System
import TestKit
import Watching

/// A watcher of a real directory, and its hints and reports.
final class Watched {
    let queue = HintQueue(wake: {})
    private let watcher: Watcher
    private(set) var hints: [PathBytes: Hint.Signs] = [:]
    private(set) var reports: [WatchReport] = []

    init(_ roots: [WatchRoot], isRaw: Bool = false, excluding excluded: String = "\0") throws {
        let scope = WatchScope(
            roots: roots, isRaw: isRaw, reaches: { !$0.description.hasSuffix(excluded) },
            takes: { !$0.description.hasSuffix(excluded) })
        watcher = try Watcher(scope: scope, queue: queue)
    }

    convenience init(_ roots: [PathBytes], isRaw: Bool = false, excluding excluded: String = "\0") throws {
        try self.init(roots.map { WatchRoot(path: $0) }, isRaw: isRaw, excluding: excluded)
    }

    deinit { watcher.stop() }

    func take() {
        let batch = queue.take()
        for hint in batch.hints { hints[hint.path, default: []].formUnion(hint.signs) }
        reports += batch.reports
    }

    func wait(_ condition: (Watched) -> Bool) -> Bool {
        Deadline.wait {
            take()
            return condition(self)
        }
    }

    var isReady: Bool { reports.contains { if case .ready = $0 { true } else { false } } }
    func clear() {
        hints = [:]
        reports = []
    }
    func stop() { watcher.stop() }
    func rescan() { watcher.rescan() }
    func hintAgain(_ doubt: DoubtedPaths) { watcher.hintAgain(doubt) }
}

/// `watch-hints` in a separate process; see its source for the lines.
struct WatchHints {
    let program: RunningProgram

    /// Starts the program and waits until it is ready.
    ///
    /// `shell` runs before it in the same process, in the namespace or as the user that `prefix` sets up.
    init(_ arguments: [String], in directory: PathBytes, prefix: [String], shell: String = "true") {
        let command = "\(shell) && exec \(Places.products)/watch-hints \(arguments.joined(separator: " "))"
        let words = prefix + ["/bin/sh", "-c", command]
        program = RunningProgram(
            PathBytes(words[0]), Array(words.dropFirst()), in: directory, output: directory.appending("hints-log"))
        _ = wait { $0.contains { $0.hasPrefix("report ready") } || program.exitStatus() != nil }
    }

    func wait(_ condition: ([String]) -> Bool) -> Bool { Deadline.wait { condition(program.lines) } }

    func wait(for line: String) -> Bool { wait { $0.contains(line) } }

    /// Waits for a line with the given beginning and end.
    func wait(for start: String, _ end: String) -> Bool {
        wait { $0.contains { $0.hasPrefix(start) && $0.hasSuffix(end) } }
    }

    func count(_ start: String) -> Int { program.lines.count { $0.hasPrefix(start) } }
}

/// The capabilities of the machine that tests depend on.
enum Machine {
    static let isRoot = geteuid() == 0
    static let hasUserNamespaces = run("unshare", ["-Ur", "true"]) == 0

    static func run(_ program: String, _ arguments: [String]) -> Int32? {
        withTempTree { tree in
            RunningProgram("/usr/bin/env", [program] + arguments, in: tree.root, output: tree.path("log")).wait()
        }
    }

    /// Starts `watch-hints` for a root as an unprivileged user, after the body has created the files.
    static func asNobody(
        _ tree: borrowing TemporaryTree, _ options: [String], _ root: PathBytes, _ make: () -> Void
    ) -> WatchHints {
        _ = tree.root.withCString { chmod($0, 0o755) }
        make()
        return WatchHints(
            options + ["\(root)"], in: tree.root,
            prefix: ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    }

    /// Exchanges two paths atomically.
    ///
    /// Returns 0 or the errno.
    static func exchange(_ one: PathBytes, _ other: PathBytes) -> Int32 {
        one.withCString { one in
            other.withCString { cal_rename(AT_FDCWD, one, AT_FDCWD, $0, CAL_RENAME_EXCHANGING) }
        }
    }

    static func move(_ from: PathBytes, _ to: PathBytes) {
        let result = from.withCString { from in to.withCString { rename(from, $0) } }
        precondition(result == 0, "rename: \(errno)")
    }
}
