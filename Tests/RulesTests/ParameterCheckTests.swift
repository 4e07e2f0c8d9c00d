import PluginProtocol
import Rules
import Testing

struct ParameterCheckTests {
    static let thumbnail = ParameterSchema(
        type: "object",
        properties: [
            "size": ParameterSchema(type: "integer", default: 256, minimum: 16, maximum: 4096),
            "to": ParameterSchema(type: "string", description: "Where the thumbnail goes."),
            "format": ParameterSchema(type: "string", enum: ["webp", "jpeg"]),
            "token": ParameterSchema(type: "string", maxLength: 4, writeOnly: true),
            "code": ParameterSchema(type: "string", pattern: "^[a-z]+$"),
            "folder": ParameterSchema(type: "string", role: ParameterSchema.literal),
            "sizes": ParameterSchema(type: "array", items: ParameterSchema(type: "number", minimum: 1), maxItems: 2),
            "meta": ParameterSchema(type: "object", properties: ["deep": ParameterSchema(default: "x")]),
        ], required: ["to"], additionalProperties: false)

    struct Case: Sendable, CustomTestStringConvertible {
        var parameters: JSONValue
        var path: [ParameterProblem.Step] = []
        var isAboutKey = false
        var message: String
        var help: String?
        var testDescription: String { message }
    }

    static let cases = [
        Case(
            parameters: [:], message: "parameter 'to' is missing", help: "add 'to:': Where the thumbnail goes."),
        Case(
            parameters: ["to": "a", "siez": 1], path: [.key("siez")], isAboutKey: true,
            message: "unknown parameter 'siez'",
            help: "write 'size'; the parameters are code, folder, format, meta, size, sizes, to, token"),
        Case(
            parameters: ["to": 5], path: [.key("to")], message: "'to' must be a string, not 5",
            help: "put it into quotes"),
        Case(
            parameters: ["to": "a", "size": "big"], path: [.key("size")],
            message: "'size' must be a whole number, not 'big'"),
        Case(
            parameters: ["to": "a", "size": 1.5], path: [.key("size")],
            message: "'size' must be a whole number, not 1.5"),
        Case(
            parameters: ["to": "a", "size": 8], path: [.key("size")], message: "'size' 8 is below the minimum of 16",
            help: "write a number from 16 to 4096"),
        Case(
            parameters: ["to": "a", "format": "wepb"], path: [.key("format")], message: "'format' can't be 'wepb'",
            help: "write 'webp'; the values are webp, jpeg"),
        Case(
            parameters: ["to": "a", "token": "secret"], path: [.key("token")],
            message: "'token' has 6 characters, but at most 4 are allowed"),
        Case(
            parameters: ["to": "a", "code": "A1"], path: [.key("code")],
            message: "'code' 'A1' doesn't match the pattern ^[a-z]+$"),
        Case(
            parameters: ["to": "a", "sizes": [1, 0]], path: [.key("sizes"), .index(1)],
            message: "'sizes[1]' 0 is below the minimum of 1", help: "write a number of at least 1"),
        Case(
            parameters: ["to": "a", "sizes": [1, 2, 3]], path: [.key("sizes")],
            message: "'sizes' has 3 elements, but at most 2 are allowed"),
    ]

    @Test(arguments: cases)
    func `a misfit is named with its place and a way out`(_ example: Case) throws {
        let parameters = ParameterTemplate(example.parameters)
        let problems = ParameterCheck.problems(in: parameters, schema: Self.thumbnail)
        let problem = try #require(problems.first)
        #expect(problems.count == 1)
        #expect(problem.path == example.path)
        #expect(problem.isAboutKey == example.isAboutKey)
        #expect(problem.message == example.message)
        #expect(problem.help == example.help)
    }

    @Test func `all problems are found at once`() {
        let parameters = ParameterTemplate(["size": 1, "colour": "red", "sizes": ["a", "b"]])
        #expect(ParameterCheck.problems(in: parameters, schema: Self.thumbnail).count == 5)
    }

    @Test func `a secret is never quoted`() {
        let parameters = ParameterTemplate(["to": "a", "token": ["secret"]])
        let text = "\(ParameterCheck.problems(in: parameters, schema: Self.thumbnail))"
        #expect(!text.contains("secret"))
    }

    @Test func `a text with placeholders is checked for its type alone`() throws {
        let template = try Template("${stem}.webp") { _ in nil }
        let fits = ParameterTemplate.object(["to": .text(template), "format": .text(template), "code": .text(template)])
        #expect(ParameterCheck.problems(in: fits, schema: Self.thumbnail).isEmpty)
        let misfit = ParameterTemplate.object(["to": .text(template), "size": .text(template)])
        #expect(ParameterCheck.problems(in: misfit, schema: Self.thumbnail).count == 1)
    }

    @Test func `a text that is to be written out can't hold a placeholder`() throws {
        let template = try Template("/srv/${stem}") { _ in nil }
        let parameters = ParameterTemplate.object(["to": .text(template), "folder": .text(template)])
        let problem = try #require(ParameterCheck.problems(in: parameters, schema: Self.thumbnail).first)
        #expect(problem.path == [.key("folder")] && problem.message == "'folder' can't hold a placeholder")
        let written = ParameterTemplate(["to": "a", "folder": "/srv"])
        #expect(ParameterCheck.problems(in: written, schema: Self.thumbnail).isEmpty)
    }

    @Test func `one and one point nought are the same number`() {
        let schema = ParameterSchema(type: "integer", enum: [1, 2])
        #expect(ParameterCheck.problems(in: .value(1.0), schema: schema).isEmpty)
    }

    @Test func `defaults come in at every depth, and only where nothing was written`() {
        let filled = ParameterCheck.fillingDefaults(
            ParameterTemplate(["to": "a", "meta": [:]]), schema: Self.thumbnail)
        #expect(filled.constant == ["to": "a", "size": 256, "meta": ["deep": "x"]])
        let written = ParameterCheck.fillingDefaults(ParameterTemplate(["size": 16]), schema: Self.thumbnail)
        #expect(written.constant == ["size": 16])
    }

    @Test func `the nearest word is found through a slip`() {
        #expect(Spelling.nearest(to: "thumbnial", in: ["copy", "move", "thumbnail"]) == "thumbnail")
        #expect(Spelling.nearest(to: "mvoe", in: ["copy", "move"]) == "move")
        #expect(Spelling.nearest(to: "zip", in: ["copy", "move"]) == nil)
        #expect(Spelling.nearest(to: "nosuch", in: ["copy", "touch"]) == nil)
        #expect(Spelling.nearest(to: "thunbnial", in: ["copy", "thumbnail"]) == "thumbnail")
        #expect(Spelling.help(for: "x", candidates: [], noun: "names") == nil)
    }
}
