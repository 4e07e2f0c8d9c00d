import Globbing
import Testing

@Suite struct PathFilterIndexTests {
    /// Filters with roots beside, inside and above one another, more than the index checks linearly.
    static let filters: [PathFilter] = {
        let patterns = [
            ["/srv/in/*.jpg"], ["/srv/**"], ["/srv/in/sub/*", "/home/a/*"], ["/home/*/x/*.txt"], ["/srv/inner/*"],
            ["/*"], ["/srv/in/**/*.md", "/srv/in/sub/*.md"], ["/var/log/app.log"],
        ]
        return patterns.compactMap { texts in
            let globs = texts.compactMap { try? Glob($0) }
            return globs.count == texts.count ? PathFilter(globs: globs) : nil
        }
    }()

    static let paths: [String] = [
        "/", "/srv", "/srv/in", "/srv/in/a.jpg", "/srv/in/sub", "/srv/in/sub/a.md", "/srv/in/sub/deep/a.md",
        "/srv/inner", "/srv/inner/a", "/srv/innermost/a", "/home", "/home/a", "/home/a/b", "/home/b/x/a.txt", "/var",
        "/var/log", "/var/log/app.log", "/var/log/app.log/x", "/varnish", "/top", "/elsewhere/a", "/home/a/x/b.txt",
    ]

    @Test(arguments: paths) func `the index returns the filters that a linear check finds`(path: String) {
        let index = PathFilterIndex(Self.filters)
        let path = Array(path.utf8)
        let asked = Self.filters.indices.filter { Self.filters[$0].root(matching: path) != nil }
        let found = index.candidates(for: path)
        #expect(found.filter { Self.filters[$0].root(matching: path) != nil } == asked)
        #expect(found == Set(found).sorted())
        #expect(index.takes(path) == !asked.isEmpty)
        #expect(index.reaches(below: path) == Self.filters.contains { $0.reaches(below: path) })
    }

    @Test func `filters with other roots are not candidates`() {
        let index = PathFilterIndex(Self.filters)
        #expect(index.candidates(for: Array("/srv/inner/a".utf8)) == [1, 4, 5])
    }

    @Test(arguments: ["{**,x}", "*{*,}", "**{,y}"])
    func `a last component that may match directories does not hide other filters`(last: String) throws {
        var filters = Self.filters
        for text in ["/deep/*.txt", "/deep/\(last)"] { filters.append(PathFilter(globs: [try Glob(text)])) }
        let index = PathFilterIndex(filters)
        #expect(index.takes(Array("/deep/sub/f".utf8)))
        #expect(index.reaches(below: Array("/deep/sub".utf8)))
        #expect(index.canMatch(in: Array("/deep/sub".utf8)))
    }

    @Test func `a directory handled as one unit includes its entries`() throws {
        var filters = Self.filters
        filters.append(PathFilter(globs: [try Glob("/units/*")], isTree: true))
        let index = PathFilterIndex(filters)
        let below = Array("/units/one/deep/a".utf8)
        #expect(index.takes(below))
        #expect(index.reaches(below: Array("/units/one".utf8)))
        #expect(index.treeCandidates(for: below) == [filters.count - 1])
        #expect(index.treeCandidates(for: Array("/srv/in/a".utf8)).isEmpty)
    }

    @Test func `building the index takes linear time for many roots`() throws {
        let globs = try (0..<20_000).map { try Glob("/srv/a\($0)/*") }
        let start = ContinuousClock.now
        #expect(PathFilter(globs: globs).roots.count == 20_000)
        let shared = PathFilter(globs: Array(globs.prefix(500)))
        let index = PathFilterIndex(Array(repeating: shared, count: 100))
        #expect(index.filters(at: Array("/srv/a7".utf8)).count == 100)
        #expect(ContinuousClock.now - start < .seconds(15))
    }
}
