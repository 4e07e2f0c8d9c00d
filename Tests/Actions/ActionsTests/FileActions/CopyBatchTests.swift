import ActionAPI
import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Several files in one call, as for a rule with `batch`.
struct CopyBatchTests {
    @Test func `a batch is copied with an outcome for each file`() {
        withTempTree { tree in
            let count = 150
            for number in 0..<count where number != 7 { TestFile.write(tree.path("in/\(number)"), "new \(number)") }
            TestFile.write(tree.path("out/9"), "old")
            TestFile.makeDirectory(tree.path("in/11x"))
            let run = BuiltInRun(TransferHandler.copy())
            let invocations = (0..<count).map { number in
                run.invocation(tree.path("in/\(number)"), templates: ["to": Template(literal: "\(tree.path("out"))/")])
            }
            let outcomes = run.handler.run(invocations)
            #expect(outcomes.count == count)
            for (number, outcome) in outcomes.enumerated() {
                if number == 7 {
                    #expect(outcome.code == "gone")
                } else {
                    let name = number == 9 ? "9 (1)" : "\(number)"
                    #expect(outcome.outputs == [tree.path("out/\(name)")], "\(outcome.message)")
                    #expect(TestFile.read(tree.path("out/\(name)")) == Array("new \(number)".utf8))
                }
            }
            #expect(TestFile.names(in: tree.path("out")).count == count)
            run.stop.raise()
            let stopped = run.handler.run(invocations)
            #expect(stopped.count == count && stopped.allSatisfy(\.isInterrupted))
        }
    }

    @Test func `several files are moved to another file system with an outcome for each`() {
        withTempTree { tree in
            guard let other = OtherFileSystem() else { return }
            let count = 70
            let gone = 7
            let crowded = 9
            for number in 0..<count where number != gone {
                TestFile.write(other.root.appending("\(number)"), "new \(number)")
            }
            TestFile.write(tree.path("out/\(crowded)"), "old")
            let run = BuiltInRun(TransferHandler.move())
            var invocations = (0..<count).map { number in
                run.invocation(
                    other.root.appending("\(number)"), templates: ["to": Template(literal: "\(tree.path("out"))/")])
            }
            // This path is now another file than the one that settled.
            invocations[11].expectsSettled = true
            TestFile.write(other.root.appending("11"), "something else")
            let outcomes = run.handler.run(invocations)
            #expect(outcomes.count == count)
            for (number, outcome) in outcomes.enumerated() {
                if number == gone {
                    #expect(outcome.code == "gone")
                } else if number == 11 {
                    #expect(outcome.code == "changed", "\(outcome)")
                } else {
                    let name = number == crowded ? "9 (1)" : "\(number)"
                    #expect(outcome.outputs == [tree.path("out/\(name)")], "\(outcome.message)")
                    #expect(TestFile.read(tree.path("out/\(name)")) == Array("new \(number)".utf8))
                    #expect(outcome.changes.count == 1)
                }
            }
            #expect(listing(other.root) == ["11: something else"])
            #expect(TestFile.names(in: tree.path("out")).count == count - 1)
        }
    }

    @Test func `files of a batch share the directories, of which the first records those that it made`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("elsewhere"))
            TestFile.makeDirectory(tree.path("out"))
            symlink("../elsewhere", "\(tree.path("out/link"))")
            let targets = ["out/new/", "out/link/", "out/other/", "out/new/"]
            var run = BuiltInRun(TransferHandler.copy())
            run.further = JailTests.allow(tree.path("out"))
            let invocations = (0..<16).map { number in
                TestFile.write(tree.path("in/\(number % 2)/\(number)"), "new \(number)")
                let to = tree.path(targets[number % targets.count])
                return run.invocation(
                    tree.path("in/\(number % 2)/\(number)"), templates: ["to": Template(literal: "\(to)/")])
            }
            let outcomes = run.handler.run(invocations)
            for (number, outcome) in outcomes.enumerated() {
                guard number % 4 != 1 else {
                    #expect(outcome.code == "outside", "\(outcome)")
                    continue
                }
                let path = tree.path("\(targets[number % targets.count])\(number)")
                #expect(outcome.outputs == [path], "\(outcome)")
                #expect(TestFile.read(path) == Array("new \(number)".utf8))
                #expect(outcome.changes.count == (number == 0 || number == 2 ? 2 : 1), "\(outcome)")
            }
            #expect(TestFile.names(in: tree.path("elsewhere")).isEmpty)
            for (outcome, invocation) in zip(outcomes, invocations).reversed() {
                for change in outcome.changes.reversed() {
                    #expect(Undoing.undo(change, invocation.job.event) == nil)
                }
            }
            #expect(TestFile.names(in: tree.path("out")) == [Array("link".utf8)])
        }
    }

    @Test func `a copy has the metadata and the content of a file of any size`() throws {
        try withTempTree { tree in
            var run = BuiltInRun(TransferHandler.copy())
            run.expectsSettled = true
            // Around the size up to which one call copies a file.
            let sizes = [0, 1, 4096, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 300_000]
            let invocations = sizes.map { size in
                let path = tree.path("in/\(size)")
                TestFile.write(path, String(repeating: "\(size % 7)", count: size))
                chmod("\(path)", 0o751)
                return run.invocation(path, templates: ["to": Template(literal: "\(tree.path("out"))/")])
            }
            let outcomes = run.handler.run(invocations)
            for (size, outcome) in zip(sizes, outcomes) {
                #expect(outcome.result == .succeeded, "\(outcome)")
                let (from, to) = (tree.path("in/\(size)"), tree.path("out/\(size)"))
                #expect(TestFile.read(to) == TestFile.read(from))
                guard case .present(let source) = KernelFileSystem().stat(from),
                    case .present(let copy) = KernelFileSystem().stat(to)
                else { throw Missing(path: to) }
                #expect(copy.mode == 0o751)
                #expect(copy.modified == source.modified)
                #expect(outcome.changes.last?.left == FileMark(copy))
            }
        }
    }
}
