import FileEvents
import Globbing
import RegularExpressions
import Rules
import System
import Testing
import TestKit

/// Conditions, evaluated from metadata alone.
struct ConditionTests {
    private static let now = Timestamp(seconds: 100_000, nanoseconds: 0)

    static func input(
        _ path: PathBytes = "/in/2026/IMG_7.jpg", size: UInt64 = 300, age: Int64 = 90, uid: UInt32 = 1_000,
        gid: UInt32 = 50, type: FileType = .file, content: ConditionInput.Content = .notAsked
    ) -> ConditionInput {
        var snapshot = Snapshot.sample(size: size, modified: 100_000 - age, type: type)
        snapshot.uid = uid
        snapshot.gid = gid
        return ConditionInput(path: path, root: "/in", snapshot: snapshot, content: content, now: now)
    }

    static func size(_ text: String) throws -> Condition {
        let bounds = try ComparisonText.parse(text, noun: "size") { text throws(Problem) in
            UInt64(text) ?? 0
        }
        return .size(Comparisons(bounds, text: text))
    }

    static func age(_ relation: Comparisons<Duration>.Relation, _ seconds: Int) -> Condition {
        .age(Comparisons([.init(relation, .seconds(seconds))], text: "\(relation.rawValue) \(seconds)s"))
    }

    static func depth(_ relation: Comparisons<Int>.Relation, _ depth: Int) -> Condition {
        .depth(Comparisons([.init(relation, depth)], text: "\(relation.rawValue) \(depth)"))
    }

    static func name(_ globs: String...) throws -> Condition {
        .name(try globs.map { try Glob($0, options: Glob.Options(matchesHidden: true)) })
    }

    static let images = Condition.mime([.init(type: "image", subtype: nil)])
    static let pdf = Condition.mime([.init(type: "application", subtype: "pdf")])

    @Test(arguments: [
        ("> 299", true), ("> 300", false), (">= 300", true), (">= 301", false), ("< 301", true), ("< 300", false),
        ("<= 300", true), ("<= 299", false), ("= 300", true), ("== 300", true), ("= 301", false), ("!= 300", false),
        ("!= 1", true), ("300..400", true), ("200..300", true), ("1..299", false), ("301 .. 400", false),
        (">299", true),
    ])
    func `a size is compared, and ranges include their ends`(text: String, holds: Bool) throws {
        let answer = try Self.size(text).answer(Self.input())
        #expect(answer == (holds ? .holds : .fails("size is 300 B, expected \(text)")))
    }

    @Test(
        arguments: [
            (300, "300 B"), (1_000, "1 KB"), (1_500, "1.5 KB"), (1_234, "1.234 KB"), (12_345_678, "12345678 B"),
            (2_000_000_000, "2 GB"), (0, "0 B"),
        ] as [(UInt64, String)])
    func `a size in a message is exact`(size: UInt64, shown: String) throws {
        #expect(try Self.size("= 7").answer(Self.input(size: size)) == .fails("size is \(shown), expected = 7"))
    }

    @Test(
        arguments: [
            (90, "1m 30s"), (86_400, "1d"), (90_061, "1d 1h"), (3_605, "1h"), (0, "0ms"), (-5, "0ms"),
        ] as [(Int64, String)])
    func `an age counts from the last change and is shown in two units`(age: Int64, shown: String) {
        let answer = Self.age(.more, 1_000_000).answer(Self.input(age: age))
        #expect(answer == .fails("age is \(shown), expected > 1000000s"))
        #expect(Self.age(.less, 1_000_000).answer(Self.input(age: age)) == .holds)
    }

    @Test func `a file with a time in the future has changed when its change time was set`() {
        var input = Self.input(age: -1_000_000)
        input.snapshot?.changed = Self.now.advanced(by: .seconds(-90))
        #expect(Self.age(.more, 60).answer(input) == .holds)
        #expect(Self.age(.less, 60).answer(input) == .fails("age is 1m 30s, expected < 60s"))
    }

    @Test func `times outside the usual range do not overflow`() {
        var input = Self.input()
        input.snapshot?.modified = Timestamp(seconds: .min, nanoseconds: 999_999_999)
        #expect(Self.age(.more, 1).answer(input) == .holds)
        input.snapshot?.modified = Timestamp(seconds: .max, nanoseconds: 0)
        input.snapshot?.changed = Timestamp(seconds: .max, nanoseconds: 0)
        #expect(Self.age(.less, 1).answer(input) == .holds)
        input.now = Timestamp(seconds: -10, nanoseconds: 0)
        #expect(Self.age(.less, 1).answer(input) == .holds)
    }

    @Test(
        arguments: [
            ("/in/a", 0), ("/in/x/a", 1), ("/in/x/y/z/a", 3),
        ] as [(PathBytes, Int)])
    func `depth counts the directories below the root`(path: PathBytes, depth: Int) {
        #expect(Self.depth(.equal, depth).answer(Self.input(path)) == .holds)
        #expect(
            Self.depth(.equal, 9).answer(Self.input(path)) == .fails("depth is \(depth), expected = 9"))
    }

    @Test func `a name is the last component, and one matching glob is enough`() throws {
        #expect(try Self.name("*.png", "IMG_*.jpg").answer(Self.input()) == .holds)
        #expect(try Self.name("2026*").answer(Self.input()) == .fails("name is 'IMG_7.jpg', expected '2026*'"))
        #expect(try Self.name("*.jpg").answer(Self.input("/in/.x.JPG")) == .holds)
        #expect(try Self.name("a?b").answer(Self.input("/in/a\nb")) == .holds)
    }

    @Test func `a path is relative to the root, or absolute if the glob is`() throws {
        func path(_ globs: String...) throws -> Condition { .path(try globs.map { try Glob($0) }) }
        #expect(try path("2026/*").answer(Self.input()) == .holds)
        #expect(try path("/in/2026/*").answer(Self.input()) == .holds)
        #expect(try path("/in/2025/*", "**/IMG*").answer(Self.input()) == .holds)
        #expect(try path("in/**").answer(Self.input()) == .fails("path is '2026/IMG_7.jpg', expected 'in/**'"))
    }

    @Test func `a regular expression is searched for in the name only`() throws {
        #expect(Condition.regex(try RegularExpression("MG_[0-9]")).answer(Self.input()) == .holds)
        #expect(
            Condition.regex(try RegularExpression("2026")).answer(Self.input())
                == .fails("name is 'IMG_7.jpg', expected the regex '2026'"))
    }

    @Test func `an aborted search leaves the condition open, also below not`() throws {
        let evil = Condition.regex(try RegularExpression("(a+)+$"))
        let input = Self.input(PathBytes("/in/\(String(repeating: "a", count: 200))!"))
        for condition in [evil, .not(evil), .all([evil, .not(evil)]), .any([.not(evil)])] {
            guard case .unknown(let reason) = condition.answer(input) else {
                Issue.record("it was told")
                continue
            }
            #expect(reason.hasPrefix("the regex '(a+)+$' is too complex for the name 'aaaa"))
        }
    }

    @Test func `an owner is a user, a group, or both`() {
        func owner(_ uid: UInt32?, _ gid: UInt32?) -> Condition.Owner { .init(uid: uid, gid: gid, text: "ada") }
        #expect(Condition.owner([owner(1_000, nil)]).answer(Self.input()) == .holds)
        #expect(Condition.owner([owner(nil, 50)]).answer(Self.input()) == .holds)
        #expect(Condition.owner([owner(7, nil), owner(1_000, 50)]).answer(Self.input()) == .holds)
        #expect(
            Condition.owner([owner(1_000, 51)]).answer(Self.input())
                == .fails("owner is 1000:50, expected 'ada'"))
    }

    // MARK: Content types

    @Test func `the content is needed only if no cheaper condition decides`() throws {
        let small = try Self.size("< 10")
        #expect(Self.images.answer(Self.input()) == .needsContent)
        #expect(Condition.all([Self.images, small]).answer(Self.input()) == .fails("size is 300 B, expected < 10"))
        #expect(Condition.any([Self.images, .not(small)]).answer(Self.input()) == .holds)
        #expect(Condition.not(.all([Self.images, small])).answer(Self.input()) == .holds)
        #expect(Condition.all([Self.images, .not(small)]).answer(Self.input()) == .needsContent)
    }

    @Test func `a content type matches completely or by its type before the slash`() {
        let png = Self.input(content: .type("image/png"))
        #expect(Self.images.answer(png) == .holds)
        #expect(Self.pdf.answer(png) == .fails("mime is 'image/png', expected 'application/pdf'"))
        #expect(Condition.mime([.init(type: nil, subtype: "png")]).answer(png) == .holds)
        #expect(Condition.mime([.init(type: nil, subtype: nil)]).answer(png) == .holds)
        #expect(Self.images.answer(Self.input(content: .type("imagery/png"))) != .holds)
        #expect(Self.images.answer(Self.input(content: .type("image"))) != .holds)
    }

    @Test func `a path that is not a regular file has a type without being read`() {
        let directory = Condition.mime([.init(type: "inode", subtype: "directory")])
        #expect(directory.answer(Self.input(type: .directory)) == .holds)
        #expect(Self.images.answer(Self.input(type: .symlink)) == .fails("mime is 'inode/symlink', expected 'image/*'"))
        #expect(Self.images.answer(Self.input(type: .other)) == .fails("mime is 'inode/special', expected 'image/*'"))
    }

    @Test func `the content of a deleted file is unknown unless another condition decides`() throws {
        var event = FileEvent.sample(.deleted, "/in/a.jpg")
        let rule = try Self.rule(.all([Self.images, try Self.name("*.jpg")]))
        #expect(rule.admits(event) == .unknown("the file was deleted, so its content is unknown"))
        #expect(
            try Self.rule(.not(Self.images)).admits(event)
                == .unknown("the file was deleted, so its content is unknown"))
        #expect(try Self.rule(.any([Self.images, try Self.name("*.jpg")])).admits(event) == .holds)
        #expect(try Self.rule(.all([Self.images, try Self.name("*.png")])).admits(event) != .holds)
        event.snapshot = .unseen
        #expect(try Self.rule(try Self.size("> 0")).admits(event) == .unknown("the metadata of the file is unknown"))
        // Events about the watch itself concern no file.
        #expect(try Self.rule(Self.images).admits(.sample(.overflow, "/in", .unseen)) == .holds)
    }

    // MARK: Combined conditions

    @Test func `all reports the first condition that fails, and any reports every one`() throws {
        let small = try Self.size("< 10")
        let png = try Self.name("*.png")
        #expect(Condition.all([png, small]).answer(Self.input()) == .fails("name is 'IMG_7.jpg', expected '*.png'"))
        #expect(
            Condition.any([png, small]).answer(Self.input())
                == .fails(
                    "no condition of 'any' is true: name is 'IMG_7.jpg', expected '*.png'; "
                        + "size is 300 B, expected < 10"))
    }

    @Test func `not reports the conditions that hold`() throws {
        let jpg = try Self.name("*.jpg")
        let large = try Self.size("> 10")
        #expect(Condition.not(jpg).answer(Self.input()) == .fails("excluded by 'not': name is 'IMG_7.jpg' ('*.jpg')"))
        #expect(
            Condition.not(.all([jpg, large])).answer(Self.input())
                == .fails("excluded by 'not': name is 'IMG_7.jpg' ('*.jpg'); size is 300 B (> 10)"))
        #expect(
            Condition.not(.any([try Self.name("x"), large])).answer(Self.input())
                == .fails("excluded by 'not': size is 300 B (> 10)"))
        #expect(Condition.not(.not(jpg)).answer(Self.input()) == .holds)
    }

    /// Combines each of three answers with each: an answer that decides makes the other one irrelevant.
    @Test func `an open condition stays open unless the other one decides`() throws {
        let yes = try Self.size("> 1")
        let no = try Self.size("< 1")
        let open = Self.images
        let input = Self.input(content: .unknown("why"))
        for pair in [[yes, open], [open, yes], [open, open]] {
            #expect(Condition.all(pair).answer(input) == .unknown("why"))
        }
        for pair in [[no, open], [open, no], [open, open]] {
            #expect(Condition.any(pair).answer(input) == .unknown("why"))
        }
        #expect(Condition.all([open, no]).answer(input) == .fails("size is 300 B, expected < 1"))
        #expect(Condition.any([open, yes]).answer(input) == .holds)
        #expect(Condition.not(open).answer(input) == .unknown("why"))
        let unreadable = Self.input(content: .unreadable("why"))
        for condition in [
            open, .all([open, yes]), .all([yes, open]), .any([no, open]), .any([open, no]), .not(open),
        ] {
            #expect(condition.answer(unreadable) == .unreadable("why"))
        }
        #expect(Condition.all([open, no]).answer(unreadable) == .fails("size is 300 B, expected < 1"))
    }

    private static func rule(_ condition: Condition) throws -> Rule {
        var rule = Rule(
            name: "r", location: SourcePosition(file: "rules.yaml", line: 2, column: 5),
            filter: PathFilter(globs: [try Glob("/in/**")]), actions: [])
        rule.condition = condition
        return rule
    }
}

/// The parser of comparisons.
struct ComparisonTextTests {
    private static func parse(_ text: String) throws(Problem) -> [Comparisons<Int>.Bound] {
        try ComparisonText.parse(text, noun: "count", allowsBare: true) { text throws(Problem) in
            guard let number = Int(text) else { throw Problem("no number '\(text)'", help: "") }
            return number
        }
    }

    @Test(arguments: [
        ("=> 3", "invalid comparison '=>'", "write '>= 3'"), ("≥3", "invalid comparison '≥'", "write '>= 3'"),
        ("<> 3", "invalid comparison '<>'", "write '!= 3'"), ("!3", "invalid comparison '!'", "write '!= 3'"),
        ("<<3", "invalid comparison '<<'", "write one of <, <=, >, >=, = and !="),
        (">", "'>' has no value to compare with", "write a count after it"),
        ("..3", "the range '..3' has only one end", "write '<= 3'"),
        ("3..", "the range '3..' has only one end", "write '>= 3'"),
        ("..", "the range '..' has only one end", "write both, as in 'LOW..HIGH'"),
        ("4..3", "the range '4..3' starts after its end", "write '3..4'"),
        ("> 3..5", "the range '> 3..5' contains '>'", "write a range without it, or a list of two comparisons"),
        ("> x", "no number 'x'", ""), ("1..x", "no number 'x'", ""), ("", "no number ''", ""),
    ])
    func `a mistake is reported with a correction`(text: String, message: String, help: String) {
        let problem = #expect(throws: Problem.self) { try Self.parse(text) }
        #expect(problem == Problem(message, help: help))
    }

    @Test(arguments: [
        ([">5", "<3"], true), ([">5", "<5"], true), ([">=5", "<5"], true), ([">=5", "<=5"], false),
        ([">5", "<=5"], true),
        (["=5", ">5"], true), (["=5", "=6"], true), (["=5", ">=5"], false), ([">1", "<9", "!=5"], false),
        (["<9", ">1"], false), (["<1", ">9"], true), (["1..2", "3..4"], true), (["1..3", "3..4"], false),
    ])
    func `bounds that exclude every value are detected`(texts: [String], isContradiction: Bool) throws {
        let bounds = try texts.flatMap { try Self.parse($0) }
        #expect(Comparisons(bounds, text: "").isContradiction == isContradiction)
    }
}

/// Captures of regular expressions, as placeholders.
struct CaptureTests {
    private static func expand(_ text: String, _ path: PathBytes, _ patterns: String...) throws -> [UInt8] {
        let expressions = try patterns.map { try RegularExpression($0) }
        let values = PlaceholderValues(
            event: .sample(.created, path), rule: "r", job: "J", attempt: 1, now: Timestamp(seconds: 0, nanoseconds: 0),
            captures: Captures(of: path, by: expressions))
        return try #require(Template(text)).expanded(with: values)
    }

    @Test func `groups expand by number and by name`() throws {
        let path: PathBytes = "/in/2026-11_beach.jpg"
        let pattern = #"^(?<year>\d+)-(\d+)_(x)?(.*)\.jpg$"#
        #expect(try Self.expand("${match.year}/${2}/${4}${3}${1}", path, pattern) == Array("2026/11/beach2026".utf8))
    }

    @Test func `the first expression that has the group provides it`() throws {
        #expect(try Self.expand("${1}${2}${match.n}", "/in/abc", "(a)", "(b)(?<n>c)") == Array("acc".utf8))
        #expect(try Self.expand("${1}${2}", "/in/abc", "(x)?(y)?", "(b)(c)") == [])
    }

    @Test func `a name used by several groups has the value of the group that matched`() throws {
        #expect(try Self.expand("${match.n}", "/in/b", "(?J)(?<n>a)|(?<n>b)") == [0x62])
    }

    @Test func `captures keep the bytes of the name`() throws {
        let path = PathBytes(Array("/in/x_".utf8) + [0xFF, 0x0A] + Array("$(y) ${path}.t".utf8))
        #expect(try Self.expand("${1}", path, #"_(.*)\.t$"#) == [0xFF, 0x0A] + Array("$(y) ${path}".utf8))
    }

    @Test(
        arguments: [
            ("/out/${1}/x", "..a", "^(..)", "/out/__/x"), ("/out/${1}", ".a", "^(.)", "/out/_"),
            ("/out/${1}${2}/x", "..a", "^(.)(.)", "/out/__/x"), ("/out/.${1}./x", "a", "a(b)?", "/out/__/x"),
            ("--to=${1}", "..a", "^(..)", "--to=__"), ("/out/.${1}/x", ".a", "^(.)", "/out/._/x"),
            ("/out/${1}/x", "...a", "^(...)", "/out/.../x"), ("/out/${1}x", "..a", "^(..)", "/out/__x"),
            ("/out/../${1}", "a", "(a)", "/out/../a"), ("/out/${1}/x", "a", "a(b)?", "/out//x"),
        ] as [(String, PathBytes, String, String)])
    func `a capture cannot lead a path into another directory`(
        text: String, name: PathBytes, pattern: String, result: String
    ) throws {
        let path = PathBytes("/in").appending(name.bytes)
        #expect(try Self.expand(text, path, pattern) == Array(result.utf8))
    }

    @Test func `only expressions that must have matched are certain`() throws {
        let (a, b, c) = (try RegularExpression("a"), try RegularExpression("b"), try RegularExpression("c"))
        let condition = Condition.all([.all([.regex(a)]), .any([.regex(b)]), .not(.regex(c))])
        #expect(condition.certainExpressions == [a])
        #expect(condition.expressions == [a, b, c])
    }

    @Test(arguments: [
        ("1", Placeholder.group(1)), ("99", .group(99)), ("100", nil), ("0", nil), ("01", nil), ("-1", nil),
        ("1a", nil),
        ("match.x", .namedGroup("x")), ("match.", nil), ("match", nil),
    ])
    func `groups are numbered from 1 to 99 or named`(word: String, placeholder: Placeholder?) {
        #expect(Placeholder(word: word) == placeholder)
    }
}
