import Foundation
import Glibc
import JournalFixtures
import System
import Testing
import TestKit

/// The status, the jobs and the events that a running instance reports.
struct ControlStatusTests {
    @Test func `a request while the journal is locked does not hide later jobs`() throws {
        try withTempTree { tree in
            let root = tree.root
            for directory in ["in", ".state", ".state/alight"] { TestFile.makeDirectory(tree.path(directory)) }
            TestFile.write(tree.path("rules.yaml"), Instance.rules(root))
            let file = try JournalFile(tree.path(".state/alight/journal.db"))
            let program = Instance.begin(root)
            try file.execute("BEGIN IMMEDIATE")
            TestFile.write(root.appending("in/a.png"), "x")
            #expect(Deadline.wait { program.error.contains("is locked by") }, "\(program.error)")
            _ = try Instance.get(root, "/v1/jobs")
            try file.execute("COMMIT")
            for name in ["b", "c"] {
                TestFile.write(root.appending("in/\(name).png"), "x")
                #expect(
                    try Deadline.wait {
                        let jobs = try #require(try Instance.get(root, "/v1/jobs")["jobs"] as? [[String: Any]])
                        return jobs.contains { ($0["path"] as? String)?.hasSuffix("/\(name).png") == true }
                    })
            }
            #expect(program.stop() == 0, "\(program.error)")
        }
    }

    @Test func `status names the roots, the waiting jobs and the failed ones`() throws {
        try Instance.withProgram { (root, _) throws in
            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/a.txt"), "a")
            _ = try Instance.job(root, "failed")
            let (status, output, error) = Instance.command(root, ["status"])
            #expect(status == 0, "\(error)")
            #expect(output.hasPrefix("alight 0.1.0: running, process "), "\(output)")
            #expect(output.contains("0 pending, 0 running, 1 failed"))
            #expect(output.contains("root \(root)/in: inotify, 1 directory\n"))
            #expect(output.contains("letters: \(root)/in/a.txt: no paper"))
            let rules = try #require(try Instance.get(root, "/v1/rules")["rules"] as? [[String: Any]])
            #expect((rules.first?["last"] as? [String: Any])?["outcome"] as? String == "failed")
            let json = Instance.command(root, ["status", "--json"]).output
            let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
            let roots = object?["roots"] as? [[String: Any]]
            #expect(roots?.first?["backend"] as? String == "inotify")
            #expect(roots?.first?["rules"] as? [String] == ["letters", "pictures"])
            #expect(object?["degraded"] as? Bool == false)
        }
    }

    @Test func `a rules error makes the instance degraded, and status exits with 6`() throws {
        try Instance.withProgram { (root, program) throws in
            TestFile.write(root.appending("rules.yaml"), Instance.rules(root) + "    setle: 1s\n")
            #expect(Deadline.wait { program.error.contains("the new rules contain errors") })
            let (status, output, _) = Instance.command(root, ["status"])
            #expect(status == 6)
            #expect(
                output.contains("problem: the rules contain errors; the rules loaded before stay in effect"),
                "\(output)")
            TestFile.write(root.appending("rules.yaml"), Instance.rules(root))
            #expect(Deadline.wait { Instance.command(root, ["status"]).status == 0 })
        }
    }

    @Test func `status --watch redraws in place on a terminal, and appends in a pipe`() throws {
        try Instance.withProgram { (root, _) throws in
            let piped = RunningProgram.alight(["status", "--watch"], in: root, output: "piped")
            #expect(Deadline.wait { piped.output.components(separatedBy: "alight 0.1.0: running").count > 2 })
            #expect(!piped.output.contains("\u{1B}"))
            let shown = RunningProgram(
                "/usr/bin/script",
                ["-qec", "stty cols 40 rows 6; exec \(Places.alight) status --watch", "/dev/null"], in: root,
                environment: ["TERM": "xterm", "NO_COLOR": "1"], output: root.appending("shown"))
            #expect(Deadline.wait { shown.output.components(separatedBy: "\u{1B}[H").count > 2 }, "\(shown.output)")
            for frame in shown.output.components(separatedBy: "\u{1B}[H").dropFirst().dropLast() {
                let lines = frame.components(separatedBy: "\u{1B}[J")[0].components(separatedBy: "\r\n")
                #expect(lines.count <= 7)
                for line in lines {
                    #expect(line.replacing("\u{1B}[K", with: "").replacing("\u{1B}[0m", with: "").count <= 41)
                }
            }
        }
    }

    @Test func `absurd numbers of another program are printed without a crash`() throws {
        withTempTree { tree in
            let socket = tree.path("odd.sock")
            let answering = """
                import socket, sys
                server = socket.socket(socket.AF_UNIX)
                server.bind(sys.argv[1])
                server.listen()
                print("ready", flush=True)
                body = (b'{"state": "running", "ready": true, "uptime": 1e300, "pid": -1e300, "overflows": 1e19,'
                        b' "last_minute": {"events": 1e300}, "journal": {"path": "/j", "size": 1e300},'
                        b' "roots": [{"path": "/r", "backend": "inotify", "directories": 1e300, "polled": 1e300}]}')
                while True:
                    client, _ = server.accept()
                    client.recv(1000)
                    client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + body)
                    client.close()
                """
            let other = RunningProgram(
                "/usr/bin/python3", ["-c", answering, socket.description], in: tree.root, output: tree.path("other"))
            #expect(Deadline.wait { other.output.contains("ready") }, "\(other.error)")
            let (status, output, error) = Instance.command(tree.root, ["status", "--control", socket.description])
            #expect(status == 0, "\(error)")
            #expect(output.contains("root /r: inotify, "), "\(output)")
        }
    }

    @Test func `the image of a job is served, but no file that replaced it`() throws {
        try Instance.withProgram { root, _ in
            let image: [UInt8] = [0x89] + Array("PNG\r\n\u{1A}\nbytes".utf8)
            let path = root.appending("in/a.png")
            TestFile.write(path, image)
            let job = try #require(try Instance.job(root, "succeeded"))
            let target = "/v1/jobs/\(job)/input"
            #expect(RawHTTP.ask(Instance.socket(root), "GET", target)?.status == 200)
            // A file of another user, through a symbolic link and through a hard link.
            let secret = root.appending("secret/a.png")
            TestFile.write(secret, image)
            try #require(path.withCString { unlink($0) } == 0)
            try #require(secret.withCString { from in path.withCString { symlink(from, $0) } } == 0)
            #expect(RawHTTP.ask(Instance.socket(root), "GET", target)?.status == 404)
            try #require(path.withCString { unlink($0) } == 0)
            try #require(secret.withCString { from in path.withCString { link(from, $0) } } == 0)
            #expect(RawHTTP.ask(Instance.socket(root), "GET", target)?.status == 404)
        }
    }

    @Test func `events are followed, as lines and as JSON`() throws {
        try Instance.withProgram { (root, program) throws in
            let text = RunningProgram.alight(["log"], in: root, output: "text")
            let json = RunningProgram.alight(["log", "--json"], in: root, output: "json")
            TestFile.write(root.appending("in/b.png"), "b")
            #expect(Deadline.wait { text.output.contains("pictures: created \(root)/in/b.png: succeeded in ") })
            #expect(Deadline.wait { json.lines.first == program.lines.first && !json.lines.isEmpty })
            let late = RunningProgram.alight(["log", "-n", "1"], in: root, output: "late")
            #expect(Deadline.wait { late.output.contains("b.png") })
            program.signal(SIGTERM)
            #expect(text.wait() == 0)
            #expect(text.error == "the instance has stopped\n")
        }
    }

    @Test func `the followed lines are those of the run`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - { name: good, path: in/*.txt, settle: 50ms, action: log }
                  - name: bad
                    path: in/*.bad
                    settle: 50ms
                    retry: { attempts: 2, delay: 100ms }
                    action: { shell: "echo no >&2; exit 1" }

                """)
            let program = RunningProgram.alight(["run", "rules.yaml"], in: tree.root)
            JournalFileTests.awaitReady(program)
            let log = RunningProgram.alight(["log"], in: tree.root, output: "log")
            TestFile.write(tree.path("in/a.txt"), "a")
            TestFile.write(tree.path("in/b.bad"), "b")
            #expect(Deadline.wait { log.output.contains("retry with 'alight retry ") }, "\(log.error)")
            #expect(Deadline.wait { log.output.contains("a.txt: succeeded in ") })
            #expect(log.output.contains(" (attempt 1 of 2; next in "))
            #expect(log.output.contains(" (gave up after 2 attempts; retry with "))
            #expect(Deadline.wait { Set(log.lines) == Set(program.lines) }, "\(log.output)\(program.output)")
        }
    }

    @Test func `events resume after the last one received`() throws {
        try Instance.withProgram { (root, program) throws in
            TestFile.write(root.appending("in/1.png"), "1")
            #expect(Deadline.wait { program.output.contains("1.png") })
            let first = try #require(RawHTTP(Instance.socket(root)))
            first.send("GET /v1/events?only=attempt&recent=10 HTTP/1.0\r\n\r\n")
            let seen = first.read(until: "1.png")
            let line = try #require(seen.components(separatedBy: "\n").first { $0.hasPrefix("id: ") })
            TestFile.write(root.appending("in/2.png"), "2")
            #expect(Deadline.wait { program.output.contains("2.png") })
            let second = try #require(RawHTTP(Instance.socket(root)))
            second.send("GET /v1/events?only=attempt HTTP/1.0\r\nLast-Event-ID: \(line.dropFirst(4))\r\n\r\n")
            let resumed = second.read(until: "2.png")
            #expect(!resumed.contains("1.png"))
        }
    }
}
