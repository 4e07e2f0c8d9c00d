import ActionAPI
import FileActions
import FileEvents
import Foundation
import Glibc
import Globbing
import Rules
import System
import TestKit
import Testing

/// A rule for `in/**` of a tree, and its list at `out/list.json`.
struct IndexBench {
    let root: PathBytes
    var handler = IndexHandler()
    var sort = "name"
    var to: PathBytes
    var types: Set<FileType> = [.file]
    var filter: PathFilter
    let log = LogLines()
    var stop = StopSignal()

    init(_ root: PathBytes) throws {
        self.root = root
        to = root.appending("out/list.json")
        filter = PathFilter(globs: [try Glob(root.appending("in/**").bytes)])
        TestFile.makeDirectory(root.appending("in"))
    }

    func path(_ name: String) -> PathBytes { root.appending("in").appending(name) }

    func invocation(_ kind: EventKind, _ path: PathBytes, from: PathBytes? = nil) -> Invocation {
        let event = FileEvent.sample(kind, path, root: root.appending("in"), from: from)
        let job = Job(id: JobID("01J"), rule: "r", event: event)
        var invocation = Invocation(
            job: job, rule: SourcePosition(file: "rules.yaml", line: 1, column: 1), baseDirectory: root,
            maximumAttempts: 5,
            parameters: .object(["to": .text(to.bytes), "sort": .text(Array(sort.utf8))]),
            selection: FileSelection(filter: filter, types: types),
            now: event.time, timeout: .seconds(60), stop: stop, log: log.logger)
        invocation.literalHeads = ["to": to.parent]
        return invocation
    }

    @discardableResult
    func run(_ kind: EventKind, _ name: String, from: String? = nil) -> Outcome {
        handler.run(invocation(kind, path(name), from: from.map { path($0) }))
    }

    /// Returns the entries of the list, or nil if the file is not a list.
    func entries() -> [[String: Any]]? {
        TestFile.read(to).flatMap { try? JSONSerialization.jsonObject(with: Data($0)) } as? [[String: Any]]
    }

    /// Waits until no process can write to the file.
    ///
    /// Other tests start programs: a child inherits each open descriptor until it calls execve(2).
    func waitForWriters(_ name: String) {
        #expect(Deadline.wait { KernelFileSystem().writers(of: path(name)) == .free })
    }

    func names() -> [String]? { entries()?.compactMap { $0["path"] as? String } }
}
