import Foundation
import Glibc
import System
import Testing
import TestKit

/// The sockets and TCP addresses of an instance, and the clients that can connect to them.
struct ControlConnectionTests {
    @Test func `without a running instance every command reports this`() {
        withTempTree { tree in
            for words in [["status"], ["status", "--watch"], ["pause"], ["resume"], ["reload"], ["rescan"], ["log"]] {
                let (status, _, error) = Instance.command(tree.root, words)
                #expect(status == 1)
                #expect(error.contains("error: no instance is running: no process listens at '"), "\(words): \(error)")
                #expect(error.contains("\n    help: "))
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root starts programs of others"))
    func `a socket of another user is not used`() throws {
        try withTempTree { tree in
            let root = tree.root
            try #require(root.withCString { chmod($0, 0o777) } == 0)
            let socket = root.appending("false.sock")
            let listening = """
                import os, socket, sys
                server = socket.socket(socket.AF_UNIX)
                server.bind(sys.argv[1])
                os.chmod(sys.argv[1], 0o777)
                server.listen()
                print("ready", flush=True)
                while True:
                    client, _ = server.accept()
                    print("asked" if client.recv(100) else "left alone", flush=True)
                    client.close()
                """
            func asUser(_ user: Int, _ words: [String]) -> [String] {
                ["--reuid=\(user)", "--regid=\(user)", "--clear-groups"] + words
            }
            let other = RunningProgram(
                "/usr/bin/setpriv", asUser(65533, ["/usr/bin/python3", "-c", listening, socket.description]), in: root,
                output: root.appending("other"))
            #expect(Deadline.wait { other.output.contains("ready") }, "\(other.error)")
            let status = RunningProgram(
                "/usr/bin/setpriv",
                asUser(65534, [Places.alight.description, "status", "--control", socket.description]), in: root,
                output: root.appending("status"))
            #expect(status.wait() == 1)
            #expect(
                status.error.contains("error: cannot connect to the instance at '\(socket)': Operation not permitted"),
                "\(status.error)")
            #expect(status.error.contains("help: run this command as the user of that instance, or as root"))
            #expect(Deadline.wait { other.output.contains("left alone") }, "\(other.output)\(other.error)")
            #expect(!other.output.contains("asked"))
        }
    }

    @Test func `a disabled socket is reported as disabled`() throws {
        withTempTree { tree in
            let program = RunningProgram.alight(
                ["status"], in: tree.root,
                environment: JournalCommand.environment.merging(["ALIGHT_CONTROL": "false"]) { $1 }, output: "status")
            #expect(program.wait() == 1)
            #expect(
                program.error.contains("error: the control socket is turned off by 'ALIGHT_CONTROL'"),
                "\(program.error)")
        }
    }

    // MARK: TCP

    /// Returns the token of the link that the program has printed, and the link without it.
    private static func printedLink(_ program: RunningProgram) throws -> (location: String, token: String) {
        let message = try #require(program.error.components(separatedBy: "dashboard: ").dropFirst().first)
        let link = try #require(message.split { $0 == "\"" || $0 == "\n" }.first)
        let parts = link.split(separator: "?token=")
        try #require(parts.count == 2)
        return (String(parts[0]), String(parts[1]))
    }

    private static func statusByTCP(_ port: UInt16, _ header: String, host: String) throws -> String {
        let connection = try #require(RawHTTP(port: port))
        connection.send("GET /v1/rules HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\(header)\r\n\r\n")
        return String(connection.readAll().prefix(12))
    }

    @Test func `the link with the token is printed at any log level, survives a restart, and is reachable`()
        throws
    {
        let port = RawHTTP.freePort()
        let arguments = ["--listen", "0.0.0.0:\(port)", "--log-level", "error"]
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), Instance.rules(root))
            var links: [(location: String, token: String)] = []
            for start in 1...2 {
                let program = RunningProgram.alight(
                    ["run", "rules.yaml"] + arguments, in: root, output: "run-\(start)")
                #expect(Deadline.wait { program.error.contains("dashboard: ") && RawHTTP(port: port) != nil })
                links.append(try Self.printedLink(program))
                let (location, token) = links[start - 1]
                let host = String(location.dropFirst(7).dropLast())
                #expect(host.hasSuffix(":\(port)") && !host.hasPrefix("0.0.0.0"), "\(location)")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer \(token)", host: host) == "HTTP/1.1 200")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer no", host: host) == "HTTP/1.1 401")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer \(token)", host: "x.test") == "HTTP/1.1 421")
                #expect(program.stop() == 0, "\(program.error)")
            }
            #expect(links[0].token == links[1].token)
            let file = tree.path(".state/alight/journal.db-token")
            #expect(TestFile.text(file) == "\(links[0].token)\n")
            // Another user may have read the token.
            try #require(file.withCString { chmod($0, 0o644) } == 0)
            let refused = RunningProgram.alight(["run", "rules.yaml"] + arguments, in: root, output: "refused")
            #expect(refused.wait() == 1)
            #expect(refused.error.contains("help: run: chmod 600 '\(file)'"), "\(refused.error)")
            #expect(!TestFile.exists(Instance.socket(root)), "what was begun is taken back")
        }
    }

    @Test func `behind a proxy the loopback address requires the token too, and a link leads to the proxy`()
        throws
    {
        let port = RawHTTP.freePort()
        let arguments = ["--listen", "127.0.0.1:\(port)", "--external-url", "https://alight.test/"]
        try Instance.withProgram(arguments) { _, program in
            let words = Array(program.error.components(separatedBy: "dashboard: ").dropFirst())
            try #require(words.count == 2, "\(program.error)")
            #expect(words[0].hasPrefix("http://127.0.0.1:\(port)/?token="))
            #expect(words[1].hasPrefix("https://alight.test/?token="))
            let token = try Self.printedLink(program).token
            for host in ["127.0.0.1:\(port)", "alight.test"] {
                #expect(try Self.statusByTCP(port, "X-Nothing: x", host: host) == "HTTP/1.1 401")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer \(token)", host: host) == "HTTP/1.1 200")
            }
        }
    }

    @Test(arguments: [
        (["--external-url", "https://a.test"], "'--external-url' requires an address"),
        (["--listen", "127.0.0.1:1", "--external-url", "a.test"], "write 'https://a.test'"),
        (["--listen", "*:8088"], "write '0.0.0.0:8088'"),
        (["--once", "--external-url", "https://a.test"], "'--external-url' cannot be combined with '--once'"),
    ])
    func `an invalid address, or an invalid one of a proxy, is refused`(arguments: [String], message: String) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), Instance.rules(tree.root))
            let program = RunningProgram.alight(["run", "rules.yaml"] + arguments, in: tree.root)
            #expect(program.wait() == 2)
            #expect(program.error.contains(message), "\(program.error)")
        }
    }

    // MARK: Several instances

    @Test func `a second instance creates a socket beside the first, and commands use the first`() throws {
        try Instance.withProgram { (root, program) throws in
            let second = Instance.begin(root, ["--journal", "other.db"], name: "second")
            #expect(second.error.contains("another instance listens at '\(Instance.socket(root))'"), "\(second.error)")
            let other = root.appending(".run/control-\(second.pid).sock")
            #expect(TestFile.exists(other))
            #expect(Instance.command(root, ["status"]).output.contains("process \(program.pid),"))
            let named = Instance.command(root, ["status", "--control", other.description])
            #expect(named.output.contains("process \(second.pid),"), "\(named.error)")
            #expect(program.stop() == 0)
            #expect(Instance.command(root, ["status"]).output.contains("process \(second.pid),"))
            #expect(second.stop() == 0)
            #expect(!TestFile.exists(other))
        }
    }

    @Test func `a specified socket that is in use is an error`() throws {
        try Instance.withProgram { (root, _) throws in
            let second = RunningProgram.alight(
                ["run", "rules.yaml", "--journal", "other.db", "--control", Instance.socket(root).description],
                in: root, output: "second")
            #expect(second.wait() == 1)
            #expect(second.error.contains("error: another instance listens at '"), "\(second.error)")
        }
    }

    @Test func `without a socket no command can connect`() throws {
        try Instance.withProgram(["--no-control"]) { (root, _) throws in
            #expect(!TestFile.exists(Instance.socket(root)))
            #expect(Instance.command(root, ["status"]).status == 1)
        }
    }
}
