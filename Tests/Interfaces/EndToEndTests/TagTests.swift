import Testing
import TestKit

struct TagTests {
    private static let rules = """
        rules:
          - { name: day, path: in/*, action: log }
          - { name: night, path: in/*, tags: [nightly, slow], action: log }
          - { name: old, path: in/*, tags: [retired], enabled: false, action: log }
        """

    private static func run(_ arguments: [String]) -> (status: Int32?, output: String, error: String) {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), rules)
            TestFile.makeDirectory(tree.path("in"))
            return RunningProgram.alight(arguments, in: tree.root).result()
        }
    }

    @Test func `check reports which rules a tag excludes`() {
        let (status, output, _) = Self.run(["check", "rules.yaml", "--tag", "slow"])
        #expect(status == 0)
        #expect(output.contains("rule 'day' (rules.yaml:2:5): excluded by --tag"))
        #expect(output.contains("rule 'night' (rules.yaml:3:5): created, modified"))
        #expect(output.contains("1 rule in 1 file: no errors"))
    }

    @Test(arguments: ["run", "check"])
    func `an unknown tag is reported with the nearest one`(command: String) {
        let (status, output, error) = Self.run([command, "rules.yaml", "--tag", "nigthly"])
        #expect(status == 2)
        #expect(output.isEmpty)
        #expect(error.contains("no rule has the tag 'nigthly'"))
        #expect(error.contains("write 'nightly'; the tags are nightly, retired, slow"))
    }

    @Test func `a tag that only disabled rules have leaves nothing to run`() {
        let (status, _, error) = Self.run(["run", "rules.yaml", "--tag", "retired"])
        #expect(status == 3)
        #expect(error.contains("all rules that have the tag are disabled"))
    }
}
