import Foundation
import Glibc
import Testing
import TestKit

/// Rules whose actions use all slots for a long time, beside other rules.
struct SlotTests {
    private static let slow = "[sleep, \"600\"]"

    private static func begin(_ tree: borrowing TemporaryTree, _ rules: String, _ arguments: [String]) -> RunningProgram
    {
        TestFile.write(tree.path("rules.yaml"), "rules:\n" + rules)
        let program = RunningProgram.alight(["run", "rules.yaml", "--log-format", "json"] + arguments, in: tree.root)
        JournalFileTests.awaitReady(program)
        return program
    }

    private static func rule(_ name: String, _ action: String) -> String {
        "  - { name: \(name), path: \(name)/*, settle: 50ms, action: \(action) }\n"
    }

    private static func command(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> String {
        let program = RunningProgram.alight(
            arguments, in: tree.root, environment: JournalCommand.environment, output: "command")
        _ = program.wait()
        return program.output + program.error
    }

    /// Ends the program although its actions run for a long time.
    private static func end(_ program: RunningProgram) {
        program.signal(SIGTERM)
        #expect(Deadline.wait { program.error.contains("stopping") || program.exitStatus() != nil }, "\(program.error)")
        program.signal(SIGTERM)
        #expect(program.wait() == 1, "\(program.error)")
    }

    /// Returns the number of finished attempts of a rule.
    private static func ended(_ program: RunningProgram, _ rule: String) -> Int {
        program.lines.count { $0.contains("\"rule\":\"\(rule)\"") }
    }

    @Test func `slow actions in all slots block no other rule`() {
        withTempTree { tree in
            let slow = ["s1", "s2", "s3", "s4"]
            for name in slow + ["quick", "log"] { TestFile.makeDirectory(tree.path(name)) }
            let rules = slow.map { Self.rule($0, "{ exec: \(Self.slow) }") }.joined()
            let program = Self.begin(
                tree, rules + Self.rule("quick", "{ exec: [\"true\"] }") + Self.rule("log", "log"), ["--jobs", "4"])
            for name in slow { for number in 1...20 { TestFile.write(tree.path("\(name)/\(number)"), "x") } }
            let areFull = Deadline.wait {
                Self.command(tree, ["status"]).contains("no slot is free: 4 of 4 in use")
            }
            #expect(areFull)
            let start = ContinuousClock.now
            TestFile.write(tree.path("log/1"), "x")
            for number in 1...20 { TestFile.write(tree.path("quick/\(number)"), "x") }
            #expect(Deadline.wait { Self.ended(program, "log") == 1 }, "\(program.error)")
            // Short actions do not even wait for an extra slot.
            #expect(Self.ended(program, "quick") == 0 || ContinuousClock.now - start > .seconds(1))
            #expect(Deadline.wait { Self.ended(program, "quick") == 20 }, "\(program.error)")
            #expect(slow.allSatisfy { Self.ended(program, $0) == 0 })
            Self.end(program)
        }
    }

    @Test func `status and explain report that no slot is free, and what uses the slots`() {
        withTempTree { tree in
            for name in ["slow", "quick", "log"] { TestFile.makeDirectory(tree.path(name)) }
            TestFile.write(tree.path("config.yaml"), "jobs: { limit: 1, extra: 0 }\n")
            let rules = Self.rule("slow", "{ exec: \(Self.slow) }") + Self.rule("quick", "{ exec: [\"true\"] }")
            let program = Self.begin(tree, rules + Self.rule("log", "log"), ["--config", "config.yaml"])
            TestFile.write(tree.path("slow/1"), "x")
            let isFull = Deadline.wait {
                Self.command(tree, ["status"]).contains("running: slow: \(tree.path("slow/1")), exec, for ")
            }
            #expect(isFull)
            TestFile.write(tree.path("quick/1"), "x")
            let isWaiting = Deadline.wait {
                Self.command(tree, ["status"]).contains("no slot is free: 1 of 1 in use; waiting: 'quick' for ")
            }
            #expect(isWaiting)
            let explain = ["explain", "--rules", "rules.yaml"]
            let quick = Self.command(tree, explain + ["quick/1"])
            #expect(
                quick.contains(
                    "would wait: no slot is free; in use by rule 'slow' for '\(tree.path("slow/1"))', for "), "\(quick)"
            )
            TestFile.write(tree.path("log/1"), "x")
            #expect(Deadline.wait { Self.ended(program, "log") == 1 }, "\(program.error)")
            let log = Self.command(tree, explain + ["log/1"])
            #expect(!log.contains("no slot is free"), "\(log)")
            // The limit is strict.
            let waits = Deadline.wait {
                let text = Self.command(tree, ["status"])
                let isLong = !text.contains("quick' for 1.") && !text.contains(" ms")
                return text.contains("waiting: 'quick' for ") && isLong || Self.ended(program, "quick") > 0
            }
            #expect(waits && Self.ended(program, "quick") == 0)
            Self.end(program)
        }
    }
}
