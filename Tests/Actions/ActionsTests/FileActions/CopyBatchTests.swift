import ActionAPI
import FileActions
import Glibc
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
}
