import Configuration
import Rules
import Testing
import TestKit

/// Checks for commands of rules that another user could change.
struct TrustCheckTests {
    /// Loads a rule and distrusts each command that contains the word `open`.
    private func load(_ rule: String) -> String {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), "rules:\n  - path: /in/*\n" + rule)
            var hostEnvironment = RuleLoader.Environment(
                home: "/home/ada", environment: { _ in nil }, currentDirectory: tree.root)
            hostEnvironment.distrustCommand = { executable, arguments, searchPath in
                let isOpen = (arguments + [searchPath]).contains { word in
                    String(decoding: word, as: UTF8.self).contains("open")
                }
                return isOpen ? Problem("\(executable) is open", help: "run: chmod") : nil
            }
            let loaded = RuleLoader(catalog: FakeCatalog(), hostEnvironment: hostEnvironment).load(["rules.yaml"])
            return DiagnosticText.text(of: loaded.diagnostics)
        }
    }

    @Test(arguments: [
        ("    action: { exec: [/bin/sh, open] }\n", "3:22: error: /bin/sh is open"),
        ("    action: { shell: 'open' }\n", "3:22: error: /bin/sh is open"),
        ("    action: log\n    on_failure: { shell: open }\n", "4:26: error: /bin/sh is open"),
        ("    ready: { command: [/bin/sh, open] }\n    action: log\n", "3:24: error: /bin/sh is open"),
        ("    env: { PATH: /open }\n    action: { exec: [/bin/sh] }\n", "4:22: error: /bin/sh is open"),
        ("    run_as: root\n    action: { exec: [/bin/sh, '${path}', open] }\n", "4:22: error: /bin/sh is open"),
    ])
    func `a command that another user could change is an error at its location`(rule: String, text: String) {
        #expect(load(rule).hasPrefix("rules.yaml:\(text)\n"))
        #expect(load(rule).contains("help: run: chmod"))
    }

    @Test func `the command of a rule that runs as another user is not checked for root`() {
        #expect(load("    run_as: nobody\n    directory: /\n    action: { exec: [/bin/sh, open] }\n") == "")
        #expect(load("    action: { exec: [/bin/sh, shut] }\n") == "")
    }
}
