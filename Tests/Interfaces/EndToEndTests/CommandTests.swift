import Foundation
import Glibc
import System
import Testing
import TestKit

/// The command line, as users and scripts see it.
struct CommandTests {
    private static let rules = """
        rules:
          - name: notes
            path: in/*
            settle: 100ms
            action: { use: log, with: { message: "${event} ${name}" } }
        """

    private static func run(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> (
        status: Int32?, program: RunningProgram
    ) {
        let program = RunningProgram.alight(arguments, in: tree.root)
        return (program.wait(), program)
    }

    private static func start(
        _ tree: borrowing TemporaryTree, _ arguments: [String] = ["run", "rules.yaml"],
        environment: [String: String] = [:]
    ) -> RunningProgram {
        let program = RunningProgram.alight(arguments, in: tree.root, environment: environment)
        #expect(program.waitUntilReady(), "\(program.error)")
        return program
    }

    private static let statuses: [([String], Int32)] = [
        (["frobnicate"], 2), (["run", "--jobs", "0"], 2), (["run", "--log-format", "xml"], 2),
        (["check", "none.yaml"], 3),
        (["run"], 3), (["--version"], 0), (["--help"], 0), (["run", "--help"], 0), (["check", "rules.yaml"], 0),
        (["check", "bad.yaml"], 3), (["run", "bad.yaml"], 3), (["check", "empty"], 3),
        (["run", "rules.yaml", "--once"], 4),
    ]

    @Test(arguments: statuses)
    func `errors of usage, rules and the start have different exit statuses`(_ arguments: [String], _ expected: Int32) {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), Self.rules)
            TestFile.write(tree.path("bad.yaml"), "rules:\n  - path: in/*\n    actoin: log\n")
            TestFile.makeDirectory(tree.path("empty"))
            let (status, program) = Self.run(tree, arguments)
            #expect(status == expected, "\(program.output)\(program.error)")
            // Errors go to standard error, results to standard output.
            #expect(program.output.isEmpty == (expected != 0), "\(program.output)")
            #expect(program.error.isEmpty == (expected == 0))
        }
    }

    @Test func `an error is shown with its location, its line and a remedy`() {
        withTempTree { tree in
            TestFile.write(tree.path("bad.yaml"), "rules:\n  - path: in/*\n    actoin: log\n")
            let (_, program) = Self.run(tree, ["check", "bad.yaml"])
            #expect(program.error.contains("bad.yaml:3:5: error: unknown key 'actoin'"))
            #expect(program.error.contains(" 3 |     actoin: log\n   |     ^~~~~~\n"))
            #expect(program.error.contains("help: write 'action'"))
        }
    }

    @Test func `a run that cannot start names the directory that is missing, and the rule`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("rules.yaml"), "rules:\n  - { name: never, path: none/*, action: log, missing: fail }\n")
            let (status, program) = Self.run(tree, ["run", "rules.yaml"])
            #expect(status == 1)
            let message = "rule 'never' needs the directory '\(tree.path("none"))', which does not exist"
            #expect(program.error.contains(message), "\(program.error)")
        }
    }

    @Test func `check reports how many directories would be watched, and the limit`() throws {
        try withTempTree { tree in
            let rules = """
                rules:
                  - { name: all, path: in/**/*.txt, action: log }
                  - { name: part, path: in/a/*, action: log }
                  - { name: later, path: none/*, action: log }
                  - { name: never, path: none/*, action: log, missing: fail }
                  - { name: made, path: none/*, action: log, missing: create }
                  - { name: facts, path: /proc/self/*, action: log }
                """
            TestFile.write(tree.path("rules.yaml"), rules)
            for name in ["a", "b", "c/d"] { TestFile.makeDirectory(tree.path("in/\(name)")) }
            let (status, program) = Self.run(tree, ["check", "rules.yaml"])
            #expect(status == 0)
            let line = try #require(program.lines.first { $0.hasPrefix("watches: ") })
            #expect(line.hasPrefix("watches: 5 needed, "), "\(line)")
            #expect(line.contains("max_inotify_watches") || line.contains("max_user_watches"), "\(line)")
            #expect(
                program.lines.contains("polled: '/proc/self': the kernel does not report all changes on proc"))
            let watched = "    \(tree.root)/none/*, watched from \(tree.root)/none (it does not exist; "
            let ends = program.lines.filter { $0.hasPrefix(watched) }.map { $0.dropFirst(watched.count) }
            #expect(ends == ["'alight run' waits for it)", "'alight run' will fail)", "'alight run' creates it)"])
        }
    }

    @Test(.enabled(if: ScenarioRunner.ordinaryUserProblem == nil))
    func `check warns about roots where other users may write unseen`() {
        withTempTree { tree in
            let rules = """
                rules:
                  - { name: shared, path: shared/*, action: log }
                  - { name: theirs, path: theirs/*, action: log }
                  - { name: own, path: own/*, action: log }
                  - { name: ready, path: shared-ready/*, ready: { min_age: 1m }, action: log }
                """
            TestFile.write(tree.path("rules.yaml"), rules)
            for name in ["shared", "theirs", "own", "shared-ready"] { TestFile.makeDirectory(tree.path(name)) }
            for name in ["shared", "shared-ready"] { _ = tree.path(name).withCString { chmod($0, 0o1777) } }
            for name in ["shared", "own", "shared-ready"] {
                _ = tree.path(name).withCString { chown($0, 65_534, 65_534) }
            }
            for path in [tree.root, tree.path("rules.yaml")] { _ = path.withCString { chmod($0, 0o755) } }
            var warnings: [[String]] = []
            for words in [ScenarioRunner.asOrdinaryUser, []] {
                let program = RunningProgram(
                    "/usr/bin/env", words + ["\(Places.alight)", "check", "rules.yaml"], in: tree.root,
                    output: tree.path("checked"))
                #expect(program.wait() == 0, "\(program.error)")
                warnings.append(program.lines.filter { $0.hasPrefix("warning: ") })
            }
            #expect(warnings.map(\.count) == [2, 0], "root sees who writes: \(warnings)")
            for (line, name) in zip(warnings[0], ["shared", "theirs"]) {
                #expect(line.hasPrefix("warning: '\(tree.root)/\(name)': other users can write here"))
            }
        }
    }

    @Test func `output for users is one line per action`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), Self.rules)
            TestFile.makeDirectory(tree.path("in"))
            let program = Self.start(tree)
            #expect(program.error.contains("ready: watching 1 directory for 1 rule\n"))
            TestFile.write(tree.path("in/a\u{1B}[31m\nb"), "x")
            #expect(Deadline.wait { program.lines.count == 1 })
            let line = program.output
            #expect(line.contains(" notes: created \(tree.root)/in/a\\u{1b}[31m\\nb: succeeded in "), "\(line)")
            #expect(line.hasSuffix(" ms: created a\\u{1b}[31m\\nb\n"), "\(line)")
            program.signal(SIGINT)
            #expect(program.wait() == 0)
            #expect(program.error.contains("stopping"))
        }
    }

    @Test func `JSON output is one object per line`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), Self.rules)
            TestFile.makeDirectory(tree.path("in"))
            let program = Self.start(tree, ["run", "rules.yaml", "--log-format", "json"])
            TestFile.write(tree.root.appending("in").appending([0x61, 0xE9]), "x")
            #expect(Deadline.wait { program.lines.count == 1 })
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any])
            #expect(object["rule"] as? String == "notes")
            #expect(object["outcome"] as? String == "succeeded")
            #expect(object["state"] as? String == "succeeded")
            #expect((object["duration_ms"] as? Double).map { $0 >= 0 } == true)
            let exact = (object["path_base64"] as? String).flatMap { Data(base64Encoded: $0) }
            #expect(exact.map { PathBytes($0) } == tree.root.appending("in").appending([0x61, 0xE9]))
            for line in program.error.split(separator: "\n") {
                #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any], "\(line)")
            }
        }
    }

    @Test func `rules come from the rules directory, else from the configuration`() {
        withTempTree { tree in
            TestFile.write(tree.path("config/alight/rules/a.yaml"), Self.rules)
            let configured = RunningProgram.alight(
                ["check"], in: tree.root, environment: ["XDG_CONFIG_HOME": "\(tree.root)/config"], output: "one")
            #expect(configured.wait() == 0)
            #expect(configured.output.contains("config/alight/rules/a.yaml:2:5"))
            TestFile.write(tree.path("rules/b.yml"), Self.rules)
            let here = RunningProgram.alight(
                ["check"], in: tree.root, environment: ["XDG_CONFIG_HOME": "\(tree.root)/config"], output: "two")
            #expect(here.wait() == 0)
            #expect(here.output.contains("rules/b.yml:2:5"))
        }
    }

    @Test func `the shipped rules pass`() {
        withTempTree { tree in
            let program = RunningProgram.alight(["check", "\(Places.checkout)/rules"], in: tree.root)
            #expect(program.wait() == 0, "\(program.error)")
        }
    }

    @Test func `kill -9 also kills the programs of the actions`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: slow
                    path: in/*
                    settle: 0
                    action:
                      shell: 'setsid sleep 600 & trap "" TERM; echo $$ >"$ALIGHT_ROOT/../pid"; sleep 600; sleep 600'
                """)
            TestFile.makeDirectory(tree.path("in"))
            let program = Self.start(tree)
            TestFile.write(tree.path("in/a"), "x")
            let pid = Deadline.poll { () -> Int32? in
                let text = TestFile.text(tree.path("pid"))
                return text.flatMap { $0.hasSuffix("\n") ? Int32($0.dropLast()) : nil }
            }
            program.signal(SIGKILL)
            #expect(program.wait() == 128 + SIGKILL)
            #expect(pid != nil)
            #expect(Deadline.wait { pid.map { kill($0, 0) } == -1 })
        }
    }

    @Test func `paths that were still settling at the stop are named`() {
        withTempTree { tree in
            // The line of the second rule proves that the path was read.
            let quick = Self.rules.replacing("notes", with: "quick").replacing("rules:\n", with: "")
            TestFile.write(
                tree.path("rules.yaml"), Self.rules.replacing("100ms", with: "10m") + "\n" + quick)
            TestFile.makeDirectory(tree.path("in"))
            let program = Self.start(tree)
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { program.output.contains("quick: created") }, "\(program.error)")
            #expect(program.stop() == 0)
            let left = "1 path was still settling, and left for the next start: '\(tree.root)/in/a'"
            #expect(program.error.contains(left), "\(program.error)")
        }
    }

    @Test func `a job that a second signal interrupts is not also named as settling`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: slow
                    path: in/*
                    settle: 0
                    action:
                      shell: touch "$ALIGHT_ROOT/../started"; sleep 600
                """)
            TestFile.makeDirectory(tree.path("in"))
            let program = Self.start(tree)
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { TestFile.exists(tree.path("started")) })
            program.signal(SIGINT)
            #expect(Deadline.wait { program.error.contains("stopping: finishing 1 job") }, "\(program.error)")
            program.signal(SIGINT)
            #expect(program.wait() == 1, "\(program.error)")
            #expect(program.error.contains("left for the next start: 1 job"), "\(program.error)")
            #expect(!program.error.contains("settling"), "\(program.error)")
        }
    }

    @Test func `a second signal terminates the program although no process reads its output`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), Self.rules.replacing("100ms", with: "0"))
            TestFile.makeDirectory(tree.path("in"))
            // The shell has both ends of the pipe open, and reads nothing.
            let script = "mkfifo pipe; exec 3<>pipe; exec '\(Places.alight)' run rules.yaml >&3"
            let program = RunningProgram("/bin/sh", ["-c", script], in: tree.root, output: tree.path("run"))
            #expect(program.waitUntilReady(), "\(program.error)")
            let name = String(repeating: "n", count: 200)
            for number in 0..<500 { TestFile.write(tree.path("in/\(name)-\(number)"), "x") }
            let pipe = tree.path("pipe").withCString { open($0, O_WRONLY | O_NONBLOCK | O_CLOEXEC) }
            defer { close(pipe) }
            // The pipe is full: the next write waits for a reader.
            let isFull = Deadline.wait {
                var waited = pollfd(fd: pipe, events: Int16(POLLOUT), revents: 0)
                return poll(&waited, 1, 0) == 0
            }
            #expect(isFull)
            // Two pending signals are merged into one, so they are sent until two were received.
            let isEnded = Deadline.wait {
                program.signal(SIGTERM)
                return program.exitStatus() != nil
            }
            #expect(isEnded)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
    func `the rules of an ordinary user sample the files of other users`() {
        withTempTree { tree in
            // The build directory may be inaccessible to others, so the programs are copied.
            for name in ["alight", "alight-launch"] {
                TestFile.copyTree(Places.products.appending(name), tree.path("bin/\(name)"))
            }
            TestFile.write(tree.path("rules.yaml"), Self.rules)
            TestFile.makeDirectory(tree.path("in"))
            for path in [tree.root, tree.path("bin"), tree.path("in")] { _ = path.withCString { chmod($0, 0o777) } }
            let program = RunningProgram(
                "/usr/bin/setpriv",
                [
                    "--reuid=65534", "--regid=65534", "--clear-groups", "\(tree.root)/bin/alight", "run", "rules.yaml",
                ], in: tree.root, output: tree.path("run"))
            #expect(program.waitUntilReady(), "\(program.error)")
            TestFile.write(tree.path("in/of-root"), "x")
            #expect(Deadline.wait { program.output.contains("in/of-root: succeeded") }, "\(program.error)")
            #expect(program.stop() == 0)
        }
    }

    @Test(.enabled(if: CommandTests.hasUserNamespaces, "there are no user namespaces here"))
    func `a watch limit that is too low is reported once, with a remedy`() {
        withTempTree { tree in
            TestFile.write(tree.path("rules.yaml"), Self.rules.replacing("in/*", with: "in/**"))
            for number in 0..<30 { TestFile.makeDirectory(tree.path("in/\(number)")) }
            let script = """
                echo 10 >/proc/sys/user/max_inotify_watches && exec '\(Places.alight)' run rules.yaml
                """
            let program = RunningProgram(
                "/usr/bin/unshare", ["--user", "--map-root-user", "/bin/sh", "-c", script], in: tree.root,
                output: tree.path("run"))
            #expect(Deadline.wait { program.error.contains("ready: watching 31 directories") }, "\(program.error)")
            // Three watches are on the path to the rules themselves.
            #expect(program.error.contains("user.max_inotify_watches is 10, and 37 are needed; 2"))
            #expect(program.error.contains("help: raise it: sysctl user.max_inotify_watches=37"))
            TestFile.write(tree.path("in/watched-or-polled"), "x")
            #expect(Deadline.wait { program.output.contains("watched-or-polled: succeeded") }, "\(program.error)")
            #expect(program.stop() == 0)
        }
    }

    /// Whether a test can have its own limits.
    private static let hasUserNamespaces: Bool = withTempTree { tree in
        let probe = RunningProgram(
            "/usr/bin/unshare",
            ["--user", "--map-root-user", "/bin/sh", "-c", "echo 10 >/proc/sys/user/max_inotify_watches"],
            in: tree.root, output: tree.path("probe"))
        return probe.wait() == 0
    }

    @Test(arguments: [
        #"check "$name""#, #"check "$name/""#, #"explain x --rules "$name""#, #"explain x --rules="$name""#,
        #"run --once --journal :memory: "$name""#,
    ])
    func `rules may have a name that is not UTF-8`(_ command: String) {
        withTempTree { tree in
            let isDirectory = command.contains("/")
            let name = PathBytes(Array("caf".utf8) + [0xE9] + Array(isDirectory ? "".utf8 : ".yaml".utf8))
            let location = tree.root.appending(name.bytes)
            if isDirectory { TestFile.makeDirectory(location) }
            TestFile.write(
                isDirectory ? location.appending("r.yaml") : location, "rules: [{ name: r, path: in/x, action: log }]\n"
            )
            TestFile.makeDirectory(tree.path("in"))
            let suffix = isDirectory ? "" : ".yaml"
            let program = RunningProgram(
                "/bin/sh",
                ["-c", #"name=$(printf 'caf\351')\#(suffix); exec "$0" \#(command)"#, Places.alight.description],
                in: tree.root, output: tree.path("run"))
            let status = program.wait()
            #expect(status == 0 || status == 4, "\(program.output)\(program.error)")
            #expect(!program.error.contains("error"), "\(program.error)")
        }
    }
}
