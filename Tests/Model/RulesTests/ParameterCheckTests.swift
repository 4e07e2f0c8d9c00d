import JSON
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

    /// The schema of a plugin that writes images to a directory or sends them to a host.
    static let images = ParameterSchema(
        properties: [
            "to": ParameterSchema(
                type: "string", role: ParameterSchema.destination, extensions: .fixed([".webp", ".jpg"])),
            "sound": ParameterSchema(
                role: ParameterSchema.destination,
                extensions: .chosen(by: "preset", ["mp3": [".mp3"], "opus": [".opus", ".ogg"]])),
            "preset": ParameterSchema(type: "string", default: "mp3"),
            "host": ParameterSchema(type: "string"), "port": ParameterSchema(type: "integer"),
        ], minProperties: 1, dependentRequired: ["port": ["host"]],
        oneOf: [["to"], ["sound"], ["host"]].map { ParameterSchema(required: $0) })

    static let together: [(JSONValue, String, String?)] = [
        (["to": "a/"], "", nil), (["to": "a/b.JPG"], "", nil), (["sound": "a.mp3"], "", nil),
        (["sound": "a.ogg", "preset": "opus"], "", nil),
        (["to": "a/b.gif"], "'to' can't end in 'b.gif'", "end it in .webp, .jpg, or in '/' for a directory"),
        (["to": "a"], "'to' can't end in 'a'", "end it in .webp, .jpg, or in '/' for a directory"),
        (["to": ".jpg"], "'to' can't end in '.jpg'", "end it in .webp, .jpg, or in '/' for a directory"),
        (
            ["sound": "a.ogg"], "'sound' can't end in 'a.ogg'", "end it in .mp3, or in '/' for a directory"
        ),
        (["port": 1], "parameter 'port' needs 'host'", "add 'host:'"),
        (["preset": "mp3"], "one of 'to', 'sound', 'host' is needed", "write one of them"),
        (["to": "a/", "host": "b"], "'to', 'host' exclude each other", "write one of them"),
        ([:], "'with' needs at least 1 of its parameters", "write 'host' or 'port' or 'preset' or 'sound' or 'to'"),
    ]

    @Test(arguments: together)
    func `dependent parameters are checked together`(parameters: JSONValue, message: String, help: String?) {
        let problems = ParameterCheck.problems(in: ParameterTemplate(parameters), schema: Self.images)
        #expect(problems.map(\.message) == (message.isEmpty ? [] : [message]))
        #expect(problems.first?.help == help)
    }

    @Test(arguments: [
        ("${stem}.gif", false), ("${stem}.webp", true), ("${stem}/", true), ("t/${name}", true), ("${stem}-s", false),
    ])
    func `the extension of a destination is checked before its name is known`(text: String, isSound: Bool) throws {
        let template = try #require(Template(text))
        let problems = ParameterCheck.problems(in: .object(["to": .text(template)]), schema: Self.images)
        #expect(problems.isEmpty == isSound)
    }

    @Test(arguments: [
        ("t/", "a.jpg", "t/a.jpg"), ("t/", "a.JPG", "t/a.JPG"), ("t/", "a.heic", "t/a.heic.webp"),
        ("t/", ".jpg", "t/.jpg.webp"), ("t/a", "b", "t/a.webp"), ("t/a.webp", "b", "t/a.webp"),
    ])
    func `a destination is completed to the path of a file`(to: String, name: String, path: String) {
        let given = Parameter.object(["to": .text(Array(to.utf8)), "host": .text([1])])
        let complete = given.completingDestinations(Self.images, name: Array(name.utf8))
        #expect(complete == .object(["to": .text(Array(path.utf8)), "host": .text([1])]))
    }

    @Test(arguments: [("mp3", "t/a.ogg.mp3"), ("opus", "t/a.ogg"), ("other", "t/")])
    func `another parameter may choose the extension of a destination`(preset: String, path: String) {
        let given = Parameter.object(["sound": .text(Array("t/".utf8)), "preset": .text(Array(preset.utf8))])
        let complete = given.completingDestinations(Self.images, name: Array("a.ogg".utf8))
        #expect(complete["sound"]?.bytes == Array(path.utf8))
    }

    @Test(arguments: cases)
    func `an invalid parameter is reported with its path and help`(_ example: Case) throws {
        let parameters = ParameterTemplate(example.parameters)
        let problems = ParameterCheck.problems(in: parameters, schema: Self.thumbnail)
        let problem = try #require(problems.first)
        #expect(problems.count == 1)
        #expect(problem.path == example.path)
        #expect(problem.isAboutKey == example.isAboutKey)
        #expect(problem.message == example.message)
        #expect(problem.help == example.help)
    }

    @Test func `all problems are reported at once`() {
        let parameters = ParameterTemplate(["size": 1, "colour": "red", "sizes": ["a", "b"]])
        #expect(ParameterCheck.problems(in: parameters, schema: Self.thumbnail).count == 5)
    }

    @Test func `a secret is never quoted`() {
        let parameters = ParameterTemplate(["to": "a", "token": ["secret"]])
        let text = "\(ParameterCheck.problems(in: parameters, schema: Self.thumbnail))"
        #expect(!text.contains("secret"))
    }

    @Test func `a string with placeholders is checked only for its type`() throws {
        let template = try #require(Template("${stem}.webp"))
        let fits = ParameterTemplate.object(["to": .text(template), "format": .text(template), "code": .text(template)])
        #expect(ParameterCheck.problems(in: fits, schema: Self.thumbnail).isEmpty)
        let misfit = ParameterTemplate.object(["to": .text(template), "size": .text(template)])
        #expect(ParameterCheck.problems(in: misfit, schema: Self.thumbnail).count == 1)
    }

    @Test func `a constant parameter cannot contain a placeholder`() throws {
        let template = try #require(Template("/srv/${stem}"))
        let parameters = ParameterTemplate.object(["to": .text(template), "folder": .text(template)])
        let problem = try #require(ParameterCheck.problems(in: parameters, schema: Self.thumbnail).first)
        #expect(problem.path == [.key("folder")] && problem.message == "'folder' can't contain a placeholder")
        let written = ParameterTemplate(["to": "a", "folder": "/srv"])
        #expect(ParameterCheck.problems(in: written, schema: Self.thumbnail).isEmpty)
    }

    @Test func `1 and 1.0 are the same number`() {
        let schema = ParameterSchema(type: "integer", enum: [1, 2])
        #expect(ParameterCheck.problems(in: .value(1.0), schema: schema).isEmpty)
    }

    @Test func `defaults apply at every depth, and only to missing parameters`() {
        let filled = ParameterCheck.fillingDefaults(
            ParameterTemplate(["to": "a", "meta": [:]]), schema: Self.thumbnail)
        #expect(filled.constant == ["to": "a", "size": 256, "meta": ["deep": "x"]])
        let written = ParameterCheck.fillingDefaults(ParameterTemplate(["size": 16]), schema: Self.thumbnail)
        #expect(written.constant == ["size": 16])
    }

    @Test(arguments: [30, 5_000, 200_000])
    func `a pattern that takes too many steps is reported quickly`(count: Int) {
        let schema = ParameterSchema(type: "string", pattern: "^(a+)+$")
        let text = String(repeating: "a", count: count)
        let start = ContinuousClock.now
        let problems = ParameterCheck.problems(in: ParameterTemplate(JSONValue.string(text + "!")), schema: schema)
        #expect(problems.first?.message.hasPrefix("the pattern ^(a+)+$ is too complex for ") == true)
        #expect(ContinuousClock.now - start < .seconds(10))
        #expect(ParameterCheck.refusal(of: "(") != nil && ParameterCheck.refusal(of: "a+") == nil)
    }

    @Test func `a key that is present is never suggested`() {
        #expect(Spelling.nearest(to: "siz", in: ["size", "to"], except: ["siz", "size"]) == nil)
        let unknown = ParameterCheck.problems(
            in: ParameterTemplate(["to": "a", "size": 16, "siz": 2, "met": [:]]), schema: Self.thumbnail)
        let list = "the parameters are code, folder, format, meta, size, sizes, to, token"
        #expect(unknown.map(\.help) == ["write 'meta'; \(list)", list])
    }

    @Test func `the nearest word is suggested for a misspelling`() {
        #expect(Spelling.nearest(to: "thumbnial", in: ["copy", "move", "thumbnail"]) == "thumbnail")
        #expect(Spelling.nearest(to: "mvoe", in: ["copy", "move"]) == "move")
        #expect(Spelling.nearest(to: "zip", in: ["copy", "move"]) == nil)
        #expect(Spelling.nearest(to: "nosuch", in: ["copy", "touch"]) == nil)
        #expect(Spelling.nearest(to: "thunbnial", in: ["copy", "thumbnail"]) == "thumbnail")
        #expect(Spelling.nearest(to: "setel", in: ["settle"]) == "settle")
        #expect(Spelling.nearest(to: "nope", in: ["name"]) == nil)
        #expect(Spelling.nearest(to: "concurence", in: ["concurrency"]) == "concurrency")
        #expect(Spelling.nearest(to: "concurnc", in: ["concurrency"]) == nil)
        #expect(Spelling.help(for: "x", candidates: [], noun: "names") == nil)
    }
}
