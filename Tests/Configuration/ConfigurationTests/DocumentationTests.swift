import FileEvents
import JSON
import Rules
import System
import Testing
import TestKit

@testable import Configuration

struct DocumentationTests {
    static let reference = String(
        decoding: TestFile.read(Places.checkout.appending("docs/rules.md")) ?? [], as: UTF8.self)

    /// Returns the fenced blocks of a language.
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
        for key in RuleDecoder.keys.names + ["defaults"] {
            #expect(Self.reference.contains("`\(key)`"), "\(key) is not described")
            #expect(examples.contains("\(key):"), "\(key) has no example")
        }
    }

    /// Compares the table of keys with that of the loader.
    ///
    /// `RECORD=1` writes it into the page.
    @Test func `the table of keys matches the loader`() throws {
        let page = Self.reference
        let header = "| key | value | default | |\n| --- | --- | --- | --- |\n"
        let head = try #require(page.firstRange(of: header))
        let end = try #require(page[head.upperBound...].firstRange(of: "\n\n")).lowerBound
        let rows = RuleDecoder.keys.keys.map(Self.row).joined(separator: "\n")
        if Golden.isRecording {
            TestFile.write(
                Places.checkout.appending("docs/rules.md"), page[..<head.upperBound] + rows + page[end...])
        } else {
            #expect(page[head.upperBound..<end] == rows)
        }
    }

    private static func row(_ key: RuleKey) -> String {
        let heading = reference.split(separator: "\n").first { $0.hasPrefix("#") && $0.contains("`\(key.name)`") } ?? ""
        let anchor = heading.drop { "# ".contains($0) }.filter { !"`,".contains($0) }.replacing(" ", with: "-")
        let standard = key.standard.map { "`\(text($0))`" } ?? ""
        return "| [`\(key.name)`](#\(anchor)) | \(key.noun) | \(standard) | \(key.description) |"
    }

    private static func text(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): Int(text) == nil ? text : "\"\(text)\""
        case .array(let elements): "[\(elements.map(text).joined(separator: ", "))]"
        case .bool(let isTrue): "\(isTrue)"
        case .integer(let number): "\(number)"
        default: "\(value)"
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

    /// A catalog that contains every handler that a rules file names.
    private struct OpenCatalog: HandlerCatalog {
        func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, Problem> {
            .success(
                HandlerDescription(
                    reference: HandlerReference(name: name), parameters: nil, removal: FakeCatalog.removals[name]))
        }

        func names(from directory: PathBytes) -> [String] { [] }
    }

    @Test func `the shipped rules load`() {
        let examples = TestFile.names(in: Places.checkout.appending("examples"))
            .map { "examples/\(String(decoding: $0, as: UTF8.self))/rules.yaml" }
            .filter { TestFile.exists(Places.checkout.appending($0)) }
        let loader = RuleLoader(
            catalog: OpenCatalog(),
            hostEnvironment: RuleLoader.Environment(
                home: "/home/ada", environment: { _ in nil }, currentDirectory: Places.checkout))
        for path in ["rules"] + examples {
            let loaded = loader.load([path])
            #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
            #expect(!loaded.ruleset.rules.isEmpty)
        }
    }
}
