import Configuration
import FileEvents
import Rules
import System
import TestKit
import Testing

/// A handler that requires certain events.
struct NeededEventsTests {
    private struct Catalog: HandlerCatalog {
        func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, HandlerProblem> {
            .success(
                HandlerDescription(
                    reference: HandlerReference(name: name), parameters: nil,
                    neededEvents: [.created, .modified, .deleted]))
        }

        func names(from directory: PathBytes) -> [String] { ["mirror"] }
    }

    private static let cases: [(String, String)] = [
        (
            "rules:\n  - path: in/*\n    action: mirror\n",
            """
            rules.yaml:3:13: error: 'mirror' needs the event 'deleted' too
             3 |     action: mirror
               |             ^~~~~~
                help: write 'events: [created, modified, deleted]'
            """
        ),
        (
            "rules:\n  - path: in/*\n    events: [created, truncated, moved]\n    action: mirror\n",
            """
            rules.yaml:3:14: error: 'mirror' needs the events 'modified', 'deleted' too
             3 |     events: [created, truncated, moved]
               |              ^~~~~~~
                help: write 'events: [created, modified, deleted, moved, truncated]'
            """
        ),
        ("rules:\n  - path: in/*\n    events: [created, modified, deleted, scan_end]\n    action: mirror\n", ""),
    ]

    @Test(arguments: cases)
    func `a rule without the required events gets an error that names them`(_ rules: String, _ expected: String) {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), rules)
            let loader = RuleLoader(
                catalog: Catalog(),
                hostEnvironment: RuleLoader.Environment(
                    home: nil, environment: { _ in nil }, currentDirectory: tree.root))
            let text = loader.load(["rules.yaml"]).diagnostics.map(\.description).joined(separator: "\n")
            #expect(text == expected)
        }
    }
}
