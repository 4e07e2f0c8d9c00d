import Configuration
import FileEvents
import Globbing
import JSON
import Rules
import System
import Testing
import TestKit

struct RuleDecodingTests {
    private func pattern(_ text: String) throws -> String {
        let rule = try rule("rules: [{ path: '\(text)', action: log }]")
        return String(decoding: try #require(rule.globs.first).pattern, as: UTF8.self)
    }

    @Test func `all keys are read`() throws {
        let rule = try rule(
            """
            # A comment
            rules:
              - name: photos
                description: Every picture of the phone.
                enabled: true
                path: [/srv/in/**/*.jpg, '/srv/in/**/*.{png,webp}']
                exclude: [drafts, "**/.cache/**"]
                ignore_defaults: false
                types: [file, symlink]
                hidden: true
                depth: 3
                events: [created, IN_MOVED_FROM]
                settle: 1m30s
                writers: ignore
                timeout: 1h
                concurrency: 4
                action:
                  use: copy
                  with: { to: "/srv/out/${name}", deep: { list: [1, 2.5, true, null, text] } }
            """)
        #expect(rule.name == "photos")
        #expect(rule.location == SourcePosition(file: "rules.yaml", line: 3, column: 5))
        #expect(rule.summary == "Every picture of the phone.")
        #expect(rule.globs.map(\.description) == ["/srv/in/**/*.jpg", "/srv/in/**/*.{png,webp}"])
        #expect(rule.globs.allSatisfy { $0.options.matchesHidden && !$0.options.isCaseSensitive })
        #expect(rule.filter.exclude.globs.map(\.description) == ["drafts", "**/.cache/**"])
        #expect(rule.filter.exclude.covers(Array("a/.cache/.b/c".utf8)))
        #expect(rule.filter.ignores.isEmpty)
        #expect(rule.types == [.file, .symlink])
        #expect(rule.filter.depth == 3)
        #expect(rule.events == [.created, .deleted, .moved])
        #expect(rule.settle == SettlePolicy(quiet: .seconds(90), writers: .ignore))
        #expect(rule.timeout == .seconds(3_600))
        #expect(rule.concurrency == 4)
        let action = try #require(rule.actions.first)
        #expect(action.location.line == 18)
        guard case .use(let reference, let parameters) = action.work else {
            Issue.record("not a handler")
            return
        }
        #expect(reference.name == "copy")
        let deep = ParameterTemplate([
            "list": [1, 2.5, true, .null, "text"]
        ])
        guard case .object(let members) = parameters else {
            Issue.record("not an object")
            return
        }
        #expect(members["deep"] == deep)
        #expect(members["to"] == .text(Template(parts: [.literal(Array("/srv/out/".utf8)), .placeholder(.name)])))
    }

    @Test func `a rule needs a path and an action, and all other keys have defaults`() throws {
        let rule = try rule("rules:\n  - path: /srv/in/*\n    action: log\n")
        #expect(rule.name == "/srv/in/*")
        #expect(rule.summary == nil)
        #expect(rule.filter.exclude.isEmpty)
        #expect(rule.filter.ignores == DefaultIgnores.globs)
        #expect(rule.types == [.file])
        #expect(rule.filter.depth == nil)
        #expect(rule.events == [.created, .modified])
        #expect(rule.settle == SettlePolicy())
        #expect(rule.timeout == .seconds(600))
        #expect(rule.concurrency == 1)
        #expect(rule.retry == RetryPolicy())
        #expect(rule.whileBusy == .coalesce && rule.cooldown == .zero && rule.catchUp)
        #expect(rule.onFailure.isEmpty && rule.formerly.isEmpty)
        #expect(rule.globs.first?.options == Glob.Options())
    }

    @Test func `the keys for failures and busy paths are read`() throws {
        let loaded = load(
            """
            defaults:
              retry: { attempts: 9 }
              while_busy: restart
              cooldown: 10s
              on_failure: { use: move, with: { to: /srv/aside/ } }
              catch_up: false
            rules:
              - name: given
                path: /a/*
                formerly: [before, long ago]
                retry: { delay: 20m, on: temporary }
                while_busy: coalesce
                cooldown: 0
                catch_up: true
                action: log
                on_failure:
                  - log
                  - shell: mail ada
              - { name: shared, path: /b/*, formerly: 12, action: log }
              - { name: once, path: /c/*, retry: false, action: log }
              - { name: usual, path: /d/*, retry: true, action: log }
              - { name: short, path: /e/*, retry: { max_delay: 2s }, action: log }
            """)
        #expect(loaded.diagnostics.isEmpty)
        let rules = loaded.ruleset.rules
        let given = try #require(rules.first)
        var policy = RetryPolicy(delay: .seconds(1_200), maximumDelay: .seconds(1_200))
        policy.on = .temporary
        #expect(given.retry == policy)
        #expect(given.whileBusy == .coalesce && given.cooldown == .zero && given.catchUp)
        #expect(given.formerly == ["before", "long ago"])
        #expect(given.onFailure.map(\.name) == ["log", "shell"])
        let shared = try #require(rules.dropFirst().first)
        #expect(shared.retry == RetryPolicy(attempts: 9))
        #expect(shared.whileBusy == .restart && shared.cooldown == .seconds(10) && !shared.catchUp)
        #expect(shared.onFailure.map(\.name) == ["move"])
        #expect(shared.onFailure.first?.events == [.created, .moved, .content, .anyAttribute])
        #expect(shared.formerly == ["12"])
        #expect(rules[2].retry == RetryPolicy(attempts: 1))
        #expect(rules[3].retry == RetryPolicy())
        #expect(rules[4].retry == RetryPolicy(delay: .seconds(2), maximumDelay: .seconds(2)))
    }

    @Test func `former names are compared over all files`() {
        withTempTree { tree in
            TestFile.write(tree.path("a.yaml"), "rules:\n  - { name: a, formerly: [b, x], path: /a/*, action: log }\n")
            TestFile.write(tree.path("b.yaml"), "rules:\n  - { name: b, formerly: x, path: /b/*, action: log }\n")
            let loaded = makeLoader(in: tree.root).load(["."])
            let messages = loaded.diagnostics.map { "\($0.location.file) \($0.message)" }
            #expect(
                messages == [
                    "./a.yaml the name 'b' is used by the rule at ./b.yaml:2:5",
                    "./b.yaml the rule at ./a.yaml:2:30 already takes over the name 'x'",
                ])
        }
    }

    @Test func `plain scalars are strings where a string is expected`() throws {
        let rule = try rule(
            "rules: [{ name: 2026, description: yes, path: /srv/in/*, action: { exec: [sleep, 5, null, no] } }]")
        #expect(rule.name == "2026")
        #expect(rule.summary == "yes")
        guard case .exec(let arguments) = rule.actions.first?.work else {
            Issue.record("not exec")
            return
        }
        #expect(arguments.dropFirst().map(\.literal) == ["5", "null", "no"].map { Array($0.utf8) })
    }

    @Test func `any means every type`() throws {
        #expect(try rule("rules: [{ path: /in/*, types: [any], action: log }]").types == Set(FileType.allCases))
    }

    @Test func `a settle time of 0 reports files at once`() throws {
        #expect(try rule("rules: [{ path: /in/*, settle: 0, action: log }]").settle.quiet == .zero)
    }

    // MARK: - Paths

    @Test func `a relative path is relative to the directory of the rules file`() {
        withTempTree { tree in
            TestFile.write(tree.path("a[1]/deep/x.yaml"), "rules: [{ path: 'in/*.{a,b}', action: log }]")
            TestFile.write(tree.path("a[1]/deep/y.yaml"), "rules: [{ path: ../../in/./x/../*, action: log }]")
            let loaded = makeLoader(in: tree.root).load(["a[1]/deep"])
            #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
            let roots = loaded.ruleset.rules.compactMap(\.globs.first).map { PathBytes($0.root) }
            #expect(roots == [tree.path("a[1]/deep/in"), tree.path("in")])
            #expect(loaded.ruleset.takes(tree.path("a[1]/deep/in/x.b")))
        }
    }

    @Test func `the home directory and variables are inserted literally`() throws {
        #expect(try pattern("~/in/*.jpg") == "/home/ada/in/*.jpg")
        #expect(try pattern("${env:INBOX}/*.jpg") == "/srv/in/*.jpg")
        #expect(try pattern("${env:ODD}/*.jpg") == #"/srv/a\*b/*.jpg"#)
        #expect(try pattern("/x/${env:EMPTY}y") == "/x/y")
        #expect(try pattern("/x/$${a}/$$/$5") == #"/x/$\{a}/$$/$5"#)
        #expect(try pattern("/a/../../b/*") == "/b/*")
        #expect(try pattern("{/a,/b}/*") == "{/a,/b}/*")
        #expect(try pattern("~/../*") == "/home/*")
    }

    @Test func `a rules file in a directory that is not UTF-8 keeps its bytes`() throws {
        try withTempTree { tree in
            let directory = tree.root.appending([0x63, 0xE9])
            TestFile.write(directory.appending("x.yaml"), "rules: [{ path: in/*, action: { exec: [./run] } }]")
            TestFile.write(directory.appending("run"), Array("#!/bin/sh\n".utf8), mode: 0o755)
            let loaded = makeLoader(in: directory).load(["x.yaml"])
            let rule = try #require(loaded.ruleset.rules.first)
            #expect(PathBytes(rule.globs[0].root) == directory.appending("in"))
            guard case .exec(let arguments) = rule.actions[0].work else {
                Issue.record("not exec")
                return
            }
            #expect(arguments[0].literal == directory.appending("run").bytes)
        }
    }

    // MARK: - Defaults and enabled

    @Test func `defaults apply where a rule sets no value`() throws {
        let loaded = load(
            """
            defaults:
              settle: 10s
              exclude: [a]
              hidden: true
              types: [any]
              events: [deleted]
              timeout: 1m
              writers: ignore
              depth: 1
              concurrency: 2
              ignore_defaults: false
            rules:
              - { name: one, path: /in/*, action: log }
              - { name: two, path: /in/*, action: log, settle: 1s, exclude: [], hidden: false, types: [file],
                  events: [created], timeout: 2m, writers: wait, depth: 2, concurrency: 3, ignore_defaults: true }
            """)
        #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
        let one = try #require(loaded.ruleset.rule(named: "one"))
        #expect(one.settle == SettlePolicy(quiet: .seconds(10), writers: .ignore))
        #expect(one.filter.exclude.globs.map(\.description) == ["a"])
        #expect(one.globs[0].options.matchesHidden)
        #expect(one.types == Set(FileType.allCases))
        #expect(one.events == .deleted)
        #expect(one.timeout == .seconds(60))
        #expect(one.filter.depth == 1)
        #expect(one.concurrency == 2)
        #expect(one.filter.ignores.isEmpty)
        let two = try #require(loaded.ruleset.rule(named: "two"))
        #expect(two.settle == SettlePolicy(quiet: .seconds(1), writers: .wait))
        #expect(two.filter.exclude.isEmpty)
        #expect(!two.globs[0].options.matchesHidden)
        #expect(two.types == [.file])
        #expect(two.events == .created)
        #expect(two.timeout == .seconds(120))
        #expect(two.filter.depth == 2)
        #expect(two.concurrency == 3)
        #expect(!two.filter.ignores.isEmpty)
    }

    @Test func `a disabled rule is listed separately`() {
        let loaded = load(
            """
            defaults: { enabled: false }
            rules:
              - { name: one, path: /in/*, action: log }
              - { name: two, path: /in/*, action: log, enabled: true }
            """)
        #expect(loaded.ruleset.rules.map(\.name) == ["two"])
        #expect(loaded.disabledRules.map(\.name) == ["one"])
        #expect(loaded.ruleset.listed.map(\.name) == ["one", "two"])
        #expect(loaded.ruleset.isDisabled("one") && !loaded.ruleset.isDisabled("two"))
        #expect(!loaded.ruleset.isDisabled("three"))
        #expect(!loaded.hasErrors)
    }

    @Test func `an anchor can be used by several rules`() throws {
        let loaded = load(
            """
            rules:
              - &base
                name: one
                path: &in ['/in/*.jpg']
                settle: &pause 9s
                action: &do { use: copy, with: &to { to: /out/ } }
              - { <<: *base, name: two, timeout: *pause }
              - { name: three, path: *in, action: [*do, { use: files, with: *to }] }
            """)
        #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
        #expect(loaded.ruleset.rules.map(\.name) == ["one", "two", "three"])
        #expect(loaded.ruleset.rules[1].settle.quiet == .seconds(9))
        #expect(loaded.ruleset.rules[1].timeout == .seconds(9))
        #expect(loaded.ruleset.rules[2].actions.map(\.name) == ["copy", "files"])
    }

    @Test func `the same error behind many aliases is reported once`() {
        let text =
            "rules:\n  - { name: a, path: &p /in/{a, action: log }\n"
            + (0..<50).map { "  - { name: r\($0), path: *p, action: log }\n" }.joined()
        let loaded = load(text.replacing("/in/{a", with: "'/in/{a'"))
        #expect(loaded.diagnostics.count == 1)
        #expect(loaded.ruleset.rules.isEmpty)
    }

    @Test func `only a rule with an error is excluded`() {
        let loaded = load(
            """
            rules:
              - { name: one, path: /in/*, action: log, settle: 5 }
              - { name: two, path: /in/*, action: log, settle: 5s, settle: 6s }
              - { name: three, path: /in/*, action: log }
            """)
        #expect(loaded.ruleset.rules.map(\.name) == ["three"])
        #expect(loaded.hasErrors)
    }
}
