import ActionAPI
import Foundation
import JSON
import PluginProtocol
import Plugins
import Rules
import System
import Testing

/// The inventory that `alight plugins` lists.
struct PluginInventoryTests {
    let stage: Stage
    var rules: PathBytes { stage.directory.path.appending("rules") }

    init() throws {
        stage = try Stage()
        try stage.directory.directory("rules/plugins")
        try stage.directory.directory("plugins")
        try stage.directory.directory("search")
    }

    private func addScript(_ location: String, _ name: String) throws {
        try stage.directory.write(
            "\(location)/\(name)",
            "#!/bin/sh\necho '{\"name\":\"\(name)\",\"version\":\"\(location)\",\"protocol\":[1]}'\n")
    }

    @Test func `the first plugin of a name is used, and shadows the others`() throws {
        for place in ["rules/plugins", "plugins", "search"] { try addScript(place, "sum") }
        try addScript("search", "copy")
        let listings = stage.discovery().inventory(from: rules, builtIn: ["copy"])
        #expect(listings.map(\.name) == ["sum", "sum", "copy", "sum"])
        #expect(listings.compactMap(\.plugin?.description.version) == ["rules/plugins", "plugins", "search", "search"])
        let first = stage.directory.path.appending("rules/plugins/sum")
        #expect(listings.map(\.shadow) == [nil, .plugin(first), .builtIn, .plugin(first)])
        #expect(listings.allSatisfy { $0.problems.isEmpty })
        #expect(try #require(stage.discovery().find("sum", from: rules)).get().location == first)
    }

    @Test func `a broken plugin is listed with its problem, and shadows like any other`() throws {
        try stage.directory.write("plugins/sum", "#!/bin/sh\necho nonsense\n")
        try addScript("search", "sum")
        let listings = stage.discovery().inventory(from: rules, builtIn: [])
        #expect(listings.map(\.problems.count) == [1, 0])
        let message = "plugin 'sum': its output for 'describe' is not JSON, from byte 0 on"
        #expect(listings[0].problems[0].message == message)
        #expect(listings[1].shadow == .plugin(listings[0].location))
    }

    @Test func `a file that looks like a plugin but is not one is listed, other files are not`() throws {
        try stage.directory.write("search/script", "#!/bin/sh\n", mode: 0o644)
        try stage.directory.write("search/README.md", "# Plugins\n", mode: 0o644)
        try stage.directory.directory("search/modules")
        try stage.directory.write("search/modules/module.py", "", mode: 0o644)
        try stage.directory.directory("search/thumbs")
        try stage.directory.write("search/thumbs/main", "#!/bin/sh\n")
        let listings = stage.discovery().inventory(from: rules, builtIn: [])
        #expect(listings.map(\.name) == ["script", "thumbs"])
        #expect(listings.map { $0.problems.first?.help?.prefix(8) } == ["run: chm", "add one "])
    }

    struct Requirement: Sendable, CustomTestStringConvertible {
        var requires: [JSONValue]
        var message: String
        var help: String
        var testDescription: String { "\(requires)" }
    }

    static let requirements = [
        Requirement(
            requires: ["sh", "nope (libnope-tools)"], message: "the program 'nope', which is",
            help: "run: apt install libnope-tools"),
        Requirement(
            requires: ["nope", "sh"], message: "the program 'nope', which is",
            help: "install 'nope', or put a link to it into /usr/local/bin"),
        Requirement(
            requires: ["a-nope (one)", "b-nope (two)", "c-nope (one)", "d-nope"],
            message: "the programs 'a-nope', 'b-nope', 'c-nope', 'd-nope', which are",
            help: "run: apt install one two; install 'd-nope', or put a link to it into /usr/local/bin"),
    ]

    @Test(arguments: requirements)
    func `all missing programs are reported, with their packages`(_ example: Requirement) throws {
        let yaml: JSONValue = ["name": "t", "protocol": [1], "requires": .array(example.requires)]
        try stage.directory.directory("plugins/t")
        try stage.directory.write("plugins/t/plugin.yaml", "", mode: 0o644)
        try stage.directory.write("plugins/t/t", "#!/bin/sh\n")
        let listing = try #require(stage.discovery(["t": yaml]).inventory(from: rules, builtIn: []).first)
        #expect(listing.problems.map(\.help) == [example.help])
        #expect(
            listing.problems.map(\.message)
                == ["plugin 't' needs \(example.message) not in /usr/local/bin:/usr/bin:/bin"])
    }

    @Test func `the package is known when its name differs from the program`() throws {
        // The test machine lacks at least one of these programs.
        let programs = [
            ("ocrmypdf", "ocrmypdf"), ("clamscan", "clamav"), ("soffice", "libreoffice"), ("7z", "p7zip-full"),
        ]
        guard let (program, package) = programs.first(where: { ExecutableCheck.find($0.0) == nil }) else { return }
        let yaml: JSONValue = ["name": "t", "protocol": [1], "requires": [.string(program)]]
        try stage.directory.directory("plugins/t")
        try stage.directory.write("plugins/t/plugin.yaml", "", mode: 0o644)
        try stage.directory.write("plugins/t/t", "#!/bin/sh\n")
        let listing = try #require(stage.discovery(["t": yaml]).inventory(from: rules, builtIn: []).first)
        #expect(listing.problems.map(\.help) == ["run: apt install \(package)"])
    }

    @Test func `new content with the old time and size is described again`() throws {
        func script(_ version: Int) -> String {
            "#!/bin/sh\necho '{\"name\":\"sum\",\"version\":\"\(version)\",\"protocol\":[1]}'\n"
        }
        let discovery = stage.discovery()
        let path = try stage.directory.write("search/sum", script(1))
        #expect(try #require(discovery.find("sum", from: rules)).get().description.version == "1")
        var status = stat()
        #expect(path.withCString { stat($0, &status) } == 0)
        try stage.directory.write("search/sum", script(2))
        let times = [status.st_atim, status.st_mtim]
        #expect(path.withCString { utimensat(AT_FDCWD, $0, times, 0) } == 0)
        #expect(try #require(discovery.find("sum", from: rules)).get().description.version == "2")
    }
}
