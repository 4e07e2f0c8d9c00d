import FileEvents
import RuleLoading
import Rules
import Testing
import TestKit

struct DocumentationTests {
    static let reference = String(
        decoding: TestFile.read(Places.checkout.appending("docs/rules.md")) ?? [], as: UTF8.self)

    /// The fenced blocks of a language.
    static func blocks(_ language: String) -> [String] {
        var blocks: [String] = []
        var open: String?
        for line in reference.split(separator: "\n", omittingEmptySubsequences: false) {
            if let text = open {
                if line == "```" {
                    blocks.append(text)
                    open = nil
                } else {
                    open = text + line + "\n"
                }
            } else if line == "```\(language)" {
                open = ""
            }
        }
        return blocks
    }

    @Test(arguments: blocks("yaml"))
    func `every example in the reference loads`(example: String) {
        let loaded = load(example)
        #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
        #expect(loaded.ruleset.rules.count + loaded.disabledRules.count > 0)
    }

    @Test func `the reference has an example of every key`() {
        let examples = Self.blocks("yaml").joined()
        #expect(Self.blocks("yaml").count >= 12)
        for key in [
            "name", "description", "enabled", "path", "exclude", "outputs", "ignore_defaults", "types", "tree",
            "hidden", "depth", "events", "settle", "stable", "writers", "locks", "when_held", "ignore_partial",
            "max_wait", "existing", "missing", "same_content", "own_writes", "tail", "batch", "backend", "poll",
            "catch_up",
            "formerly", "action",
            "timeout", "concurrency", "retry", "while_busy", "cooldown", "on_failure", "where", "allow_loop",
            "defaults",
            "window", "priority", "stop", "tags", "ready", "group", "require", "env", "directory", "case", "by",
            "umask", "nice", "ionice", "limits", "run_as", "sandbox",
        ] {
            #expect(Self.reference.contains("`\(key)`"), "\(key) is not described")
            #expect(examples.contains("\(key):"), "\(key) has no example")
        }
    }

    @Test func `the reference names every event, placeholder and limit`() {
        for word in EventMask.words { #expect(Self.reference.contains("`\(word)`")) }
        for word in Placeholder.words where word != "steps.N.outputs.0" && word != "mtime" && word != "now" {
            #expect(Self.reference.contains("${\(word)}"), "\(word) is not described")
        }
        #expect(Self.reference.contains("more than 100,000 values"))
        #expect(YAMLParser.maximumAliasSize == 100_000)
    }

    @Test func `the page that diagnostics point to describes every event`() {
        let page = String(
            decoding: TestFile.read(Places.checkout.appending("docs/events.md")) ?? [], as: UTF8.self)
        for word in EventMask.words { #expect(page.contains("`\(word)`"), "\(word) is not described") }
    }

    /// Takes whatever a rules file names.
    private struct OpenCatalog: HandlerCatalog {
        func find(_ name: String, from folder: PathBytes) -> Result<HandlerDescription, HandlerProblem> {
            .success(HandlerDescription(reference: HandlerReference(name: name), parameters: nil))
        }

        func names(from folder: PathBytes) -> [String] { [] }
    }

    @Test func `the shipped rules load`() {
        let examples = TestFile.names(in: Places.checkout.appending("examples"))
            .map { "examples/\(String(decoding: $0, as: UTF8.self))/rules.yaml" }
            .filter { TestFile.exists(Places.checkout.appending($0)) }
        let loader = RuleLoader(
            catalog: OpenCatalog(),
            surroundings: RuleLoader.Surroundings(
                home: "/home/ada", environment: { _ in nil }, currentFolder: Places.checkout))
        for path in ["rules"] + examples {
            let loaded = loader.load([path])
            #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
            #expect(!loaded.ruleset.rules.isEmpty)
        }
    }
}
