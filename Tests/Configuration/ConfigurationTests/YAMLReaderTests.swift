import Configuration
import JSON
import Rules
import System
import Testing
import TestKit

struct YAMLReaderTests {
    private func read(_ text: String) -> Result<JSONValue, Problem> {
        withTempTree { tree in
            TestFile.write(tree.path("plugin.yaml"), text)
            return YAMLReader.json(from: tree.path("plugin.yaml")).map(\.value)
                .mapError { Problem($0.message.replacing("\(tree.root)/", with: ""), help: $0.help) }
        }
    }

    private func problem(_ text: String) -> String? {
        guard case .failure(let problem) = read(text) else { return nil }
        return problem.message
    }

    @Test func `a description becomes JSON`() throws {
        let value = try read(
            """
            name: thumbnail
            protocol: [1]
            version: 1.2.0
            price: 1.5
            idempotent: true
            yes: no
            nothing: ~
            timeout: "2"
            parameters: &p { type: object, size: 0x10 }
            again: *p
            """
        ).get()
        let parameters: JSONValue = ["type": "object", "size": 16]
        #expect(
            value == [
                "name": "thumbnail", "protocol": [1], "version": "1.2.0", "price": 1.5, "idempotent": true, "yes": "no",
                "nothing": .null, "timeout": "2", "parameters": parameters, "again": parameters,
            ])
    }

    @Test func `an error is reported with its location`() {
        #expect(problem("name: a\nname: b\n") == "plugin.yaml:2:1: duplicate key 'name'; the first is on line 1")
        #expect(problem("name: [a\n") == "plugin.yaml:1:7: this '[' is not closed")
        #expect(problem("mode: 0644\n") == "plugin.yaml:1:7: a number cannot start with 0, which could mean octal")
        #expect(problem("a: .nan\n") == "plugin.yaml:1:4: infinity and nan are not allowed here")
        #expect(problem("a: !x y\n") == "plugin.yaml:1:4: unknown tag '!x'")
        #expect(problem("a: 1\n---\nb: 2\n") == "plugin.yaml:2:1: a second document starts here; a file contains one")
        #expect(problem("") == "plugin.yaml:1:1: the file is empty")
        #expect(problem("a: \u{1}\n") == "plugin.yaml:1:4: the file contains the control character U+0001")
    }

    @Test func `a missing file is an error`() {
        let result = YAMLReader.json(from: "/nowhere/plugin.yaml")
        #expect(result == .failure(Problem("/nowhere/plugin.yaml: no such file")))
    }

    @Test(arguments: ["thumbnail", "reindex"])
    func `the shipped descriptions are read`(name: String) throws {
        let value = try YAMLReader.json(from: Places.checkout.appending("plugins/\(name)/plugin.yaml")).get().value
        #expect(value.object?["name"] == .string(name))
        #expect(value.object?["parameters"]?.object?["additionalProperties"] == false)
    }
}
