import FileEvents
import Glibc
import System
import Watching

// Watches directories and prints each hint and report as one line, for tests that need a separate process: in a user
// namespace with low limits, in a mount namespace, or as another user.
//
//     watch-hints [--poll] [--inotify] [--raw] [--every MILLISECONDS] DIRECTORY…
//
// The lines are `hint ORIGIN SIGNS PATH` and `report WORD PATH…`. The program runs until a signal terminates it.

private let words: [(Hint.Signs, String)] = [
    (.written, "written"), (.closed, "closed"), (.appeared, "appeared"), (.vanished, "vanished"),
    (.attributes, "attributes"), (.listed, "listed"), (.subtree, "subtree"), (.moved, "moved"), (.polled, "polled"),
    (.opened, "opened"), (.accessed, "accessed"), (.closedUnwritten, "closedUnwritten"),
]

private func line(_ hint: Hint) -> String {
    let signs = words.filter { hint.signs.contains($0.0) }.map(\.1).joined(separator: ",")
    return "hint \(hint.origin.rawValue) \(signs) \(hint.path)"
}

private func line(_ report: WatchReport) -> String {
    switch report {
    case .ready(let count): "ready \(count)"
    case .progress(let count): "progress \(count)"
    case .overflow: "overflow"
    case .overflowAgain: "overflow again"
    case .companions: "companions"
    case .listing(let root, let origin): "listing \(origin.rawValue) \(root)"
    case .listed(let root, let origin): "listed \(origin.rawValue) \(root)"
    case .rescanned: "rescanned"
    case .changed(let number): "changed \(number)"
    case .rootMissing(let root, let directory): "rootMissing \(root) \(directory)"
    case .rootAppeared(let root): "rootAppeared \(root)"
    case .unmounted(let directory, let point): "unmounted \(directory) at \(point)"
    case .mounted(let directory): "mounted \(directory)"
    case .polling(let directory, .asked, _): "polling asked \(directory)"
    case .polling(let directory, .fileSystem(let name), _): "polling \(name) \(directory)"
    case .limited(let limit, let needed, let polled):
        "limited \(limit.name)=\(limit.value) needed=\(needed) polled=\(polled)"
    case .writersUnreported(let directory, let errno): "writers unreported \(directory): \(errno)"
    case .failure(let error): "failure \(error)"
    }
}

private var backend = Backend.auto
private var isRaw = false
private var interval = Duration.milliseconds(100)
private var directories: [PathBytes] = []
private var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--poll": backend = .poll
    case "--inotify": backend = .inotify
    case "--raw": isRaw = true
    case "--every": interval = .milliseconds(arguments.popFirst().flatMap { Int($0) } ?? 100)
    default: directories.append(PathBytes(argument))
    }
}

private var ends: [Int32] = [-1, -1]
guard pipe(&ends) == 0 else { exit(1) }
private let wakeEnd = ends[1]
private let queue = HintQueue {
    var byte: UInt8 = 0
    _ = write(wakeEnd, &byte, 1)
}
private let roots = directories.map { WatchRoot(path: $0, backend: backend, interval: interval) }
private let watcher = try Watcher(
    scope: WatchScope(roots: roots, isRaw: isRaw, reaches: { _ in true }, takes: { _ in true }), queue: queue)
var bytes = [UInt8](repeating: 0, count: 64)
while read(ends[0], &bytes, bytes.count) > 0 {
    let batch = queue.take()
    let lines = batch.hints.map { line($0) } + batch.reports.map { "report " + line($0) }
    var text = Array(lines.map { $0 + "\n" }.joined().utf8)[...]
    while !text.isEmpty {
        let count = text.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
        guard count > 0 else { exit(1) }
        text = text.dropFirst(count)
    }
}
watcher.stop()
