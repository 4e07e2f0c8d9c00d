import Globbing
import Testing
import TestKit

/// The index, compared with a check of every filter.
@Suite struct PathFilterIndexFuzzTests {
    private static let names = ["a", "b", "in", "a.txt", "b.TXT", ".x", "a-1.jpg", "é.md", "ab", "x.tar.gz"]
    private static let parts = [
        "*", "**", "?", "a", "in", "*.txt", "*.jpg", "a-*", "{a,b}*", "*.{txt,md}", "[a-b]*", ".*", "x.tar.*", "a.txt",
        "B.txt", "*1*", "{in,a}/b", "\\a", "**.gz",
    ]

    private static func filter(_ random: inout SeededGenerator) -> PathFilter? {
        var globs: [Glob] = []
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            var pattern = ["", "/in", "/in/a", "/b"].randomElement(using: &random) ?? ""
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                pattern += "/" + (parts.randomElement(using: &random) ?? "*")
            }
            let options = Glob.Options(
                matchesHidden: Bool.random(using: &random), isCaseSensitive: Bool.random(using: &random))
            guard let glob = try? Glob(pattern, options: options) else { return nil }
            globs.append(glob)
        }
        let set = { (random: inout SeededGenerator) -> GlobSet in
            GlobSet(
                Int.random(in: 0..<3, using: &random) > 0 ? [] : [try? Glob("**/b"), try? Glob("a")].compactMap(\.self))
        }
        return PathFilter(
            globs: globs, exclude: set(&random), outputs: set(&random),
            depth: Int.random(in: 0..<4, using: &random) == 0 ? Int.random(in: 0...2, using: &random) : nil,
            isTree: Int.random(in: 0..<8, using: &random) == 0)
    }

    /// Whether the path is the directory or inside it.
    private static func isInside(_ path: [UInt8], _ directory: [UInt8]) -> Bool {
        path == directory || path.starts(with: directory + (directory.last == 0x2F ? [] : [0x2F]))
    }

    @Test(arguments: UInt64(0)..<40) func `the index finds what a check of every filter finds`(seed: UInt64) {
        var random = SeededGenerator(seed: Fuzzing.seed(seed))
        let count = Int.random(in: 5...60, using: &random)
        let filters = (0..<count).compactMap { _ in Self.filter(&random) }
        let index = PathFilterIndex(filters)
        for _ in 0..<Fuzzing.rounds(300) {
            let length = Int.random(in: 0...5, using: &random)
            let text = (0..<length).map { _ in "/" + (Self.names.randomElement(using: &random) ?? "a") }.joined()
            let path = Array((text.isEmpty ? "/" : text).utf8)
            let found = index.candidates(for: path)
            let matched = filters.indices.filter { filters[$0].root(matching: path) != nil }
            let holding = filters.indices.filter { !filters[$0].trees(holding: path).isEmpty }
            #expect(found.filter { filters[$0].root(matching: path) != nil } == matched, "\(text)")
            #expect(found == Set(found).sorted())
            #expect(
                index.treeCandidates(for: path).filter { !filters[$0].trees(holding: path).isEmpty } == holding,
                "\(text)")
            let around = filters.indices.filter { number in
                filters[number].roots.contains { Self.isInside(path, $0) || Self.isInside($0, path) }
            }
            #expect(index.candidates(inside: path) == around, "\(text)")
            #expect(index.filters(at: path) == filters.indices.filter { filters[$0].roots.contains(path) }, "\(text)")
            #expect(index.takes(path) == !(matched.isEmpty && holding.isEmpty), "\(text)")
            #expect(index.canMatch(in: path) == filters.contains { $0.canMatch(in: path) }, "\(text)")
            if index.takes(path), let parent = path.lastIndex(of: 0x2F) {
                #expect(index.canMatch(in: parent == 0 ? [0x2F] : Array(path[..<parent])), "\(text)")
            }
            #expect(index.reaches(below: path) == filters.contains { $0.reaches(below: path) }, "\(text)")
        }
    }

    /// Patterns for ten thousand rules each, and a path that exactly one of those rules matches.
    static let kinds: [(pattern: String, path: String)] = [
        ("/srv/in/*.e%", "/srv/in/letter.e4711"), ("/srv/in/**/*.e%", "/srv/in/x/y/letter.e4711"),
        ("/srv/in/n%-*.csv", "/srv/in/n4711-x.csv"), ("/srv/in/name%", "/srv/in/name4711"),
        ("/srv/in/*/user%/*.pdf", "/srv/in/2026/user4711/a.pdf"), ("/srv/**/*-of-%", "/srv/in/letter-of-4711"),
        ("/srv/in%/*.pdf", "/srv/in4711/a.pdf"),
    ]

    @Test(arguments: kinds) func `few of ten thousand filters are checked`(pattern: String, path: String) {
        let filters = (0..<10_000).compactMap { number in
            (try? Glob(pattern.replacing("%", with: "\(number)"))).map { PathFilter(globs: [$0]) }
        }
        #expect(filters.count == 10_000)
        let index = PathFilterIndex(filters)
        let found = index.candidates(for: Array(path.utf8))
        #expect(found.contains(4711))
        #expect(found.count <= 4, "\(found.count)")
        #expect(index.candidates(for: Array("/srv/in/other".utf8)).count <= 4)
    }
}
