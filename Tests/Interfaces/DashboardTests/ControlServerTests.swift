import ControlAPI
import Dashboard
import Glibc
import Synchronization
import System
import Testing
import TestKit

/// The server at its socket, with valid and invalid requests.
struct ControlServerTests {
    @Test func `each resource has its path and its method`() throws {
        let operations = StubOperations()
        try withServer(operations) { path in
            for word in ["rules", "roots", "history"] {
                let answer = RawHTTP.ask(path, "GET", "/v1/\(word)")
                #expect(answer?.status == 200)
                #expect(answer?.body == "{\"asked\":\"\(word)\"}\n")
            }
            #expect(RawHTTP.ask(path, "GET", "/v1/jobs?state=failed,pending&rule=a&limit=5")?.status == 200)
            #expect(RawHTTP.ask(path, "POST", "/v1/jobs/X/retry")?.status == 200)
            #expect(RawHTTP.ask(path, "POST", "/v1/jobs/X/discard", "{}")?.status == 200)
            for verb in ["retry", "discard", "undo", "apply"] {
                #expect(RawHTTP.ask(path, "POST", "/v1/\(verb)", "{\"x\":1}")?.status == 200)
            }
            #expect(RawHTTP.ask(path, "POST", "/v1/reload")?.status == 202)
            #expect(RawHTTP.ask(path, "POST", "/v1/rescan")?.status == 202)
            #expect(RawHTTP.ask(path, "POST", "/v1/pause", "{\"rule\":\"a\"}")?.status == 200)
            #expect(RawHTTP.ask(path, "POST", "/v1/resume", "{}")?.status == 200)
        }
        #expect(
            operations.requests.withLock { $0 } == [
                "rules", "roots", "history", "jobs [\"failed\", \"pending\"] a 5", "retry X", "discard X",
                "retry {\"x\":1}", "discard {\"x\":1}", "undo {\"x\":1}", "apply {\"x\":1}", "reload", "rescan",
                "pause a", "resume -",
            ])
    }

    @Test(arguments: [
        ("GET", "/v1/nothing", "", 404), ("GET", "/v1/jobs/NONE", "", 404), ("GET", "/%ff%fe/../x", "", 404),
        ("GET", "//v1/status", "", 404), ("GET", "/v1//status", "", 404), ("GET", "/v1/status/", "", 404),
        ("GET", "/v1/jobs/", "", 404), ("GET", "/v1/jobs//input", "", 404), ("GET", "/v1/ status", "", 400),
        ("GET", "v1/status", "", 400), ("GET", "/v1/jobs/%ff", "", 200), ("GET", "/%00", "", 400),
        ("GET", "/v1/%zz", "", 400),
        ("POST", "/v1/status", "", 405), ("GET", "/v1/pause", "", 405), ("DELETE", "/v1/jobs/X", "", 405),
        ("BREW", "/v1/status", "", 405), ("POST", "/v1/pause", "{", 400), ("POST", "/v1/pause", "[]", 400),
        ("POST", "/v1/pause", "{\"rule\":7}", 400), ("POST", "/v1/pause", "{\"rul\":\"a\"}", 400),
        ("POST", "/v1/rescan", "{\"rule\":\"a\"}", 400), ("GET", "/v1/jobs?limit=0", "", 400),
        ("GET", "/v1/jobs?limit=x", "", 400), ("GET", "/v1/jobs?stat=failed", "", 400),
        ("GET", "/v1/events?only=nothing", "", 400), ("GET", "/v1/events?recent=-1", "", 400),
    ])
    func `an invalid request is refused with a reason`(
        _ method: String, _ target: String, _ body: String, _ status: Int
    ) throws {
        try withServer { path in
            let answer = RawHTTP.ask(path, method, target, body)
            #expect(answer?.status == status, "\(answer?.body ?? "nothing")")
            if status >= 400 {
                #expect(answer?.body.hasPrefix("{\"error\":{\"help\":\"") == true, "\(answer?.body ?? "nothing")")
            }
        }
    }

    @Test func `a body that is nested too deeply is refused at once`() throws {
        let nested = String(repeating: "[", count: 500) + String(repeating: "]", count: 500)
        let body = "{\"rule\":[" + (0..<62).map { _ in nested }.joined(separator: ",") + "]}"
        try withServer { path in
            let start = ContinuousClock.now
            let answer = RawHTTP.ask(path, "POST", "/v1/pause", body)
            #expect(answer?.status == 400)
            #expect(answer?.body.contains("the body is nested more than 64 levels deep") == true)
            #expect(ContinuousClock.now - start < .seconds(10))
        }
    }

    @Test func `each response forbids the browser everything that it does not need`() throws {
        try withServer { path in
            for target in ["/v1/status", "/v1/nothing"] {
                let connection = try #require(RawHTTP(path))
                connection.send("GET \(target) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                let head = connection.readAll()
                for line in [
                    "X-Content-Type-Options: nosniff", "Content-Security-Policy: default-src 'none'", "no-store",
                ] {
                    #expect(head.contains(line), "\(head)")
                }
            }
        }
    }

    @Test(arguments: [
        ("Content-Length: 2\r\nContent-Length: 3", "{}x"), ("Content-Length: 2\r\nContent-Length: 2", "{}"),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"),
    ])
    func `a request with several lengths is refused, and the bytes after it are not parsed as a request`(
        _ headers: String, _ body: String
    ) throws {
        let operations = StubOperations()
        try withServer(operations) { path in
            let connection = try #require(RawHTTP(path))
            connection.send(
                "POST /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\(headers)\r\n\r\n\(body)"
                    + "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            let answer = connection.readAll()
            #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(answer)")
            #expect(answer.contains("the request has several lengths"))
            #expect(answer.ranges(of: "HTTP/1.1").count == 1)
        }
        #expect(operations.requests.withLock { $0 } == [])
    }

    @Test(arguments: ["", "Host: a\r\nHost: b\r\n"])
    func `a request has one host`(_ headers: String) throws {
        try withServer { path in
            let connection = try #require(RawHTTP(path))
            connection.send("GET /v1/rules HTTP/1.1\r\n\(headers)\r\n")
            let answer = connection.readAll()
            #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(answer)")
            #expect(answer.contains("'Host' headers\"}}") && answer.contains("nosniff"), "\(answer)")
        }
    }

    @Test func `unread images use a limited amount of memory, until a client reads them`() throws {
        try withServer { path in
            // Each has 2 MB, of which the kernel's buffers hold a small part.
            var readers: [RawHTTP] = []
            for _ in 0..<25 {
                let connection = try #require(RawHTTP(path))
                connection.send("GET /v1/jobs/X/input HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                #expect(connection.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
                readers.append(connection)
            }
            let refused = RawHTTP.ask(path, "GET", "/v1/jobs/X/input")
            #expect(refused?.status == 503)
            #expect(refused?.body.contains("too many responses are being sent") == true)
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200, "what is small is served")
            #expect(readers[0].readAll().utf8.count > 2_000_000)
            #expect(Deadline.wait { RawHTTP.ask(path, "GET", "/v1/jobs/X/input")?.status == 200 })
        }
    }

    // MARK: Forms

    @Test(arguments: [
        "rule=a&rule=b", "rule=%zz", "rule=%00", "rule=%", "name=a", "rule=a&", "&", "=", "rule=a b",
        "{\"rule\":\"a\"}",
    ])
    func `an invalid form changes nothing`(_ body: String) throws {
        let operations = StubOperations()
        let port = RawHTTP.freePort()
        let address = try #require(ListenAddress("127.0.0.1:\(port)"))
        var routes = Routes(operations)
        routes.addPages(operations)
        let server = try ControlServer(
            nil, addresses: [address], access: Access(hosts: address.hosts, token: nil), routes: routes,
            operations: operations, feed: EventFeed(now: Timestamp(seconds: 1, nanoseconds: 0)), complain: { _ in })
        defer { server.stop() }
        func send(_ body: String) throws -> String {
            let connection = try #require(RawHTTP(port: port))
            let lines = [
                "POST /pause HTTP/1.1", "Host: \(address.text)", "Origin: http://\(address.text)", "Connection: close",
                "Content-Type: application/x-www-form-urlencoded", "Content-Length: \(body.utf8.count)",
            ]
            connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
            return connection.readAll()
        }
        let answer = try send(body)
        #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(answer.prefix(200))")
        #expect(answer.contains("invalid form"))
        #expect(operations.requests.withLock { $0 } == [])
        // The same form without the errors is accepted.
        #expect(try send("rule=a").hasPrefix("HTTP/1.1 303 "))
        #expect(operations.requests.withLock { $0 } == ["pause a"])
    }

    @Test func `a header that is too long is refused, and so is a body`() throws {
        try withServer { path in
            // A header within the limit of the library is refused with an error of the API.
            let some = try #require(RawHTTP(path))
            let much = String(repeating: "a", count: 40_000)
            some.send("GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Long: \(much)\r\n\r\n")
            let refused = some.readAll()
            #expect(refused.hasPrefix("HTTP/1.1 431 "), "\(refused.prefix(200))")
            #expect(refused.contains("nosniff") && refused.contains("{\"error\":{\"help\":\"send at most 32768\""))

            let long = try #require(RawHTTP(path))
            long.send("GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Long: ")
            let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 65_536)
            // Up to 10 MiB, as far as the server reads them.
            for _ in 0..<160 where !long.send(piece) { break }
            let answer = long.readAll()
            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(answer.prefix(200))")

            let body = RawHTTP.ask(path, "POST", "/v1/pause", "{\"rule\":\"\(String(repeating: "a", count: 70_000))\"}")
            #expect(body?.status == 413)
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200, "others are served")
        }
    }

    @Test func `a client that sends one byte after another is dropped, and so is a silent one`() throws {
        try withServer { path in
            let silent = try #require(RawHTTP(path))
            let slow = try #require(RawHTTP(path))
            let text = Array("GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: ".utf8)
            let start = ContinuousClock.now
            slow.send(text)
            // Each byte arrives in time, but the request is never complete.
            let isDropped = Deadline.wait { !slow.send([UInt8(ascii: "a")]) }
            #expect(isDropped)
            #expect(silent.readAll().isEmpty)
            #expect(ContinuousClock.now - start > .seconds(10))
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200, "others are served")
        }
    }

    @Test func `a client that does not read its response is dropped, and blocks no other`() throws {
        try withServer { path in
            let lazy = try #require(RawHTTP(path))
            lazy.send("GET /v1/jobs/X/input HTTP/1.1\r\nHost: x\r\n\r\n")
            for _ in 0..<20 { #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200) }
        }
    }

    @Test func `the number of connections is limited, and closed ones are freed`() throws {
        try withServer { path in
            var held: [RawHTTP] = []
            for _ in 0..<64 {
                let connection = try #require(RawHTTP(path))
                connection.send("GET /v1/rules HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(connection.read(until: "rules\"}").contains("200 OK"))
                held.append(connection)
            }
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 503)
            held.removeLast()
            #expect(Deadline.wait { RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200 })
        }
    }

    @Test func `a file that hangs delays only requests for files`() throws {
        let operations = StubOperations()
        try withServer(operations) { path in
            operations.isFileStuck.withLock { $0 = true }
            defer { operations.isFileStuck.withLock { $0 = false } }
            var waiting: [RawHTTP] = []
            // One read has started, the maximum number of requests waits behind it, and one is refused.
            for _ in 0..<18 {
                let connection = try #require(RawHTTP(path))
                connection.send("GET /v1/jobs/X/input HTTP/1.0\r\n\r\n")
                waiting.append(connection)
            }
            #expect(Deadline.wait { waiting.contains { $0.hasReceived } })
            #expect(Deadline.wait { operations.requests.withLock { $0 } == ["input X"] })
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200)
            #expect(RawHTTP.ask(path, "GET", "/v1/status")?.status == 200)
            #expect(RawHTTP.ask(path, "POST", "/v1/pause", "{}")?.status == 200)
            operations.isFileStuck.withLock { $0 = false }
            let answers = waiting.map { $0.readAll() }
            #expect(answers.count { $0.contains(" 200 OK") } == 17)
            #expect(answers.count { $0.contains(" 503 ") && $0.contains("too many requests wait for a file") } == 1)
        }
    }

    @Test func `a queued request is dropped when its client disconnects`() throws {
        let operations = StubOperations()
        try withServer(operations) { path in
            operations.isStuck.withLock { $0 = true }
            defer { operations.isStuck.withLock { $0 = false } }
            // Requests that the server refuses itself are answered meanwhile, after the preceding ones.
            func expectRefusal() { #expect(RawHTTP.ask(path, "GET", "/v1/nothing")?.status == 404) }
            let first = try #require(RawHTTP(path))
            first.send("GET /v1/rules HTTP/1.0\r\n\r\n")
            #expect(Deadline.wait { operations.hasWaited.withLock { $0 } })
            do {
                let left = try #require(RawHTTP(path))
                left.send("POST /v1/pause HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                withExtendedLifetime(left) { expectRefusal() }
            }
            for _ in 0..<3 { expectRefusal() }
            operations.isStuck.withLock { $0 = false }
            #expect(first.readAll().contains(" 200 OK"))
            #expect(RawHTTP.ask(path, "GET", "/v1/roots")?.status == 200)
        }
        #expect(operations.requests.withLock { $0 } == ["rules", "roots"])
    }

    @Test func `a shutdown waits for no client, and removes the socket`() throws {
        let operations = StubOperations()
        try withTempTree { tree in
            let path = tree.path("run/control.sock")
            let feed = EventFeed(now: Timestamp(seconds: 1, nanoseconds: 0))
            let server = try ControlServer(
                try ControlSocket(at: path), routes: Routes(operations), operations: operations, feed: feed,
                complain: { _ in })
            let stuck = try #require(RawHTTP(path))
            operations.isStuck.withLock { $0 = true }
            stuck.send("GET /v1/rules HTTP/1.1\r\nHost: x\r\n\r\n")
            let follower = try #require(RawHTTP(path))
            follower.send("GET /v1/events?only=attempt HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(follower.read(until: "retry: ").contains("200 OK"))
            let start = ContinuousClock.now
            server.stop()
            #expect(ContinuousClock.now - start < .seconds(20))
            operations.isStuck.withLock { $0 = false }
            #expect(!TestFile.exists(path))
            #expect(stuck.readAll().contains("503"))
            _ = follower.readAll()
        }
    }
}
