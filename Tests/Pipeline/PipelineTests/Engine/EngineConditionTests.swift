import ActionAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import RegularExpressions
import Rules
import Running
import Storage
import System
import Testing
import TestKit

/// The effects of conditions on jobs and on the ledger.
@Suite(.timeLimit(.minutes(15)))
struct EngineConditionTests {
    private static let large = Condition.size(Comparisons([.init(.more, 3)], text: "> 3"))
    private static let pdf = Condition.mime([.init(type: "application", subtype: "pdf")])

    @Test func `a file that fails a condition creates no job but is recorded`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([.sample("r", [tree.path("in/*")]).with { $0.condition = Self.large }])
            TestFile.write(tree.path("in/a"), "1")
            TestFile.write(tree.path("in/b"), "1234")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/a"), "12345")
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["r created b", "r modified a"])
            #expect(run.attempts.count == 2)
        }
    }

    @Test func `a job for unwanted content is skipped with the reason`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([.sample("r", [tree.path("in/*")]).with { $0.condition = Self.pdf }])
            TestFile.write(tree.path("in/a"), "words")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/a"), "%PDF-1.4\n")
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["r modified a"])
            #expect(run.attempts.map(\.state) == [.skipped, .succeeded])
            #expect(run.attempts.first?.outcome.code == "where")
            #expect(run.attempts.first?.outcome.message == "mime is 'text/plain', expected 'application/pdf'")
        }
    }

    @Test func `a file stopped by its content is not reported to later rules, nor is its deletion`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let image = Condition.mime([.init(type: "image", subtype: nil)])
            var rules = [("pdf", Self.pdf), ("image", image)].map { name, condition in
                Rule.sample(name, [tree.path("in/*")], events: [.created, .deleted]).with {
                    $0.condition = condition
                    $0.isLast = true
                }
            }
            rules += ["one", "two"].map { Rule.sample($0, [tree.path("in/*")], events: [.created, .deleted]) }
            let run = EngineRun(rules)
            let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 0x0D, 0x49, 0x48, 0x44, 0x52]
            TestFile.write(tree.path("in/a"), png)
            TestFile.write(tree.path("in/b"), "words")
            // The first two rules check both files.
            #expect(run.ended(6))
            #expect(run.received.sorted() == ["image created a", "one created b", "two created b"])
            TestFile.removeTree(tree.path("in/a"))
            TestFile.removeTree(tree.path("in/b"))
            #expect(Deadline.wait { run.calls.count >= 6 })
            #expect(run.isIdle)
            run.stop()
            #expect(run.received.dropFirst(3).sorted() == ["image deleted a", "one deleted b", "two deleted b"])
        }
    }

    @Test func `a batch runs only for the files that pass the conditions`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.path("in/*")]).with {
                $0.condition = Self.pdf
                $0.batch = Rule.Batch(files: 3, wait: .seconds(30))
            }
            let run = EngineRun([rule])
            TestFile.write(tree.path("in/a"), "%PDF-1.4\n")
            TestFile.write(tree.path("in/b"), "words")
            TestFile.write(tree.path("in/c"), "%PDF-1.4\n")
            #expect(run.ended(3))
            run.stop()
            #expect(Set(run.received) == ["r created a", "r created c"])
            #expect(run.attempts.map(\.state).filter { $0 == .skipped }.count == 1)
        }
    }

    @Test func `a file named by a user has been checked before`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let path = tree.path("in/a")
            TestFile.write(path, "words")
            let received = Locked<[PathBytes]>([])
            let run = ApplyRun(
                .sample("r", [tree.path("in/*")]).with { $0.condition = Self.pdf }, limit: 1,
                store: DiskStore.inMemory(),
                perform: { _, invocations in
                    invocations.map { invocation in
                        received.change { $0.append(invocation.job.event.path) }
                        return Outcome(.succeeded)
                    }
                }, log: .silent, report: { _ in })
            let id = JobID(now: Timestamp(seconds: 1_000, nanoseconds: 0))
            #expect(run.run([JobRequest(id: id, rule: "r", path: path)]).open.isEmpty)
            #expect(received.value == [path])
        }
    }

    @Test func `actions receive the captures of regular expressions`() throws {
        try withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let expression = try RegularExpression("^(?<n>[0-9]+)-(.)")
            let template = try #require(Template("${match.n}/${2}"))
            let texts = Locked<[String]>([])
            let run = EngineRun([.sample("r", [tree.path("in/*")]).with { $0.condition = .regex(expression) }]) {
                _, invocation in
                let text = String(decoding: template.expanded(with: invocation.placeholders), as: UTF8.self)
                texts.change { $0.append(text) }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/12-x.jpg"), "1")
            #expect(run.ended(1))
            run.stop()
            #expect(texts.value == ["12/x"])
        }
    }
}
