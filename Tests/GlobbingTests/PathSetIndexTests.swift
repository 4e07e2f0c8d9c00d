import Globbing
import TestKit
import Testing

struct PathSetIndexTests {
    private static func glob(_ pattern: String) -> Glob {
        do { return try Glob(pattern) } catch { preconditionFailure("\(pattern): \(error)") }
    }

    private static func filter(_ globs: [String], exclude: [String] = []) -> PathFilter {
        PathFilter(globs: globs.map(glob), exclude: GlobSet(exclude.map(glob)))
    }

    private static func literal(_ text: String) -> PathSet.Piece { .literal(Array(text.utf8)) }

    private static let filters = [
        filter(["/in/*.jpg"]), filter(["/in/**/*.JPG"]), filter(["/in/done/*"]), filter(["/out/*.{png,jpg}"]),
        filter(["/in/**"], exclude: ["done"]), filter(["/ins/*"]), filter(["/*"]),
    ]

    private static let cases: [([PathSet.Piece], [Int])] = [
        ([literal("/in/"), .name(of: [glob("/x/*.jpg")])], [0, 1, 2, 4]),
        ([literal("/in/"), .name(of: [glob("/x/*.txt")])], [2, 4]),
        ([literal("/in/done/"), .anyText], [1, 2]),
        ([literal("/in/done/"), .stem(of: [glob("/x/*")]), literal(".PNG")], [2]),
        ([literal("/out/a"), .extension(of: [glob("/x/*.jpg")])], [3]),
        ([literal("/in"), .anyText], [0, 1, 2, 4, 5, 6]),
        ([.folder(of: [glob("/in/*")]), literal("/x.jpg")], [0, 1, 2, 4, 5, 6]),
        ([.path(of: [glob("/out/*.jpg"), glob("/none/*")])], [3]),
        ([.anything, literal(".jpg")], [0, 1, 2, 3, 4, 5, 6]),
        ([literal("/none/"), .anything], []),
    ]

    @Test(arguments: cases)
    private func `what begins and ends otherwise is left out`(_ pieces: [PathSet.Piece], _ expected: [Int]) {
        #expect(PathSetIndex(Self.filters).candidates(for: PathSet(pieces)) == expected)
    }

    private static let places = ["/", "/in/", "/in/a/", "/in/ab/", "/in", "/out/", ""]
    private static let names = [
        "*", "**", "*.jpg", "*.JPG", "a*", "*a", "?.jpg", "{a,b}.jpg", "a/*.jpg", "**/a/*", "x.{jpg,txt}", "[ab].txt",
    ]

    @Test(arguments: 0..<20)
    func `no filter is left out that takes a path of the set`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func any(_ values: [String]) -> String { values.randomElement(using: &random) ?? "" }
        func anyGlob() -> Glob { Self.glob(any(["/", "/in/", "/in/a/", "/out/"]) + any(Self.names)) }
        let filters = (0..<12).map { _ in
            var filter = PathFilter(
                globs: [anyGlob(), anyGlob()], exclude: GlobSet([Self.glob(any(Self.names))]),
                depth: [nil, 0, 1].randomElement(using: &random) ?? nil)
            filter.isTree = Int.random(in: 0..<4, using: &random) == 0
            return filter
        }
        let index = PathSetIndex(filters)
        for _ in 0..<30 {
            let source = [anyGlob(), anyGlob()]
            let first: [PathSet.Piece] = [
                Self.literal(any(Self.places)), .folder(of: source), .path(of: source), .anything,
            ]
            let second: [PathSet.Piece] = [
                .name(of: source), .relative(of: source), .stem(of: source), .extension(of: source), .anyText,
                Self.literal(any(["/a.jpg", "a", ".jpg", "/x.txt", ""])),
            ]
            var pieces = [first.randomElement(using: &random) ?? .anything]
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                pieces.append(second.randomElement(using: &random) ?? .anyText)
            }
            let set = PathSet(pieces)
            let candidates = index.candidates(for: set)
            for (number, filter) in filters.enumerated() where set.meeting(filter) != nil {
                #expect(candidates.contains(number), "\(pieces) in \(filter.globs)")
            }
        }
    }
}
