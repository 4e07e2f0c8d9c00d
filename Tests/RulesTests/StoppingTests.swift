import FileEvents
import Globbing
import Rules
import Testing

struct StoppingTests {
    static func rule(
        _ name: String, _ glob: String, events: EventMask = [.created, .modified], priority: Int = 0, stop: Bool = false
    ) throws -> Rule {
        var rule = Rule(
            name: name, place: SourcePlace(file: "r.yaml", line: 1, column: 1),
            filter: PathFilter(globs: [try Glob(Array(glob.utf8))]), events: events, actions: [])
        rule.priority = priority
        rule.isLast = stop
        return rule
    }

    static func event(_ kind: EventKind, _ path: PathBytes, from: PathBytes? = nil) -> FileEvent {
        var event = FileEvent(
            kind: kind, path: path, root: "/in", snapshot: .unseen, origin: .live,
            time: Timestamp(seconds: 0, nanoseconds: 0))
        event.from = from
        event.snapshot.type = .file
        return event
    }

    @Test func `later rules see nothing of what a rule with stop takes`() throws {
        let rules = Ruleset([
            try Self.rule("first", "/in/*"), try Self.rule("stops", "/in/*.pdf", stop: true),
            try Self.rule("later", "/in/*"),
        ])
        let pdf = Self.event(.created, "/in/a.pdf")
        #expect(rules.told(pdf, to: 0) == pdf)
        #expect(rules.told(pdf, to: 1) == pdf)
        #expect(rules.told(pdf, to: 2) == nil)
        #expect(rules.stopper(of: pdf, to: 2)?.name == "stops")
        let text = Self.event(.created, "/in/a.txt")
        #expect(rules.told(text, to: 2) == text)
        // It asks for no deletions, and so takes none.
        let deleted = Self.event(.deleted, "/in/a.pdf")
        #expect(rules.told(deleted, to: 2) == deleted)
        var folder = pdf
        folder.snapshot.type = .directory
        #expect(rules.told(folder, to: 2) == folder)
    }

    @Test func `priority comes before the order of the files`() throws {
        let rules = Ruleset([
            try Self.rule("low", "/in/*", stop: true), try Self.rule("same", "/in/*"),
            try Self.rule("high", "/in/*", priority: 1), try Self.rule("least", "/in/*", priority: -1, stop: true),
        ])
        let event = Self.event(.created, "/in/a")
        #expect((0..<4).map { rules.told(event, to: $0) != nil } == [true, false, true, false])
    }

    @Test func `a rename over the border of what is seen has one end`() throws {
        let all: EventMask = [.created, .modified, .moved, .deleted]
        let rules = Ruleset([
            try Self.rule("stops", "/in/*.pdf", events: all, stop: true), try Self.rule("later", "/in/*", events: all),
            try Self.rule("new", "/in/*"),
        ])
        let gone = try #require(rules.told(Self.event(.moved, "/in/a.pdf", from: "/in/a.part"), to: 1))
        #expect(gone.kind == .deleted && gone.path == "/in/a.part" && gone.from == nil)
        let come = try #require(rules.told(Self.event(.moved, "/in/a.txt", from: "/in/a.pdf"), to: 1))
        #expect(come.kind == .created && come.path == "/in/a.txt" && come.from == nil)
        let within = Self.event(.moved, "/in/b", from: "/in/a")
        #expect(rules.told(within, to: 1) == within)
        #expect(rules.told(Self.event(.moved, "/in/b.pdf", from: "/in/a.pdf"), to: 1) == nil)
        // Nobody has asked for the deletion.
        #expect(rules.told(Self.event(.moved, "/in/a.pdf", from: "/in/a.part"), to: 2) == nil)
    }

    @Test func `what is in a folder that is one unit belongs to it`() throws {
        var unit = try Self.rule("unit", "/in/*", stop: true)
        unit.filter.isTree = true
        unit.types = [.directory]
        let rules = Ruleset([unit, try Self.rule("later", "/in/**")])
        #expect(rules.told(Self.event(.created, "/in/card/1.jpg"), to: 1) == nil)
        let beside = Self.event(.created, "/in/1.jpg")
        #expect(rules.told(beside, to: 1) == beside)
    }

    // MARK: What a file holds

    private static func rulesByContent(_ events: EventMask) throws -> Ruleset {
        var pdf = try rule("pdf", "/in/*", events: events, stop: true)
        pdf.condition = .mime([.init(type: "application", subtype: "pdf")])
        return Ruleset([pdf, try rule("later", "/in/*", events: events)])
    }

    @Test func `a file that has gone is taken by content as it was when it was told`() throws {
        let rules = try Self.rulesByContent([.created, .modified, .moved, .deleted])
        var gone = Self.event(.deleted, "/in/a")
        func look(_ event: FileEvent) -> ConditionFacts.Content {
            Issue.record("there is nothing to look at")
            return .untold("")
        }
        #expect(rules.told(gone, to: 1, looking: look) == gone)
        gone.snapshot.standing = .withheld
        #expect(rules.told(gone, to: 1, looking: look) == nil)
    }

    @Test func `a rename is judged by what the rule was told of the former name`() throws {
        let rules = try Self.rulesByContent([.created, .modified, .moved, .deleted])
        var moved = Self.event(.moved, "/in/b", from: "/in/a")
        var before = moved.snapshot
        before.standing = .withheld
        moved.before = before
        func kinds(_ type: String) -> [EventKind?] {
            [rules.told(moved, to: 1) { _ in .type(type) }].map { $0?.kind }
        }
        #expect(kinds("application/pdf") == [nil])
        #expect(kinds("text/plain") == [.created])
        moved.before?.standing = .named
        #expect(kinds("application/pdf") == [.deleted])
        #expect(kinds("text/plain") == [.moved])
    }

    @Test func `nothing is looked at for an event that the rule does not ask for`() throws {
        let rules = try Self.rulesByContent([.created])
        var looks = 0
        _ = rules.told(Self.event(.modified, "/in/a"), to: 1) { _ in
            looks += 1
            return .type("application/pdf")
        }
        #expect(looks == 0)
        _ = rules.told(Self.event(.created, "/in/a"), to: 0) { _ in
            looks += 1
            return .type("application/pdf")
        }
        #expect(looks == 0)
    }
}
