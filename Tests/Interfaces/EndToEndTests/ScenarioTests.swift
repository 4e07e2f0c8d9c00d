import System
import Testing
import TestKit

/// Each file in `Scenarios/` is one test of the built program.
struct ScenarioTests {
    static let names: [String] = TestFile.names(in: directory)
        .map { String(decoding: $0, as: UTF8.self) }
        .filter { $0.hasSuffix(".scenario") }
        .map { String($0.dropLast(".scenario".count)) }

    private static let directory = PathBytes(#filePath).parent.appending("Scenarios")

    private static func read(_ name: String) -> Scenario {
        let text = TestFile.read(directory.appending("\(name).scenario")) ?? []
        return Scenario(name: name, text: String(decoding: text, as: UTF8.self))
    }

    /// Returns the scenarios that can run here, and prints the reason for the others.
    private static func playable(isOrdinary: Bool) -> [String] {
        names.filter { name in
            guard let problem = ScenarioRunner.problem(of: read(name), isOrdinary: isOrdinary) else { return true }
            print("scenario \(name)\(isOrdinary ? ", ordinary user" : ""): skipped: \(problem)")
            return false
        }
    }

    @Test(arguments: playable(isOrdinary: false))
    func scenario(_ name: String) async throws {
        try await Blocking.run { try Self.play(name, isOrdinary: false) }
    }

    @Test(
        .enabled(if: ScenarioRunner.ordinaryUserProblem == nil, "\(ScenarioRunner.ordinaryUserProblem ?? "")"),
        arguments: ScenarioRunner.ordinaryUserProblem == nil ? playable(isOrdinary: true) : [])
    func `a scenario passes as an ordinary user`(_ name: String) async throws {
        try await Blocking.run { try Self.play(name, isOrdinary: true) }
    }

    private static func play(_ name: String, isOrdinary: Bool) throws {
        try withTempTree { tree in
            try ScenarioRunner(read(name), in: tree.root, isOrdinary: isOrdinary).run()
        }
    }
}
