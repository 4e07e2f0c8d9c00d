import Foundation
import Glibc
import System
import Testing
import TestKit

/// `alight run --dry-run`, as the built program.
struct DryRunTests {
    /// Rules with everything that an action, a plugin or a rule could leave behind.
    private static let rules = """
        rules:
          - name: program
            path: in/*.txt
            existing: process
            settle: 100ms
            action: { exec: [touch, "MADE-${name}"] }
            directory: .
          - name: shell
            path: in/*.txt
            existing: process
            settle: 100ms
            directory: .
            action: { shell: 'touch MADE; rm "$ALIGHT_PATH"' }
          - name: plugin
            path: in/*.txt
            existing: process
            settle: 100ms
            action: { use: raw, with: { file: "${name}" } }
          - name: built-in
            path: in/*.txt
            existing: process
            settle: 100ms
            action:
              - { use: copy, with: { to: "copies/${name}" } }
              - { exec: [gzip, "${steps.0.outputs.0}"] }
              - { use: move, with: { to: "moved/${name}" } }
          - name: asking
            path: in/*.txt
            existing: process
            settle: 100ms
            directory: .
            ready: { command: [touch, "MADE-${stem}"] }
            action: log
          - name: listing
            path: in/*
            existing: process
            settle: 100ms
            batch: { files: 10, wait: 100ms }
            action: { use: archive, with: { to: all.zip } }
          - name: missing
            path: new/*
            missing: create
            action: log
        """

    private static func make(_ root: PathBytes, rules: String = Self.rules) {
        TestFile.write(root.appending("rules.yaml"), rules)
        TestFile.write(root.appending("in/a.txt"), "hello")
        TestFile.write(root.appending("in/b.txt"), "you")
        _ = TestFile.setAttribute(root.appending("in/a.txt"), "user.note", Array("mine".utf8))
        _ = "a.txt".withCString { target in root.appending("in/link").withCString { symlink(target, $0) } }
        let plugin = "#!/bin/sh\ntouch '\(root)/MADE'\necho '{\"name\":\"raw\",\"version\":\"1\",\"protocol\":[1]}'\n"
        TestFile.write(root.appending("plugins/raw"), Array(plugin.utf8), mode: 0o755)
    }

    /// Returns the names, types, modes, owners, times, sizes and contents of all files.
    ///
    /// A change of an extended attribute also changes the time.
    private static func tree(_ root: PathBytes) -> String {
        withTempTree { other in
            // As root, SQLite sets the owner of a log to the owner that it already has.
            let line = """
                find . -name '*-wal' -printf '%p %y %m %U %G %n %i %s %T@ %l\\n' -o \
                -printf '%p %y %m %U %G %n %i %s %T@ %C@ %l\\n' | sort; find . -type f | sort | xargs -d '\\n' sha1sum
                """
            let program = RunningProgram("/bin/sh", ["-c", line], in: root, output: other.path("find"))
            #expect(program.wait() == 0, "\(program.error)")
            return program.output
        }
    }

    /// Runs the program in the directory.
    ///
    /// Its output goes to the files `output`.out and `output`.err.
    private static func run(
        _ root: PathBytes, _ arguments: [String], output: PathBytes
    ) -> RunningProgram {
        RunningProgram(
            Places.alight, ["run", "rules.yaml"] + arguments, in: root,
            environment: ["TZ": "UTC", "TMPDIR": root.description, "XDG_RUNTIME_DIR": root.description], output: output)
    }

    /// Returns the running child processes of the program.
    private static func children(of pid: pid_t) -> String {
        TestFile.names(in: PathBytes("/proc/\(pid)/task")).map { thread in
            let path = PathBytes("/proc/\(pid)/task").appending(thread).appending("children")
            return TestFile.text(path) ?? ""
        }.joined()
    }

    /// Returns the lines of the output, with `~` for the directory.
    private static func lines(_ program: RunningProgram, _ root: PathBytes) -> [String] {
        program.output.replacing("\(root)", with: "~").split(separator: "\n").map(String.init)
    }

    @Test func `a dry run reports everything that would run, and changes nothing`() {
        withTempTree { tree in
            withTempTree { output in
                let root = tree.root
                Self.make(root)
                let before = Self.tree(root)
                let program = Self.run(root, ["--once", "--dry-run"], output: output.path("run"))
                let status = program.wait()
                #expect(status == 0)
                #expect(Self.tree(root) == before)
                let lines = Self.lines(program, root)
                for name in ["a", "b"] {
                    let event = "created ~/in/\(name).txt"
                    for line in [
                        "program: \(event): /usr/bin/touch MADE-\(name).txt",
                        "shell: \(event): /bin/sh -c 'touch MADE; rm \"$ALIGHT_PATH\"'",
                        "plugin: \(event): plugin 'raw' {\"file\":\"\(name).txt\"}: ~/plugins/raw run",
                        "built-in: \(event): copy {\"on_conflict\":\"rename\",\"to\":\"~/copies/\(name).txt\"}",
                        "built-in: \(event): /usr/bin/gzip ~/copies/\(name).txt",
                        "built-in: \(event): move {\"on_conflict\":\"rename\",\"to\":\"~/moved/\(name).txt\"}",
                        "asking: \(event): log {\"level\":\"info\"}",
                    ] {
                        #expect(lines.count { $0 == "would run: \(line)" } == 1, "\(line)\n\(program.output)")
                    }
                    #expect(lines.contains("would ask: asking: \(event): /usr/bin/touch MADE-\(name)"))
                }
                let error = program.error.replacing("\(root)", with: "~")
                #expect(error.contains("dry run: nothing is run, written or sent"))
                #expect(error.contains("would create the directory '~/new'"))
                #expect(error.contains("'~/plugins/raw' was not run to describe itself"))
            }
        }
    }

    @Test(arguments: ["clean", "killed"])
    func `an existing journal is read and not changed`(_ end: String) {
        withTempTree { tree in
            withTempTree { output in
                let root = tree.root
                Self.make(root, rules: Self.plainRules)
                let first = Self.run(root, end == "clean" ? ["--once"] : [], output: output.path("first"))
                if end == "killed" {
                    let isRetained = JournalCommand.awaitSucceeded(2, in: root.appending(".state/alight/journal.db"))
                    #expect(isRetained)
                    first.signal(SIGKILL)
                }
                _ = first.wait()
                TestFile.write(root.appending("in/a.txt"), "hello again")
                let before = Self.tree(root)
                // The next run does not know what would have run.
                for number in 0..<2 {
                    let program = Self.run(root, ["--once", "--dry-run"], output: output.path("run-\(number)"))
                    let status = program.wait()
                    #expect(status == 0)
                    #expect(
                        Self.lines(program, root) == ["would run: plain: modified ~/in/a.txt: log {\"level\":\"info\"}"]
                    )
                }
                #expect(Self.tree(root) == before)
            }
        }
    }

    private static let plainRules = """
        rules:
          - { name: plain, path: "in/*.txt", existing: process, settle: 100ms, action: log }
        """

    @Test func `a dry run beside a running instance takes no work from it`() {
        withTempTree { tree in
            withTempTree { output in
                let root = tree.root
                Self.make(root, rules: Self.plainRules)
                let alight = Self.run(root, [], output: output.path("alight"))
                let isDone = Deadline.wait { alight.lines.count == 2 }
                #expect(isDone)
                let program = Self.run(root, ["--once", "--dry-run"], output: output.path("run"))
                let status = program.wait()
                #expect(status == 4)
                #expect(program.output.isEmpty)
                #expect(program.error.contains("another instance uses this journal (process \(alight.pid))"))
                TestFile.write(root.appending("in/c.txt"), "more")
                let goesOn = Deadline.wait { alight.lines.count == 3 }
                #expect(goesOn)
                alight.signal(SIGTERM)
                let end = alight.wait()
                #expect(end == 0)
            }
        }
    }

    @Test func `a dry run watches until it is stopped, and starts nothing`() {
        withTempTree { tree in
            withTempTree { output in
                let root = tree.root
                let rules = """
                    rules:
                      - { name: wait, path: "in/*.txt", settle: 100ms, action: { exec: [sleep, "600", "${name}"] } }
                    """
                Self.make(root, rules: rules)
                let program = Self.run(root, ["--dry-run"], output: output.path("run"))
                #expect(program.waitUntilReady())
                TestFile.write(root.appending("in/c.txt"), "one")
                let isReported = Deadline.wait { program.lines.count == 2 }
                #expect(isReported)
                TestFile.write(root.appending("in/c.txt"), "another")
                let isReportedAgain = Deadline.wait { program.lines.count == 4 }
                #expect(isReportedAgain)
                #expect(Self.children(of: program.pid).isEmpty)
                program.signal(SIGTERM)
                let status = program.wait()
                #expect(status == 0)
                let call = "/usr/bin/sleep 600 c.txt"
                #expect(
                    Self.lines(program, root) == [
                        "would run: wait: created ~/in/c.txt: \(call)", "    standard input: none",
                        "would run: wait: modified ~/in/c.txt: \(call)", "    standard input: none",
                    ])
                #expect(!TestFile.exists(root.appending(".state")))
            }
        }
    }

    @Test func `an action that would not run is reported with the reason`() {
        withTempTree { tree in
            withTempTree { output in
                let root = tree.root
                let rules = """
                    rules:
                      - { name: none, path: "in/b?.txt", settle: 100ms, action: { use: send } }
                      - { name: later, path: "in/a.txt", settle: 100ms, window: "\(Instance.closedHours)", action: log }
                    """
                Self.make(root, rules: rules)
                TestFile.write(root.appending("in").appending(Array("b".utf8) + [0xE9] + Array(".txt".utf8)), "odd")
                TestFile.write(
                    root.appending("plugins/send/plugin.yaml"), "name: send\nversion: 1\nprotocol: [1]\nrun: ./send\n")
                TestFile.write(root.appending("plugins/send/send"), Array("#!/bin/sh\n".utf8), mode: 0o755)
                let before = Self.tree(root)
                let program = Self.run(root, ["--once", "--dry-run"], output: output.path("run"))
                let status = program.wait()
                #expect(status == 5)
                #expect(Self.tree(root) == before)
                let lines = Self.lines(program, root)
                #expect(
                    lines.contains(
                        "would fail: none: created ~/in/b\u{FFFD}.txt: cannot be run: plugin 'send' does not accept a "
                            + "name that is not UTF-8: ~/in/b\u{FFFD}.txt"),
                    "\(program.output)")
                #expect(lines.contains { $0.hasPrefix("would wait: later: created ~/in/a.txt: its window opens at ") })
                #expect(lines.count == 2)
            }
        }
    }

    @Test func `a batch is reported with its files, and as JSON with one object for each`() throws {
        try withTempTree { tree in
            try withTempTree { output in
                let root = tree.root
                let rules = """
                    rules:
                      - name: all
                        path: in/*.txt
                        settle: 100ms
                        batch: { files: 10, wait: 100ms }
                        action: { exec: [wc, -l, "${path}"] }
                    """
                Self.make(root, rules: rules)
                let people = Self.run(root, ["--once", "--dry-run"], output: output.path("people"))
                #expect(people.wait() == 0)
                let lines = Self.lines(people, root)
                #expect(lines.first?.hasPrefix("would run: all: 2 files: /usr/bin/wc -l ~/in/") == true)
                #expect(
                    lines.dropFirst().sorted() == [
                        "    created ~/in/a.txt", "    created ~/in/b.txt", "    standard input: the request",
                    ])
                let machines = Self.run(
                    root, ["--once", "--dry-run", "--log-format", "json"], output: output.path("machines"))
                #expect(machines.wait() == 0)
                let objects = try machines.lines.map { line in
                    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                }
                #expect(objects.count == 2)
                for object in objects {
                    #expect(object["outcome"] as? String == "would-run")
                    #expect(object["dry_run"] as? Bool == true)
                    #expect(object["batch"] as? Int == 2)
                    #expect((object["argv"] as? [String])?.prefix(2) == ["/usr/bin/wc", "-l"])
                    let request = object["request"] as? [String: Any]
                    #expect(request?["dry_run"] as? Bool == true)
                    #expect((request?["events"] as? [Any])?.count == 2)
                }
            }
        }
    }

    private static let statuses: [(String, Int32)] = [
        ("rules:\n  - { name: x, path: 'in/*.none', action: log }\n", 4),
        ("rules:\n  - { name: x, path: 'gone/*', missing: fail, action: log }\n", 1),
        ("rules:\n  - { name: x, path: 'in/*', action: nothing-such }\n", 3),
    ]

    @Test(arguments: statuses)
    func `the exit status is that of a run`(_ rules: String, _ expected: Int32) {
        withTempTree { tree in
            withTempTree { output in
                Self.make(tree.root, rules: rules)
                let before = Self.tree(tree.root)
                let program = Self.run(tree.root, ["--once", "--dry-run"], output: output.path("run"))
                let status = program.wait()
                #expect(status == expected, "\(program.error)")
                #expect(Self.tree(tree.root) == before)
            }
        }
    }
}
