import JSON
import Rules
import System
import Testing

@testable import Configuration

struct RuleSchemaTests {
    @Test func `every key has a description that is a sentence`() {
        let keys = RuleDecoder.keys.keys.map { ($0.name, $0.description) }
        let conditions = RuleDecoder.conditionKeys.keys.map { ($0.name, $0.description) }
        for (name, description) in keys + conditions {
            #expect(description.hasSuffix(".") && description.count > 10, "\(name)")
            #expect(description.count < 120, "\(name)")
        }
    }

    /// `existing`, `settle` and `umask` record whether they were set.
    ///
    /// Their defaults depend on the run or the root and are tested elsewhere.
    @Test(
        arguments: RuleDecoder.keys.keys.filter {
            $0.standard != nil && !["existing", "settle", "umask"].contains($0.name)
        }.map(
            \.name))
    func `setting a key to its default changes nothing`(key: String) throws {
        func rule(_ more: [String: JSONValue]) throws -> String {
            let rule: [String: JSONValue] = ["name": "x", "path": "/in/*", "action": "log"]
            let file = JSONValue.object(["rules": [.object(rule.merging(more) { $1 })]])
            var loaded = try #require(load(file.line).ruleset.rules.first)
            loaded.location = SourcePosition(file: "", line: 1, column: 1)
            loaded.baseDirectory = "/"
            loaded.actions = []
            var text = ""
            dump(loaded, to: &text)
            return text
        }
        #expect(try rule([key: try #require(RuleDecoder.keys[key]?.standard)]) == rule([:]))
    }

    @Test func `the schema covers the parameters of the given handlers`() {
        let document = RuleSchema.document(handlers: FakeCatalog.handlers)
        let action = document.object?["$defs"]?.object?["action"]?.object?["anyOf"]?.array ?? []
        let names = action.compactMap { $0.object?["allOf"]?.array }.joined().compactMap {
            $0.object?["if"]?.object?["properties"]?.object?["use"]?.object?["const"]?.string
        }
        #expect(Set(names) == ["log", "move", "thumbnail"])
    }
}
