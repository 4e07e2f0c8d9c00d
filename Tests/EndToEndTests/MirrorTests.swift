import FileEvents
import Glibc
import TestKit
import Testing

/// What the program tells is enough to know the tree: see `Tests/MirrorDriver`.
///
/// Seeds are fixed, so that the operations are the same each time; `make soak`
/// draws new ones. One after the other, because each needs several processes.
@Suite(.serialized) struct MirrorTests {
    struct Play: Sendable, CustomTestStringConvertible {
        var mode: String
        var seed: Int
        var operations: Int
        var processes: Int

        init(_ mode: String, seed: Int, operations: Int, processes: Int = 3) {
            self.mode = mode
            self.seed = seed
            self.operations = operations
            self.processes = processes
        }

        var testDescription: String { "\(mode), seed \(seed), \(processes) processes" }
    }

    static let plays = [
        Play("plain", seed: 1, operations: 2000, processes: 1),
        Play("plain", seed: 2, operations: 6000),
        Play("plain", seed: 3, operations: 6000),
        Play("overflow", seed: 1, operations: 4000),
        Play("overflow", seed: 2, operations: 4000),
        Play("limit", seed: 1, operations: 3000),
        Play("limit", seed: 2, operations: 3000),
        Play("poll", seed: 1, operations: 3000),
        Play("poll", seed: 2, operations: 3000),
        Play("unreadable", seed: 1, operations: 3000),
        Play("unreadable", seed: 2, operations: 3000),
    ]

    @Test(arguments: plays)
    func `a mirror made of events equals the tree`(_ play: Play) {
        withTempTree { tree in
            // The ordinary user of a play has to come through.
            _ = tree.root.withCString { chmod($0, 0o755) }
            let driver = RunningProgram(
                Places.products.appending("mirror-driver"),
                [
                    "--mode", play.mode, "--seed", "\(play.seed)", "--operations", "\(play.operations)",
                    "--processes", "\(play.processes)", "--folder", "\(tree.root)/play",
                ], in: tree.root, output: tree.path("driver"))
            let status = driver.wait(within: .seconds(300))
            #expect(status == 0, "\(driver.output)\(driver.error)")
        }
    }

    @Test func `a wrong command line says what is right`() {
        withTempTree { tree in
            let driver = RunningProgram(
                Places.products.appending("mirror-driver"), ["--mode", "gentle"], in: tree.root,
                output: tree.path("driver"))
            #expect(driver.wait() == 2)
            #expect(driver.output.contains("'--mode gentle' is none of plain, overflow, limit, poll, unreadable"))
        }
    }
}
