import Configuration
import FileEvents
import Globbing
import Rules
import Testing

/// Decoding of the keys for watching, following and batches.
struct WatchingDecodingTests {
    @Test func `the keys for watching are read`() throws {
        let rule = try rule(
            """
            rules:
              - path: /srv/in/*
                outputs: ["thumbs/**", index.html]
                types: [directory]
                tree: true
                stable: { every: 500ms, rounds: 5 }
                locks: wait
                when_held: 5m
                max_wait: 10m
                existing: process
                missing: create
                same_content: ignore
                own_writes: report
                batch: { files: 50, wait: 5s, max_wait: 1m }
                backend: poll
                poll: 100ms
                events: [extended, attributes.mode, arriving, scan_begin, opened, IN_UNMOUNT]
                action: log
            """)
        #expect(rule.filter.outputs.covers(Array("thumbs/a/b".utf8)))
        #expect(rule.filter.root(matching: Array("/srv/in/index.html".utf8)) == nil)
        #expect(rule.filter.isTree)
        #expect(
            rule.settle
                == SettlePolicy(
                    stable: .init(every: .milliseconds(500), rounds: 5), locks: .wait, whenHeld: .seconds(300),
                    maximumWait: .seconds(600), isTree: true))
        #expect(rule.existing == .process)
        #expect(rule.missing == .create)
        #expect(rule.sameContent == .ignore)
        #expect(rule.ownWrites == .report)
        #expect(rule.batch == Rule.Batch(files: 50, wait: .seconds(5), maximumWait: .seconds(60)))
        #expect(rule.backend == .poll)
        #expect(rule.pollInterval == .milliseconds(100))
        #expect(rule.events == [.extended, .mode, .arriving, .scanStarted, .opened, .unmounted])
    }

    @Test func `the keys for watching have defaults`() throws {
        let rule = try rule("rules:\n  - path: /srv/in/*\n    action: log\n")
        #expect(rule.filter.outputs.isEmpty)
        #expect(!rule.filter.isTree)
        #expect(rule.existing == nil)
        #expect(rule.missing == .wait)
        #expect(rule.sameContent == .report)
        #expect(rule.ownWrites == .ignore)
        #expect(rule.tail == nil)
        #expect(rule.batch == nil)
        #expect(rule.backend == .auto)
        #expect(rule.pollInterval == .seconds(10))
    }

    @Test func `the defaults of a file set the keys for watching, and a rule overrides them`() throws {
        let loaded = load(
            """
            defaults:
              stable: { rounds: 4 }
              outputs: [out]
              tail: true
              batch: true
              max_wait: 1h
              existing: process
              backend: poll
              poll: 1m
              own_writes: report
              same_content: ignore
              missing: fail
              locks: wait
              when_held: 1m
            rules:
              - { path: /etc/*, action: log }
              - { path: /usr/*, tail: false, batch: false, outputs: [], existing: ignore, action: log }
            """)
        #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
        let first = try #require(loaded.ruleset.rules.first)
        let second = try #require(loaded.ruleset.rules.last)
        #expect(first.settle.stable == .init(every: .seconds(1), rounds: 4))
        #expect(first.settle.maximumWait == .seconds(3_600))
        #expect(first.settle.locks == .wait)
        #expect(first.settle.whenHeld == .seconds(60))
        #expect(first.tail == Rule.Tail())
        #expect(first.batch == Rule.Batch())
        #expect(first.existing == .process)
        #expect(first.missing == .fail)
        #expect(first.backend == .poll)
        #expect(first.pollInterval == .seconds(60))
        #expect(second.tail == nil)
        #expect(second.batch == nil)
        #expect(second.filter.outputs.isEmpty)
        #expect(second.existing == .ignore)
        #expect(second.ownWrites == .report)
        #expect(second.sameContent == .ignore)
    }

    struct TailCase: Sendable, CustomTestStringConvertible {
        let keys: String
        let writers: SettlePolicy.Gate
        let longest: Duration
        var testDescription: String { keys }
    }

    static let tails = [
        TailCase(keys: "tail: true", writers: .ignore, longest: .seconds(2)),
        TailCase(keys: "tail: true, settle: 10s", writers: .ignore, longest: .seconds(10)),
        TailCase(keys: "tail: true, settle: 0", writers: .ignore, longest: .seconds(1)),
        TailCase(keys: "tail: true, backend: poll", writers: .ignore, longest: .seconds(5)),
        TailCase(keys: "tail: true, writers: wait, max_wait: 1m", writers: .wait, longest: .seconds(60)),
    ]

    @Test(arguments: tails)
    func `a followed file is reported while it is open`(example: TailCase) throws {
        let rule = try rule("rules: [{ path: /in/*.log, \(example.keys), action: log }]")
        #expect(rule.settle.writers == example.writers)
        #expect(rule.settle.maximumWait == example.longest)
    }

    @Test func `the size of a delivery is read`() throws {
        func bound(_ text: String) throws -> Int? {
            try rule("rules: [{ path: /in/*, tail: { max_bytes: \(text) }, action: log }]").tail?.maximumBytes
        }
        #expect(try bound("64 KB") == 64_000)
        #expect(try bound("64KiB") == 65_536)
        #expect(try bound("4096") == 4_096)
        #expect(try bound("1.5 MB") == 1_500_000)
    }

    struct BatchCase: Sendable, CustomTestStringConvertible {
        let text: String
        let batch: Rule.Batch
        var testDescription: String { text }
    }

    static let batches = [
        BatchCase(text: "true", batch: Rule.Batch()),
        BatchCase(text: "{ files: 5 }", batch: Rule.Batch(files: 5)),
        BatchCase(text: "{ wait: 0 }", batch: Rule.Batch(wait: .zero)),
        BatchCase(text: "{ wait: 5m }", batch: Rule.Batch(wait: .seconds(300), maximumWait: .seconds(300))),
        BatchCase(
            text: "{ max_wait: 100ms }", batch: Rule.Batch(wait: .milliseconds(100), maximumWait: .milliseconds(100))),
    ]

    @Test(arguments: batches)
    func `a batch waits no longer than its maximum`(example: BatchCase) throws {
        #expect(try rule("rules: [{ path: /in/*, batch: \(example.text), action: log }]").batch == example.batch)
    }
}
