import FileEvents
import PluginProtocol
import Testing
import TestKit

@testable import RuleLoading

struct RuleSchemaTests {
    @Test func `the schema has the keys that the loader knows`() {
        #expect(Set(RuleSchema.ruleKeys) == Set(RuleDecoder.ruleKeys))
        #expect(Set(RuleSchema.sharedKeys) == Set(RuleSettings.keys))
        #expect(Set(RuleSchema.conditionKeys) == Set(RuleDecoder.conditionKeys))
        #expect(Set(RuleSchema.ruleKeys).count == RuleSchema.ruleKeys.count)
    }

    @Test func `every key is described, and what is described is a sentence`() {
        for key in RuleSchema.keys + RuleSchema.conditions {
            #expect(key.description.hasSuffix(".") && key.description.count > 10, "\(key.name)")
            #expect(key.description.count < 120, "\(key.name)")
        }
    }

    @Test func `parameters of the handlers that are given are checked`() {
        let document = RuleSchema.document(handlers: FakeCatalog.handlers)
        let action = document.object?["$defs"]?.object?["action"]?.object?["anyOf"]?.array ?? []
        let names = action.compactMap { $0.object?["allOf"]?.array }.joined().compactMap {
            $0.object?["if"]?.object?["properties"]?.object?["use"]?.object?["const"]?.string
        }
        #expect(Set(names) == ["log", "move", "thumbnail"])
    }
}
