import Globbing
import Testing

struct PathSetTests {
    private static func glob(_ pattern: String) -> Glob {
        do { return try Glob(pattern) } catch { preconditionFailure("\(pattern): \(error)") }
    }

    private static func filter(_ globs: [String], exclude: [String] = [], depth: Int? = nil) -> PathFilter {
        let excluded = exclude.compactMap { try? Glob($0, options: Glob.Options(matchesHidden: true)) }
        return PathFilter(globs: globs.map(glob), exclude: GlobSet(excluded), depth: depth)
    }

    private static func set(_ pieces: PathSet.Piece...) -> PathSet { PathSet(pieces) }

    /// A set, what it is compared with, and what comes of it.
    private struct Case: Sendable, CustomTestStringConvertible {
        enum Result { case nothing, part, whole }

        var pieces: [PathSet.Piece]
        var filter: PathFilter
        var result: Result

        init(_ pieces: [PathSet.Piece], _ globs: [String], _ result: Result, exclude: [String] = [], depth: Int? = nil)
        {
            self.pieces = pieces
            filter = PathSetTests.filter(globs, exclude: exclude, depth: depth)
            self.result = result
        }

        var testDescription: String { "\(pieces) in \(filter.globs)" }
    }

    private static func literal(_ text: String) -> PathSet.Piece { .literal(Array(text.utf8)) }

    private static let cases: [Case] = [
        Case([literal("/in/a.txt")], ["/in/*.txt"], .whole),
        Case([literal("/in/a.TXT")], ["/in/*.txt"], .whole),
        Case([literal("/in/a.jpg")], ["/in/*.txt"], .nothing),
        Case([literal("/in/.a.txt")], ["/in/*.txt"], .nothing),
        Case([literal("/in/x/a.txt")], ["/in/*.txt"], .nothing),
        Case([literal("/in/x/a.txt")], ["/in/**/*.txt"], .whole),
        Case([literal("/in/x/a.txt")], ["/in/**/*.txt"], .nothing, exclude: ["x"]),
        Case([literal("/in/x/a.txt")], ["/in/**/*.txt"], .nothing, exclude: ["**/a.*"]),
        Case([literal("/in/x/a.txt")], ["/in/**/*.txt"], .nothing, depth: 0),
        Case([literal("/in/x/a.txt")], ["/in/**/*.txt"], .whole, depth: 1),
        Case([literal("/in/"), .anyText], ["/in/*.txt"], .part),
        Case([literal("/in/"), .anyText, literal(".txt")], ["/in/*.txt"], .part),
        Case([literal("/in/x"), .anyText, literal(".txt")], ["/in/*.txt"], .whole),
        Case([literal("/in/x"), .anyText, literal(".txt")], ["/in/*.txt"], .part, exclude: ["xa*"]),
        Case([literal("/in/"), .anything], ["/in/*.txt"], .part),
        Case([literal("/out/"), .name(of: [glob("/in/*.txt")])], ["/out/*.txt"], .whole),
        Case([literal("/out/"), .name(of: [glob("/in/*.{txt,md}")])], ["/out/*.txt"], .part),
        Case([literal("/out/"), .name(of: [glob("/in/*.md")])], ["/out/*.txt"], .nothing),
        Case([literal("/out/"), .name(of: [glob("/in/**")])], ["/out/*"], .whole),
        Case([literal("/out/"), .stem(of: [glob("/in/*.md")]), literal(".txt")], ["/out/*.txt"], .whole),
        Case([literal("/out/x."), .extension(of: [glob("/in/*.{txt,md}")])], ["/out/*.txt"], .part),
        Case([literal("/out/x."), .extension(of: [glob("/in/*.TXT")])], ["/out/*.txt"], .whole),
        Case([literal("/out/x."), .extension(of: [glob("/in/*.md")])], ["/out/*.txt"], .nothing),
        Case([literal("/out/"), .relative(of: [glob("/in/**/*.txt")])], ["/out/**"], .whole),
        Case([literal("/out/"), .relative(of: [glob("/in/**/*.txt")])], ["/out/*"], .part),
        Case([literal("/out/"), .relative(of: [glob("/in/*/*.txt")])], ["/out/*"], .nothing),
        Case([.folder(of: [glob("/in/**/*.txt")]), literal("/x.txt")], ["/in/*"], .part),
        Case([.folder(of: [glob("/in/**/*.txt")]), literal("/x.txt")], ["/in/**"], .whole),
        Case([.folder(of: [glob("/in/*/*.txt")]), literal("/x.txt")], ["/in/*/x.*"], .whole),
        Case([.path(of: [glob("/in/*.txt")]), literal(".gz")], ["/in/*.txt"], .nothing),
        Case([.path(of: [glob("/in/*.txt")]), literal(".gz")], ["/in/*.gz"], .whole),
        Case([.path(of: [glob("/in/[a-c]*")])], ["/in/[b-d]*"], .part),
        Case([.path(of: [glob("/in/[a-c]?")])], ["/in/[!x]*"], .whole),
        Case([.path(of: [glob("/in/[é-ü]")])], ["/in/?"], .whole),
        Case([.path(of: [glob("/in/[é-ü]")])], ["/in/[!a-z]"], .whole),
        Case([.path(of: [glob("/*")])], ["/*"], .whole),
        Case([.path(of: [glob("/a/*"), glob("/b/*")])], ["/a/**", "/b/**"], .whole),
    ]

    @Test(arguments: cases)
    private func `what a filter takes of a set`(_ example: Case) {
        let meeting = PathSet(example.pieces).meeting(example.filter)
        #expect(
            meeting == nil ? example.result == .nothing : example.result == (meeting?.isWhole == true ? .whole : .part))
        if let meeting {
            #expect(example.filter.root(taking: meeting.path) != nil)
            #expect(meeting.glob.matches(meeting.path))
        }
    }

    @Test func `what the built-in ignores cover is not taken`() {
        var filter = Self.filter(["/in/*"])
        filter.ignores = GlobSet([Self.glob("**/*.tmp")])
        #expect(Self.set(Self.literal("/in/a.tmp")).meeting(filter) == nil)
        #expect(Self.set(Self.literal("/in/"), .anyText).meeting(filter) != nil)
    }

    @Test func `what lies in a folder that counts as one unit belongs to it`() {
        var filter = Self.filter(["/in/*"])
        #expect(Self.set(Self.literal("/in/a/b/c")).meeting(filter) == nil)
        filter.isTree = true
        #expect(Self.set(Self.literal("/in/a/b/c")).meeting(filter) != nil)
        #expect(Self.set(Self.literal("/out/a/b/c")).meeting(filter) == nil)
    }

    // MARK: All paths of a small world

    /// Every path of at most three names of one or two of these characters.
    private static let names: [String] = {
        let characters = ["a", "b", "."]
        let names = characters + characters.flatMap { first in characters.map { first + $0 } } + ["a.b", "b.a"]
        return names.filter { $0 != "." && $0 != ".." }
    }()

    private static let world: [[UInt8]] = {
        let one = names.map { "/" + $0 }
        let two = one.flatMap { path in names.map { path + "/" + $0 } }
        let three = two.flatMap { path in ["a", "b", ".a", "a.b"].map { path + "/" + $0 } }
        return (one + two + three).map { Array($0.utf8) }
    }()

    private static func pattern(_ random: inout some RandomNumberGenerator) -> String {
        let parts = ["a", "b", "*", "**", "?", "*.b", "a*", "[ab]", "[!a]?", ".*", "{a,*b}", "a.b", "?.a"]
        return (0..<Int.random(in: 1...3, using: &random)).map { _ in
            "/" + (parts.randomElement(using: &random) ?? "a")
        }.joined()
    }

    @Test(arguments: 0..<20)
    func `compared with all paths of a small world`(seed: UInt64) {
        var random = SplitMix(state: seed &* 7919 + 1)
        for _ in 0..<12 {
            let source = Self.glob(Self.pattern(&random))
            let globs = (0..<Int.random(in: 1...2, using: &random)).map { _ in Self.pattern(&random) }
            let excluded = Bool.random(using: &random) ? [String(Self.pattern(&random).dropFirst())] : []
            let filter = Self.filter(globs, exclude: excluded, depth: [nil, 0, 1].randomElement(using: &random) ?? nil)
            let taken = Self.world.filter { source.matches($0) }
            let names = Set(taken.map { Array($0.suffix(from: ($0.lastIndex(of: 0x2F) ?? 0) + 1)) })
            let relatives = taken.map { Array($0.dropFirst(source.root == [0x2F] ? 1 : source.root.count + 1)) }
            let folders = taken.map { Array($0.prefix(upTo: $0.lastIndex(of: 0x2F) ?? 0)) }
            let kinds: [(PathSet, [[UInt8]])] = [
                (Self.set(.path(of: [source])), taken),
                (Self.set(Self.literal("/a/"), .name(of: [source])), names.map { Array("/a/".utf8) + $0 }),
                (Self.set(Self.literal("/b/"), .relative(of: [source])), relatives.map { Array("/b/".utf8) + $0 }),
                (Self.set(.folder(of: [source]), Self.literal("/a.b")), folders.map { $0 + Array("/a.b".utf8) }),
            ]
            for (set, paths) in kinds {
                let meeting = set.meeting(filter)
                let known = paths.filter { filter.root(taking: $0) != nil }
                let context = "\(source) and \(globs) without \(excluded), depth \(filter.depth as Int?)"
                if let meeting {
                    #expect(filter.root(taking: meeting.path) != nil, "\(context)")
                    #expect(!meeting.isWhole || known.count == paths.count, "\(context)")
                } else {
                    #expect(known.isEmpty, "\(context)")
                }
            }
            // A set that is a glob is known exactly.
            if let meeting = kinds[0].0.meeting(filter) { #expect(source.matches(meeting.path)) }
            // What two filters match, of the names that a glob allows.
            let other = Self.filter([Self.pattern(&random)], exclude: excluded)
            let named = Self.set(.anything, Self.literal("/"), .name(of: [source]))
            let shared = PathSet([.anything]).meeting(filter, and: [other], in: [named])
            if let shared {
                #expect(filter.root(taking: shared.path) != nil && other.root(taking: shared.path) != nil)
                #expect(shared.glob.matches(shared.path))
            } else {
                #expect(
                    !Self.world.contains { path in
                        filter.root(taking: path) != nil && other.root(taking: path) != nil
                            && names.contains(Array(path.suffix(from: (path.lastIndex(of: 0x2F) ?? 0) + 1)))
                    }, "\(globs), \(other.globs) and the names of \(source)")
            }
        }
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }
}
