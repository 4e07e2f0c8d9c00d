import Globbing
import Testing

/// Why a filter leaves a path.
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

    private static let hidden = Glob.Options(matchesHidden: true)

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
                path: "/in/x/y/a.jpg", reason: .leftOut(.exclude, by: try Glob("x"), covering: bytes("x")),
                exclude: ["**/a.jpg", "x"]),
            Case(
                path: "/in/x/y/a.jpg", reason: .leftOut(.exclude, by: try Glob("**/y"), covering: bytes("x/y")),
                exclude: ["**/y"]),
            Case(
                path: "/in/a.jpg", reason: .leftOut(.ignores, by: try Glob("**/a*"), covering: bytes("a.jpg")),
                ignores: ["**/a*"]),
            Case(
                path: "/in/a.jpg", reason: .leftOut(.outputs, by: try Glob("*.jpg"), covering: bytes("a.jpg")),
                outputs: ["*.jpg"]),
            // Of several globs the one that fails last.
            Case(path: "/in/x/a.jpg", reason: .glob(at: bytes("a.jpg")), globs: ["/in/*.jpg", "/in/x/*.png"]),
            Case(
                path: "/in/x/a.jpg", reason: .leftOut(.exclude, by: try Glob("x"), covering: bytes("x")),
                globs: ["/in/*.png", "/in/**"], exclude: ["x"]),
            Case(path: "/b/a.jpg", reason: nil, globs: ["/a/*", "/b/*"]),
            Case(path: "/a.jpg", reason: .glob(at: bytes("a.jpg")), globs: ["/*.png"]),
        ]
    }

    @Test(arguments: try cases())
    func `the first reason`(_ example: Case) throws {
        let filter = PathFilter(
            globs: try example.globs.map { try Glob($0) }, exclude: try Self.globs(example.exclude),
            ignores: try Self.globs(example.ignores), outputs: try Self.globs(example.outputs), depth: example.depth)
        #expect(filter.refusal(of: Self.bytes(example.path))?.reason == example.reason)
    }

    @Test func `the glob that comes nearest is named`() throws {
        let filter = PathFilter(globs: try ["/out/*", "/in/x/*.png", "/in/*"].map { try Glob($0) })
        #expect(filter.refusal(of: Self.bytes("/in/x/a.jpg"))?.glob == (try Glob("/in/x/*.png")))
        #expect(filter.refusal(of: Self.bytes("/out/x/a.jpg"))?.glob == (try Glob("/out/*")))
    }

    @Test(.timeLimit(.minutes(15)), arguments: [1, 2, 3, 4] as [UInt64])
    func `there is a reason exactly when a path is left`(seed: UInt64) {
        var generator = GlobAgreementTests.Generator(state: seed)
        var taken = 0
        var reasons: [String: Int] = [:]
        func set(_ patterns: [[UInt8]], _ options: Glob.Options) -> GlobSet {
            GlobSet(patterns.compactMap { $0.first == 0x2F ? nil : try? Glob($0, options: options) })
        }
        for _ in 0..<2_000 {
            let patterns = (0...Int.random(in: 0...2, using: &generator)).map { _ in
                [0x2F] + GlobAgreementTests.makePattern(&generator)
            }
            let options = Glob.Options(matchesHidden: Int.random(in: 0..<4, using: &generator) == 0)
            let globs = patterns.compactMap { try? Glob($0, options: options) }
            let sets = (0..<3).map { _ in
                guard Int.random(in: 0..<4, using: &generator) == 0 else { return GlobSet([]) }
                return set([GlobAgreementTests.makePattern(&generator)], Self.hidden)
            }
            let filter = PathFilter(
                globs: globs, exclude: sets[0], ignores: sets[1], outputs: sets[2],
                depth: Bool.random(using: &generator) ? nil : Int.random(in: 0...2, using: &generator))
            for _ in 0..<3 {
                let path = GlobAgreementTests.makePath(like: generator.pick(patterns), &generator)
                let refusal = filter.refusal(of: path)
                // A filter without globs takes nothing, and has none to blame.
                guard !globs.isEmpty else { continue }
                #expect((refusal == nil) == (filter.root(taking: path) != nil), "\(filter) and \(path)")
                guard let refusal else {
                    taken += 1
                    continue
                }
                reasons[String("\(refusal.reason)".prefix { $0 != "(" }), default: 0] += 1
            }
        }
        #expect(taken > 200)
        for word in ["outside", "above", "glob", "hidden", "depth", "leftOut"] {
            #expect(reasons[word, default: 0] > 20, "\(word) came \(reasons[word, default: 0]) times")
        }
    }
}
