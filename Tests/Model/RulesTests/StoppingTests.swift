import FileEvents
import Globbing
import Rules
import System
import Testing

struct StoppingTests {
    static func rule(
        _ name: String, _ glob: String, events: EventMask = [.created, .modified], priority: Int = 0, stop: Bool = false
    ) throws -> Rule {
        var rule = Rule(
            name: name, location: SourcePosition(file: "r.yaml", line: 1, column: 1),
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

    @Test func `a rule with stop keeps the files it matches from later rules`() throws {
        let rules = Ruleset([
            try Self.rule("first", "/in/*"), try Self.rule("stops", "/in/*.pdf", stop: true),
            try Self.rule("later", "/in/*"),
        ])
        let pdf = Self.event(.created, "/in/a.pdf")
        #expect(rules.stopper(of: pdf, to: 0) == nil)
        #expect(rules.stopper(of: pdf, to: 1) == nil)
        #expect(rules.stopper(of: pdf, to: 2)?.name == "stops")
        let text = Self.event(.created, "/in/a.txt")
        #expect(rules.stopper(of: text, to: 2) == nil)
        // The rule does not ask for deletions and therefore does not stop them.
        let deleted = Self.event(.deleted, "/in/a.pdf")
        #expect(rules.stopper(of: deleted, to: 2) == nil)
        var directory = pdf
        directory.snapshot.type = .directory
        #expect(rules.stopper(of: directory, to: 2) == nil)
    }

    @Test func `a higher priority goes before the order in the files`() throws {
        let rules = Ruleset([
            try Self.rule("low", "/in/*", stop: true), try Self.rule("same", "/in/*"),
            try Self.rule("high", "/in/*", priority: 1), try Self.rule("least", "/in/*", priority: -1, stop: true),
        ])
        let event = Self.event(.created, "/in/a")
        #expect((0..<4).map { rules.stopper(of: event, to: $0) == nil } == [true, false, true, false])
    }

    @Test func `files in a directory handled as one unit belong to that directory`() throws {
        var unit = try Self.rule("unit", "/in/*", stop: true)
        unit.filter.isTree = true
        unit.types = [.directory]
        let rules = Ruleset([unit, try Self.rule("later", "/in/**")])
        #expect(rules.stopper(of: Self.event(.created, "/in/card/1.jpg"), to: 1)?.name == "unit")
        let beside = Self.event(.created, "/in/1.jpg")
        #expect(rules.stopper(of: beside, to: 1) == nil)
    }

    // MARK: Content

    private static func rulesByContent(_ events: EventMask) throws -> Ruleset {
        var pdf = try rule("pdf", "/in/*", events: events, stop: true)
        pdf.condition = .mime([.init(type: "application", subtype: "pdf")])
        return Ruleset([pdf, try rule("later", "/in/*", events: events)])
    }

    @Test func `a rule may match a file by its content unless the file is gone`() throws {
        let rules = try Self.rulesByContent([.created, .deleted])
        let new = Self.event(.created, "/in/a")
        #expect(rules.stopper(of: new, to: 1) { _ in .type("application/pdf") }?.name == "pdf")
        #expect(rules.stopper(of: new, to: 1) { _ in .type("text/plain") } == nil)
        let gone = rules.stopper(of: Self.event(.deleted, "/in/a"), to: 1) { _ in
            Issue.record("a deleted file has no content to check")
            return .unknown("")
        }
        #expect(gone == nil)
    }

    @Test func `content is not read for an event that the rule does not ask for`() throws {
        let rules = try Self.rulesByContent([.created])
        var reads = 0
        _ = rules.stopper(of: Self.event(.modified, "/in/a"), to: 1) { _ in
            reads += 1
            return .type("application/pdf")
        }
        #expect(reads == 0)
        _ = rules.stopper(of: Self.event(.created, "/in/a"), to: 0) { _ in
            reads += 1
            return .type("application/pdf")
        }
        #expect(reads == 0)
    }
}

extension Ruleset {
    /// Returns the rule that stops a later rule, without reading the file.
    fileprivate func stopper(of event: FileEvent, to index: Int) -> Rule? {
        stopper(of: event, to: index) { _ in .unknown("its content is not checked") }
    }
}
