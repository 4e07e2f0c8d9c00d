import System
import Testing
import TestKit

@testable import Configuration

/// Warnings that depend on existing files; the others are in `Tests/Fixtures/rules/path/glob-mistakes.yaml`.
struct GlobMistakeTests {
    /// Loads a rule beside these directories, and returns the messages.
    private func messages(_ rule: String, beside directories: [String]) -> [String] {
        withTempTree { tree in
            for name in directories { TestFile.write(tree.path("\(name)/file.txt"), "") }
            TestFile.write(tree.path("rules.yaml"), "rules: [{ action: log, \(rule) }]")
            return makeLoader(in: tree.root).load(["rules.yaml"]).diagnostics.map { diagnostic in
                "\(diagnostic.severity): \(diagnostic.message) (\(diagnostic.help ?? ""))"
            }
        }
    }

    @Test func `brackets in the name of an existing directory are reported`() {
        let warning =
            #"warning: '[2024] scans' does not match the directory of that name "#
            + #"(write '\[2024\] scans' for literal brackets)"#
        #expect(messages("path: '[2024] scans/*'", beside: ["[2024] scans"]) == [warning])
        #expect(messages("path: in/**, exclude: ['[2024] scans']", beside: ["in/[2024] scans"]) == [warning])
        #expect(messages("path: '[2024] scans/*'", beside: []) == [])
        #expect(messages(#"path: '\[2024\] scans/*'"#, beside: ["[2024] scans"]) == [])
        #expect(messages("path: '{a,b}/*'", beside: ["a", "b"]) == [])
    }

    @Test func `a missing root beside a directory with a similar name is reported`() {
        let messages = messages("path: Donwloads/new/*", beside: ["Downloads"])
        #expect(messages.count == 1)
        #expect(messages.first?.contains("/Donwloads/new' does not exist (write '") == true, "\(messages)")
        #expect(messages.first?.contains("/Downloads/new', or create it)") == true, "\(messages)")
        #expect(self.messages("path: disk2/*", beside: ["disk1"]) == [])
        #expect(self.messages("path: incoming/*", beside: ["Downloads"]) == [])
        #expect(self.messages("path: Downloads/*", beside: ["Downloads"]) == [])
    }

    @Test func `a comma in the name of an existing directory is not reported`() {
        #expect(messages("path: 'Smith, John/*.pdf'", beside: ["Smith, John"]) == [])
        #expect(messages("path: 'Smith, John/*.pdf'", beside: []).count == 1)
    }

    @Test func `an exclusion that begins with the name of the root is reported unless such a directory exists`() {
        #expect(messages("path: in/**, exclude: [in/drafts]", beside: ["in/in"]) == [])
        #expect(messages("path: in/**, exclude: [in/drafts]", beside: ["in"]).count == 1)
    }
}
