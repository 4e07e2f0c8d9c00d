import FileEvents
import TestKit
import Testing

/// Every file in `Scenarios/` is one test of the built program.
struct ScenarioTests {
    static let names: [String] = TestFile.names(in: folder)
        .map { String(decoding: $0, as: UTF8.self) }
        .filter { $0.hasSuffix(".scenario") }
        .map { String($0.dropLast(".scenario".count)) }

    private static let folder = PathBytes(#filePath).parent.appending("Scenarios")

    @Test(arguments: names)
    func scenario(_ name: String) throws {
        let text = try #require(TestFile.read(Self.folder.appending("\(name).scenario")))
        try withTempTree { tree in
            try ScenarioRunner(Scenario(name: name, text: String(decoding: text, as: UTF8.self)), in: tree.root).run()
        }
    }
}
