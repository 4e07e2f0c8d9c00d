@testable import ActionAPI
@testable import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// A move to another file system while other moves are under way.
struct MoveGroupTests {
    /// Copies a file and publishes it under its new name.
    ///
    /// Its source still exists.
    private func published(
        _ path: PathBytes, to: PathBytes, _ conflict: String
    ) throws -> (FileTransfer, FileTransfer.Copy, PathBytes) {
        let run = BuiltInRun(TransferHandler.move())
        let invocation = run.invocation(
            path,
            templates: ["to": Template(literal: "\(to)"), "on_conflict": Template(literal: conflict)])
        let move = FileTransfer(invocation, .moved, trash: Trash(home: nil), among: OpenDirectories())
        guard case .staged(let staged) = try move.start(isFlushed: true),
            case .placed(let copy, let name) = try move.publish(staged)
        else { throw Missing(path: path) }
        return (move, copy, name)
    }

    @Test func `a copy for which a duplicate was removed stays, though its source has changed`() throws {
        try withTempTree { tree in
            guard let other = OtherFileSystem() else { return }
            for name in ["1/a", "2/a"] { TestFile.write(other.root.appending(name), "same") }
            let to = tree.path("out/")
            let directory = PathBytes("\(to)/")
            let (move, copy, name) = try published(other.root.appending("1/a"), to: directory, "deduplicate")
            let twin = BuiltInRun(TransferHandler.move())(
                other.root.appending("2/a"), ["to": PathBytes("\(to)/"), "on_conflict": "deduplicate"])
            #expect(twin.code == "same-content")
            TestFile.write(other.root.appending("1/a"), "other")
            let outcome = try move.finish(copy, name)
            #expect(outcome.code == "changed")
            #expect(!outcome.changes.contains { if case .moved = $0.kind { true } else { false } })
            #expect(listing(other.root) == ["1/a: other", "2/"])
            #expect(listing(to) == ["a: same"])
        }
    }

    @Test func `a copy whose source has changed is removed`() throws {
        try withTempTree { tree in
            guard let other = OtherFileSystem() else { return }
            TestFile.write(other.root.appending("a"), "old")
            let directory = PathBytes("\(tree.path("out"))/")
            let (move, copy, name) = try published(other.root.appending("a"), to: directory, "rename")
            TestFile.write(other.root.appending("a"), "newer")
            #expect(try move.finish(copy, name).code == "changed")
            #expect(listing(other.root) == ["a: newer"])
            #expect(listing(tree.root) == ["out/"])
        }
    }

    @Test func `files of one name in a group are moved one by one, and each reports its own path`() {
        withTempTree { tree in
            guard let other = OtherFileSystem() else { return }
            let names = (0..<6).map { "\($0)/x" }
            for name in names { TestFile.write(other.root.appending(name), "from \(name)") }
            let run = BuiltInRun(TransferHandler.move())
            let outcomes = run.handler.run(
                names.map { name in
                    run.invocation(
                        other.root.appending(name),
                        templates: [
                            "to": Template(literal: "\(tree.path("out"))/"),
                            "on_conflict": Template(literal: "rename_existing"),
                        ])
                })
            #expect(outcomes.allSatisfy { $0.result == .succeeded })
            #expect(TestFile.read(tree.path("out/x")) == Array("from 5/x".utf8))
            for (name, outcome) in zip(names, outcomes) {
                // The mark of its last change is that of its own file, whatever name the file has by now.
                let moved = outcome.changes.last {
                    $0.kind == .moved(from: other.root.appending(name), to: tree.path("out/x"))
                }
                let there = TestFile.names(in: tree.path("out")).compactMap { inner -> PathBytes? in
                    let path = tree.path("out").appending(inner)
                    return TestFile.read(path) == Array("from \(name)".utf8) ? path : nil
                }
                #expect(there.count == 1)
                if let moved, let path = there.first, let metadata = try? metadata(path) {
                    #expect(moved.left.identity == metadata.identity)
                } else {
                    Issue.record("\(name) does not tell where it is")
                }
            }
        }
    }
}
