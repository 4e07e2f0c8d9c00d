import Globbing
import Testing

/// The reason that a filter gives for a path that it does not match.
struct PathRefusalTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let path: String
        let reason: PathFilter.Refusal.Reason?
        var globs = ["/in/**/*.jpg"]
        var exclude: [String] = []
        var ignores: [String] = []
        var outputs: [String] = []
        var depth: Int?

        var testDescription: String { "\(globs) and \(path)" }
    }

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func globs(_ patterns: [String]) throws -> GlobSet { GlobSet(try patterns.map { try Glob($0) }) }

    static func cases() throws -> [Case] {
        [
            Case(path: "/in/a.jpg", reason: nil),
            Case(path: "/in/x/y/a.JPG", reason: nil),
            Case(path: "/out/a.jpg", reason: .outside),
            Case(path: "/in", reason: .outside),
            Case(path: "/", reason: .outside),
            Case(path: "/inner/a.jpg", reason: .outside),
            Case(path: "/in/a.png", reason: .glob(at: bytes("a.png"))),
            Case(path: "/in/x/a.txt", reason: .glob(at: bytes("a.txt")), globs: ["/in/*/*.jpg"]),
            Case(path: "/in/x/y/a.jpg", reason: .glob(at: bytes("y")), globs: ["/in/*/*.jpg"]),
            Case(path: "/in/x", reason: .above, globs: ["/in/*/*.jpg"]),
            Case(path: "/in/x", reason: .glob(at: bytes("x"))),
            Case(path: "/in/.a.jpg", reason: .hidden(bytes(".a.jpg"))),
            Case(path: "/in/.x/y/a.jpg", reason: .hidden(bytes(".x"))),
            Case(path: "/in/x/y/a.jpg", reason: .depth(levels: 2, limit: 1), depth: 1),
            Case(path: "/in/x/a.jpg", reason: nil, depth: 1),
            Case(
                path: "/in/x/y/a.jpg", reason: .excluded(.exclude, by: try Glob("x"), covering: bytes("x")),
                exclude: ["**/a.jpg", "x"]),
            Case(
                path: "/in/x/y/a.jpg", reason: .excluded(.exclude, by: try Glob("**/y"), covering: bytes("x/y")),
                exclude: ["**/y"]),
            Case(
                path: "/in/a.jpg", reason: .excluded(.ignores, by: try Glob("**/a*"), covering: bytes("a.jpg")),
                ignores: ["**/a*"]),
            Case(
                path: "/in/a.jpg", reason: .excluded(.outputs, by: try Glob("*.jpg"), covering: bytes("a.jpg")),
                outputs: ["*.jpg"]),
            // With several globs, the reason is that of the glob that matches furthest.
            Case(path: "/in/x/a.jpg", reason: .glob(at: bytes("a.jpg")), globs: ["/in/*.jpg", "/in/x/*.png"]),
            Case(
                path: "/in/x/a.jpg", reason: .excluded(.exclude, by: try Glob("x"), covering: bytes("x")),
                globs: ["/in/*.png", "/in/**"], exclude: ["x"]),
            Case(path: "/b/a.jpg", reason: nil, globs: ["/a/*", "/b/*"]),
            Case(path: "/a.jpg", reason: .glob(at: bytes("a.jpg")), globs: ["/*.png"]),
        ]
    }

    @Test(arguments: try cases())
    func `the first reason for a mismatch is reported`(_ example: Case) throws {
        let filter = PathFilter(
            globs: try example.globs.map { try Glob($0) }, exclude: try Self.globs(example.exclude),
            ignores: try Self.globs(example.ignores), outputs: try Self.globs(example.outputs), depth: example.depth)
        #expect(filter.refusal(of: Self.bytes(example.path))?.reason == example.reason)
    }

    @Test func `the glob that matches furthest is reported`() throws {
        let filter = PathFilter(globs: try ["/out/*", "/in/x/*.png", "/in/*"].map { try Glob($0) })
        #expect(filter.refusal(of: Self.bytes("/in/x/a.jpg"))?.glob == (try Glob("/in/x/*.png")))
        #expect(filter.refusal(of: Self.bytes("/out/x/a.jpg"))?.glob == (try Glob("/out/*")))
    }
}
