import FileEvents
@testable import FileObserving
import System
import Testing
import TestKit

/// The events that a reader has not received yet, and how they merge.
struct ReaderRowsTests {
    /// Makes an event from its essential parts.
    static func event(
        _ kind: EventKind, _ path: PathBytes, from: PathBytes? = nil, file: UInt64 = 1, size: UInt64 = 1,
        before: Snapshot? = nil, replaced: Bool = false, changed: [String] = []
    ) -> FileEvent {
        FileEvent(
            kind: kind, path: path, root: "/in", from: from, snapshot: .sample(file: file, size: size), before: before,
            changed: changed, isReplaced: replaced, time: Timestamp(seconds: 1, nanoseconds: 0))
    }

    /// A one-line description of an event.
    static func text(_ event: FileEvent) -> String {
        var text = "\(event.kind.rawValue) \(event.path)"
        if let from = event.from { text += " from \(from)" }
        if event.isReplaced { text += " replaced" }
        if !event.changed.isEmpty { text += " [\(event.changed.joined(separator: " "))]" }
        return text
    }

    /// The event, with another mode of the file.
    static func set(_ event: FileEvent, mode: UInt16) -> FileEvent {
        var event = event
        event.snapshot.mode = mode
        return event
    }

    /// The event, for a directory instead of a file.
    static func directory(_ event: FileEvent) -> FileEvent {
        var event = event
        event.snapshot.type = .directory
        event.before?.type = .directory
        return event
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var events: [FileEvent]
        var expected: [String]

        init(_ name: String, _ events: [FileEvent], _ expected: [String]) {
            testDescription = name
            self.events = events
            self.expected = expected
        }
    }

    static let old = Snapshot.sample(file: 1, size: 1)
    static let extended = event(.modified, "a", size: 2, before: old, changed: ["extended"])
    static let moved = event(.moved, "b", from: "a", before: old)
    static let grown = event(.moved, "b", from: "a", size: 2, before: old, changed: ["extended"])

    static let contents = [
        Case(
            "created, then modified", [event(.created, "a"), event(.modified, "a", size: 2, before: old)],
            ["created a"]),
        Case("created, then deleted", [event(.created, "a"), event(.deleted, "a", before: old)], []),
        Case(
            "modified twice", [extended, event(.modified, "a", size: 3, before: old, changed: ["extended"])],
            ["modified a [extended]"]),
        Case(
            "modified, and back", [extended, event(.modified, "a", size: 1, before: old, changed: ["truncated"])], []),
        Case(
            "attributes, then modified", [event(.attributes, "a", before: old, changed: ["mode"]), extended],
            ["modified a [extended]"]),
        Case(
            "attributes twice",
            [
                set(event(.attributes, "a", before: old, changed: ["uid"]), mode: 0o600),
                set(event(.attributes, "a", before: old, changed: ["mode"]), mode: 0o640),
            ], ["attributes a [mode]"]),
        Case("modified, then deleted", [extended, event(.deleted, "a", before: old)], ["deleted a"]),
        Case(
            "deleted, then created", [event(.deleted, "a", before: old), event(.created, "a", file: 2, size: 3)],
            ["modified a replaced [extended]"]),
        Case(
            "deleted, created, deleted",
            [event(.deleted, "a"), event(.created, "a", file: 2), event(.deleted, "a", file: 2)], ["deleted a"]),
    ]

    static let moves = [
        Case("moved", [moved], ["moved b from a"]),
        Case("moved twice", [moved, event(.moved, "c", from: "b", before: old)], ["moved c from a"]),
        Case("moved there and back", [moved, event(.moved, "a", from: "b", before: old)], []),
        Case(
            "modified, moved there and back",
            [
                extended, event(.moved, "b", from: "a", size: 2, before: .sample(file: 1, size: 2)),
                event(.moved, "a", from: "b", size: 2, before: .sample(file: 1, size: 2)),
            ], ["modified a [extended]"]),
        Case(
            "moved, set, and moved back",
            [
                set(event(.moved, "b", from: "a", before: old), mode: 0o600),
                set(event(.moved, "a", from: "b", before: old), mode: 0o600),
            ], ["attributes a [mode]"]),
        Case(
            "a directory that was moved, set and filled, and moved back",
            [
                directory(set(event(.moved, "b", from: "a", size: 2, before: old), mode: 0o600)),
                directory(set(event(.moved, "a", from: "b", size: 3, before: old), mode: 0o600)),
            ], ["attributes a [mode]"]),
        Case("moved, then deleted", [moved, event(.deleted, "b", before: old)], ["deleted a"]),
        Case(
            "moved onto another, then deleted",
            [event(.moved, "b", from: "a", before: old, replaced: true), event(.deleted, "b", before: old)],
            ["deleted a", "deleted b"]),
        Case("created, then moved", [event(.created, "a"), moved], ["created b"]),
        Case(
            "created, then moved onto another",
            [event(.created, "a"), event(.moved, "b", from: "a", before: old, replaced: true)],
            ["modified b replaced [overwritten]"]),
        Case(
            "modified, moved, merged, and moved back", [grown, event(.moved, "a", from: "b", size: 2, before: old)],
            ["modified a [extended]"]),
        Case(
            "moved with other content, and back",
            [
                event(.moved, "b", from: "a", size: 2, before: old),
                event(.moved, "a", from: "b", size: 2, before: .sample(file: 1, size: 2)),
            ], ["modified a [extended]"]),
        Case(
            "modified, then moved",
            [extended, event(.moved, "b", from: "a", size: 2, before: .sample(file: 1, size: 2))],
            ["moved b from a [extended]"]),
        Case(
            "moved, then modified", [moved, event(.modified, "b", size: 2, before: old, changed: ["extended"])],
            ["moved b from a [extended]"]),
        Case(
            "moved, then another in the old place", [moved, event(.created, "a", file: 2)],
            ["modified a replaced [overwritten]", "created b"]),
        Case(
            "two that change places",
            [
                event(.moved, "t", from: "a", file: 1, before: .sample(file: 1, size: 1)),
                event(.moved, "a", from: "b", file: 2, before: .sample(file: 2, size: 1)),
                event(.moved, "b", from: "t", file: 1, before: .sample(file: 1, size: 1)),
            ], ["modified a replaced [overwritten]", "modified b replaced [overwritten]"]),
    ]

    static let orders = [
        Case(
            "the order is that of first becoming dirty",
            [event(.created, "b"), event(.created, "a"), event(.modified, "b", before: old), event(.created, "c")],
            ["created b", "created a", "created c"]),
        Case("arriving, then created", [event(.arriving, "a"), event(.created, "a")], ["created a"]),
        Case("arriving, and gone", [event(.arriving, "a")], ["arriving a"]),
        Case(
            "opened twice", [event(.opened, "a"), event(.closed, "a"), event(.opened, "a")], ["opened a", "closed a"]),
        Case(
            "a listing among paths",
            [
                event(.created, "a"), event(.scanStarted, "/in"), event(.created, "b"), event(.scanEnded, "/in"),
                event(.created, "c"), event(.modified, "a", before: old),
            ], ["created a", "scan_begin /in", "created b", "scan_end /in", "created c"]),
        Case(
            "listings that nobody saw",
            [
                event(.scanStarted, "/in"), event(.created, "a"), event(.scanEnded, "/in"), event(.scanStarted, "/in"),
                event(.created, "b"), event(.scanEnded, "/in"),
            ], ["created a", "scan_begin /in", "created b", "scan_end /in"]),
        Case(
            "a root that comes and goes", [event(.rootGone, "/in"), event(.rootBack, "/in"), event(.rootGone, "/in")],
            ["root_back /in", "root_gone /in"]),
    ]

    @Test(arguments: contents + moves + orders)
    func merged(_ example: Case) {
        var rows = ReaderRows(mask: [.differences, .lifecycle, .raw, .arriving])
        for event in example.events { rows.add(event) }
        #expect(rows.takeAll().map(Self.text) == example.expected)
        #expect(rows.isEmpty)
        #expect(rows.takeFirst() == nil)
    }

    @Test func `a replacement is reported as created to a consumer that does not ask for modified`() {
        var rows = ReaderRows(mask: [.created, .deleted])
        rows.add(Self.event(.deleted, "a", before: Self.old))
        rows.add(Self.event(.created, "a", file: 2))
        #expect(rows.takeAll().map(\.kind) == [.created])
    }

    @Test func `without attributes, a file that was moved, changed in mode and moved back is not reported`() {
        var rows = ReaderRows(mask: [.created, .modified, .deleted, .moved])
        rows.add(Self.set(Self.moved, mode: 0o600))
        rows.add(Self.set(Self.event(.moved, "a", from: "b", before: Self.old), mode: 0o600))
        #expect(rows.takeAll().isEmpty)
    }

    @Test func `a consumer that does not ask for deletions receives none for the old name of a merged rename`() {
        // Another file now has the new name, so the rename is no longer reported.
        let events = [Self.moved, Self.event(.modified, "b", file: 2, replaced: true, changed: ["overwritten"])]
        for isAsked in [true, false] {
            var rows = ReaderRows(mask: isAsked ? .differences : [.created, .moved])
            for event in events { rows.add(event) }
            #expect(rows.takeAll().map(\.kind) == (isAsked ? [.deleted, .created] : [.created]))
            #expect(rows.isEmpty)
        }
    }

    @Test func `a file that was written is modified even if its size and time were reset`() {
        var rows = ReaderRows(mask: .differences)
        var back = Self.event(.attributes, "a", size: 1, before: .sample(file: 1, size: 2), changed: ["mtime"])
        back.snapshot.changed.seconds += 1
        rows.add(Self.extended)
        rows.add(back)
        #expect(rows.takeAll().map(Self.text) == ["modified a [overwritten]"])
    }

    @Test func `a path whose event was consumed is known by that event`() {
        var rows = ReaderRows(mask: .differences)
        rows.add(Self.moved)
        rows.add(Self.event(.created, "a", file: 2))
        #expect(rows.takeFirst().map(Self.text) == "modified a replaced [overwritten]")
        // The consumer now knows the new `a`; its deletion is not a move to `b`.
        rows.add(Self.event(.deleted, "a", file: 2))
        #expect(rows.takeAll().map(Self.text) == ["created b", "deleted a"])
    }

    @Test func `memory is bounded by the number of paths`() {
        var rows = ReaderRows(mask: [.differences, .lifecycle])
        for round in 0..<10_000 {
            let path = PathBytes("/in/\(round % 10)")
            rows.add(Self.event(.created, path, file: UInt64(round)))
            rows.add(Self.event(.scanStarted, "/in"))
            rows.add(Self.event(.scanEnded, "/in"))
            if round % 3 == 0 { rows.add(Self.event(.deleted, path)) }
            guard rows.count <= 12, rows.orderCount <= 200 else {
                Issue.record("\(rows.count) events in \(rows.orderCount) places")
                return
            }
        }
    }

    // MARK: Mirror

    /// A tree of a few names, the changes to it, and the events that report them.
    private struct Model {
        var files: [PathBytes: Snapshot] = [:]
        var next: UInt64 = 1
        let names: [PathBytes] = ["a", "b", "c", "d", "e"]

        mutating func step(_ random: inout SeededGenerator) -> FileEvent? {
            let path = names[Int.random(in: 0..<names.count, using: &random)]
            let there = files[path]
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                next += 1
                files[path] = .sample(file: next, size: next)
                return ReaderRowsTests.event(
                    there == nil ? .created : .modified, path, file: next, size: next, before: there,
                    replaced: there != nil, changed: there == nil ? [] : ["extended"])
            case 2:
                guard var file = there else { return nil }
                file.size += 1
                files[path] = file
                return event(.modified, path, file, before: there, changed: ["extended"])
            case 3:
                guard var file = there else { return nil }
                file.mode = file.mode == 0o600 ? 0o644 : 0o600
                files[path] = file
                return event(.attributes, path, file, before: there, changed: ["mode"])
            case 4:
                guard let file = there else { return nil }
                files[path] = nil
                return event(.deleted, path, file)
            default:
                let target = names[Int.random(in: 0..<names.count, using: &random)]
                guard var file = there, target != path else { return nil }
                if Int.random(in: 0..<4, using: &random) == 0 { file.mode = file.mode == 0o600 ? 0o644 : 0o600 }
                let isReplaced = files[target] != nil
                files[path] = nil
                files[target] = file
                var move = event(.moved, target, file, before: there)
                move.from = path
                move.isReplaced = isReplaced
                return move
            }
        }

        private func event(
            _ kind: EventKind, _ path: PathBytes, _ file: Snapshot, before: Snapshot? = nil, changed: [String] = []
        ) -> FileEvent {
            FileEvent(
                kind: kind, path: path, root: "/in", snapshot: file, before: before, changed: changed,
                time: Timestamp(seconds: 1, nanoseconds: 0))
        }
    }

    /// The files that a consumer knows from events alone; an event that contradicts them is an error.
    private struct Mirror {
        var files: [PathBytes: Snapshot] = [:]
        var errors: [String] = []

        mutating func take(_ event: FileEvent) {
            let there = files[event.path]
            let line = ReaderRowsTests.text(event)
            switch event.kind {
            case .created:
                if there != nil { errors.append("\(line): it is there") }
                files[event.path] = event.snapshot
            case .modified, .attributes:
                if there == nil { errors.append("\(line): it is not there") }
                if let there, (there.identity != event.snapshot.identity) != event.isReplaced {
                    errors.append("\(line): replaced or not")
                }
                files[event.path] = event.snapshot
            case .deleted:
                if there == nil { errors.append("\(line): it is not there") }
                files[event.path] = nil
            case .moved:
                guard let from = event.from, let file = files[from] else {
                    errors.append("\(line): what was moved is not there")
                    return
                }
                if file.identity != event.snapshot.identity { errors.append("\(line): another file") }
                if (there != nil) != event.isReplaced { errors.append("\(line): replaced or not") }
                files[from] = nil
                files[event.path] = event.snapshot
            default: break
            }
        }
    }

    @Test(arguments: 1...300)
    func `matching events rarely and matching each at once lead to the same mirror`(_ seed: Int) {
        let isMergedAgain = seed.isMultiple(of: 2)
        var random = SeededGenerator(seed: UInt64(seed))
        var model = Model()
        var prompt = Mirror()
        var slow = Mirror()
        var rows = ReaderRows(mask: .differences)
        for step in 0..<600 {
            if let event = model.step(&random) {
                prompt.take(event)
                rows.add(event)
            }
            switch Int.random(in: 0..<12, using: &random) {
            case 0:
                for event in rows.takeAll() { slow.take(event) }
                if slow.files != model.files { Issue.record("seed \(seed), step \(step)") }
            case 1...3: if let event = rows.takeFirst() { slow.take(event) }
            // Merged events are merged again, as happens to jobs that wait for a long time.
            case 4 where isMergedAgain: for event in rows.takeAll() { rows.add(event) }
            default: break
            }
            if rows.count > model.names.count { Issue.record("seed \(seed), step \(step)") }
        }
        for event in rows.takeAll() { slow.take(event) }
        #expect(prompt.files == model.files && prompt.errors == [])
        #expect(slow.files == model.files, "seed \(seed)")
        // If a file was replaced twice before it was reported, the merged event lacks the metadata of the first.
        let errors = slow.errors.filter { !isMergedAgain || !$0.hasSuffix("replaced or not") }
        #expect(errors == [], "seed \(seed)")
    }
}
