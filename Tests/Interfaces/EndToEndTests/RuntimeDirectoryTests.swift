import Glibc
import System
import Testing
import TestKit

/// The directories of the control socket and of scratch directories, when that of the session cannot be used.
@Suite(.enabled(if: geteuid() == 0, "only root can become another user"))
struct RuntimeDirectoryTests {
    /// A user of its own, whose programs and directories are accessible to it.
    private final class User {
        let tree = TemporaryTree()
        let id: uid_t
        /// The directory of the user in `/tmp`.
        let directory: PathBytes
        private static let rules = """
            rules:
              - name: all
                path: in/**
                settle: 60ms
                retry: false
                action: { shell: 'cat "$ALIGHT_PATH" > "$TMPDIR/copy" && mv "$TMPDIR/copy" "out/$ALIGHT_RELATIVE"' }

            """

        init(number: Int32) {
            id = uid_t(1_000_000 + getpid() % 100_000 * 20 + number)
            directory = PathBytes("/tmp/alight-\(id)")
            // The build directory may be inaccessible to others, so the programs are copied.
            for name in ["alight", "alight-launch"] {
                TestFile.copyTree(Places.products.appending(name), tree.path("bin/\(name)"))
            }
            TestFile.write(tree.path("rules.yaml"), Self.rules)
            for name in ["", "bin", "in", "out", "session", "state"] {
                let path = name.isEmpty ? tree.root : tree.path(name)
                TestFile.makeDirectory(path)
                _ = path.withCString { chown($0, id, id) }
                _ = path.withCString { chmod($0, 0o755) }
            }
        }

        deinit { for suffix in ["", "-2"] { TestFile.removeTree(PathBytes("\(directory)\(suffix)")) } }

        var session: PathBytes { tree.path("session") }

        func start(_ words: [String], session: PathBytes?, prefix: [String] = []) -> RunningProgram {
            var environment = ["ALIGHT_CONTROL": "", "RUNTIME_DIRECTORY": ""]
            environment["XDG_RUNTIME_DIR"] = session?.description
            let user = ["setpriv", "--reuid=\(id)", "--regid=\(id)", "--clear-groups", "\(tree.root)/bin/alight"]
            let all = prefix + user + words
            return RunningProgram(
                PathBytes("/usr/bin/\(all[0])"), Array(all.dropFirst()), in: tree.root, environment: environment,
                output: tree.path(words[0]))
        }

        func run(session: PathBytes?) -> RunningProgram {
            let program = start(["run", "rules.yaml"], session: session)
            #expect(program.waitUntilReady(), "\(program.error)")
            return program
        }

        func expectHandled(_ name: String, _ program: RunningProgram) {
            TestFile.write(tree.path("in/\(name)"), name)
            #expect(
                Deadline.wait { TestFile.text(tree.path("out/\(name)")) == name }, "\(program.output) \(program.error)")
        }

        func expectAnswer(session: PathBytes?) {
            #expect(
                Deadline.wait { start(["status"], session: session).wait() == 0 },
                "\(start(["status"], session: session).result())")
        }
    }

    @Test(arguments: [false, true])
    func `without XDG_RUNTIME_DIR the instance is found as well`(isTaken: Bool) {
        let user = User(number: isTaken ? 1 : 0)
        // Another user created the directory first.
        if isTaken { TestFile.makeDirectory(user.directory) }
        let program = user.run(session: nil)
        #expect(
            program.error.contains("warning: '\(user.directory)' is not a private directory of this user") == isTaken)
        let socket = PathBytes("\(user.directory)\(isTaken ? "-2" : "")/control.sock")
        #expect(Deadline.wait { TestFile.exists(socket) }, "\(program.error)")
        user.expectAnswer(session: nil)
        user.expectHandled("a", program)
        #expect(program.stop() == 0)
    }

    @Test(
        arguments: [("of another user", 2), ("open to others", 3), ("missing", 4), ("a link", 5)] as [(String, Int32)])
    func `a runtime directory that is not the user's own is not used`(kind: String, number: Int32) {
        let user = User(number: number)
        let session = user.session
        switch kind {
        case "of another user": #expect(session.withCString { chown($0, 0, 0) } == 0)
        case "open to others": #expect(session.withCString { chmod($0, 0o777) } == 0)
        default: TestFile.removeTree(session)
        }
        if kind == "a link" { #expect(symlink("/run", session.description) == 0) }
        let program = user.run(session: session)
        let problem = kind == "missing" ? "does not exist" : "is not a private directory of this user"
        #expect(
            program.error.contains("warning: '\(session)' \(problem); '\(user.directory)' is used instead"),
            "\(program.error)")
        user.expectHandled("a", program)
        for session in [session, nil] { user.expectAnswer(session: session) }
        #expect(program.stop() == 0)
        #expect(TestFile.names(in: user.directory) == [])
    }

    @Test func `a runtime directory that is removed at logout is replaced`() {
        let user = User(number: 6)
        let session = user.session
        let program = user.run(session: session)
        user.expectHandled("a", program)
        user.expectAnswer(session: session)
        #expect(TestFile.exists(session.appending("alight/control.sock")))
        // What Alight made in it is removed.
        TestFile.removeTree(session.appending("alight"))
        user.expectHandled("b", program)
        user.expectAnswer(session: session)
        #expect(Deadline.wait { TestFile.exists(session.appending("alight/control.sock")) }, "\(program.error)")
        // Logout; Alight may be about to use the directory.
        #expect(
            Deadline.wait {
                TestFile.removeTree(session)
                return !TestFile.exists(session)
            })
        user.expectHandled("c", program)
        for session in [session, nil] { user.expectAnswer(session: session) }
        let report = "the control socket '\(session)/alight/control.sock' has been removed; this instance listens at "
        #expect(program.error.contains("\(report)'\(user.directory)/control.sock'"), "\(program.error)")
        // Login.
        TestFile.makeDirectory(session)
        #expect(session.withCString { chown($0, user.id, user.id) } == 0)
        user.expectHandled("d", program)
        user.expectAnswer(session: session)
        // Commands that find the instance by its journal.
        let applied = user.start(["apply", "all", "in/a", "--rules", "rules.yaml"], session: session)
        #expect(applied.wait() == 0, "\(applied.error)")
        #expect(program.stop() == 0)
        #expect(TestFile.names(in: user.directory) == [])
    }

    @Test(arguments: ["run", "run --once", "apply", "check", "plugins test"])
    func `without any directory for scratch directories, programs are refused`(command: String) {
        let user = User(number: 7)
        let script =
            "for d in /tmp /var/tmp /run; do mount --bind $d $d && mount -o remount,ro,bind $d || exit; done; "
            + "mount -t tmpfs -o mode=777 none \(user.tree.path("state")); exec \"$@\""
        let prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]
        var words = command.split(separator: " ").map(String.init)
        switch command {
        case "apply":
            TestFile.write(user.tree.path("in/a"), "a")
            words += ["all", "in/a", "--rules", "rules.yaml", "--journal", "state/journal.db"]
        case "plugins test":
            TestFile.write(user.tree.path("keep/plugin.yaml"), "name: keep\nversion: 1.0.0\nprotocol: [1]\n")
            TestFile.write(user.tree.path("keep/keep"), Array("#!/bin/sh\n".utf8), mode: 0o755)
            words.append("./keep")
        case "check": words.append("rules.yaml")
        default: words += ["rules.yaml", "--journal", ":memory:"]
        }
        let program = user.start(words, session: user.session, prefix: prefix)
        let status = program.wait()
        let text = program.error + program.output
        #expect(status == (command == "check" ? 0 : 1), "\(text)")
        #expect(text.contains(command == "check" ? "warning: " : "error: "), "\(text)")
        #expect(text.contains("no scratch directory can be created: cannot write to '\(user.session)': "), "\(text)")
        #expect(text.contains("cannot write to '/tmp': Read-only file system"), "\(text)")
        #expect(text.contains("set TMPDIR to a directory"), "\(text)")
    }

    @Test func `a start without programs needs no scratch directory`() {
        let user = User(number: 8)
        TestFile.write(user.tree.path("rules.yaml"), "rules: [{ path: in/*, action: log }]\n")
        let script = "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp; exec \"$@\""
        let program = user.start(
            ["run", "rules.yaml", "--journal", ":memory:"], session: nil,
            prefix: ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"])
        #expect(program.waitUntilReady(), "\(program.error)")
        #expect(program.stop() == 0)
    }
}
