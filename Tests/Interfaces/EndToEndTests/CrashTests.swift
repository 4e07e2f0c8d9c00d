import Glibc
import System
import Testing
import TestKit

/// The program is killed repeatedly while files change, and nothing is lost.
///
/// The driver is a separate program, whose `--help` lists what it checks. These
/// tests run fixed seeds with a bounded number of kills; `make soak` uses new
/// seeds. They run one after the other, because each needs several processes.
@Suite(.serialized) struct CrashTests {
    struct Run: Sendable, CustomTestStringConvertible {
        var mode: String
        var seed: Int
        var kills: Int

        init(_ mode: String, seed: Int, kills: Int) {
            self.mode = mode
            self.seed = seed
            self.kills = kills
        }

        var testDescription: String { "\(mode), seed \(seed), \(kills) kills" }
    }

    static let runs = [
        Run("kill", seed: 1, kills: 15),
        Run("kill", seed: 2, kills: 15),
        Run("truncate", seed: 3, kills: 12),
        Run("stop", seed: 4, kills: 10),
        Run("full", seed: 5, kills: 10),
    ]

    @Test(arguments: runs)
    func `every file is handled despite kills`(_ run: Run) {
        if run.mode == "full", let problem = SmallDisk.problem {
            print("crash test, \(run.testDescription): skipped: \(problem)")
            return
        }
        withTempTree { tree in
            let (status, driver) = Self.drive(
                tree, ["--mode", run.mode, "--seed", "\(run.seed)", "--kills", "\(run.kills)"])
            #expect(status == 0, "\(driver.output)\(driver.error)")
        }
    }

    @Test func `lost work is detected, and reported with what led to it`() {
        withTempTree { tree in
            let (status, driver) = Self.drive(
                tree, ["--seed", "3", "--kills", "4", "--forget", "2", "--timeout", "2"])
            #expect(status == 1)
            let output = driver.output
            #expect(output.contains("FAILED: seed 3, kill: "), "\(output)")
            #expect(output.contains("    life 1 started at "), "\(output)")
            #expect(output.contains("    runs\n        "), "\(output)")
            #expect(output.contains("    operations\n        "), "\(output)")
            #expect(output.contains("to repeat it: crash-driver --seed 3 --kills 4 --mode kill --processes 3 "))
        }
    }

    @Test func `a usage error is reported with the correct usage`() {
        withTempTree { tree in
            let (status, driver) = Self.drive(tree, ["--mode", "gently"])
            #expect(status == 2)
            #expect(driver.output.contains("'--mode gently' is not one of kill, truncate, stop, full"))
        }
    }

    private static func drive(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> (
        status: Int32?, driver: RunningProgram
    ) {
        let driver = RunningProgram(
            Places.products.appending("crash-driver"), arguments + ["--directory", "\(tree.root)/play"], in: tree.root,
            output: tree.path("driver"))
        return (driver.wait(within: .seconds(300)), driver)
    }
}
