import ControlAPI
import System
import Testing
import TestKit

/// The event stream of the server: repeated and missed events, and followers that do not read.
struct ControlEventTests {
    @Test func `event followers leave connections for other requests`() throws {
        try withServer { path in
            var held: [RawHTTP] = []
            for _ in 0..<32 {
                let connection = try #require(RawHTTP(path))
                connection.send("GET /v1/events?only=attempt HTTP/1.0\r\n\r\n")
                #expect(connection.read(until: "retry: ").contains(" 200 OK"))
                held.append(connection)
            }
            let refused = RawHTTP.ask(path, "GET", "/v1/events?only=attempt")
            #expect(refused?.status == 503)
            #expect(refused?.body.contains("too many clients follow the events") == true)
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200)
            for connection in held { withExtendedLifetime(connection) {} }
        }
    }

    @Test func `events are numbered, and repeated for a client that missed them`() throws {
        let feed = EventFeed(now: Timestamp(seconds: 2, nanoseconds: 0))
        try withServer(feed: feed) { path in
            let first = try #require(RawHTTP(path))
            first.send("GET /v1/events?only=attempt,file HTTP/1.0\r\n\r\n")
            _ = first.read(until: "retry: ")
            for number in 0..<3 { feed.publish(.attempt) { "{\"n\":\(number)}" } }
            let text = first.read(until: "{\"n\":2}\n\n")
            #expect(text.contains("id: 2000000\nevent: attempt\ndata: {\"n\":0}\n\n"), "\(text)")
            #expect(text.contains("id: 2000002\nevent: attempt\ndata: {\"n\":2}\n\n"))

            let second = try #require(RawHTTP(path))
            second.send("GET /v1/events?only=attempt HTTP/1.0\r\nLast-Event-ID: 2000000\r\n\r\n")
            let again = second.read(until: "{\"n\":2}\n\n")
            #expect(!again.contains("{\"n\":0}"))
            #expect(again.contains("{\"n\":1}"))
        }
    }

    @Test func `a client that missed more events than are stored receives the number`() throws {
        let feed = EventFeed(now: Timestamp(seconds: 2, nanoseconds: 0))
        for number in 0..<1500 { feed.publish(.attempt) { "{\"n\":\(number)}" } }
        try withServer(feed: feed) { path in
            let connection = try #require(RawHTTP(path))
            connection.send("GET /v1/events?only=attempt HTTP/1.0\r\nLast-Event-ID: 2000099\r\n\r\n")
            let text = connection.read(until: "{\"n\":1499}\n\n")
            #expect(text.contains("event: gap\ndata: {\"missed\":400}\n\n"))
            #expect(!text.contains("{\"n\":499}"))
            #expect(text.contains("{\"n\":500}"))
        }
    }

    @Test(arguments: [1, 1_999_999, 9_000_000_000])
    func `the event number of another start returns all events, and reports that more may be missing`(
        _ id: Int
    ) throws {
        let feed = EventFeed(now: Timestamp(seconds: 2, nanoseconds: 0))
        for number in 0..<3 { feed.publish(.attempt) { "{\"n\":\(number)}" } }
        try withServer(feed: feed) { path in
            let connection = try #require(RawHTTP(path))
            connection.send("GET /v1/events?only=attempt HTTP/1.0\r\nLast-Event-ID: \(id)\r\n\r\n")
            let text = connection.read(until: "{\"n\":2}\n\n")
            // The number before the first one may be the last number of the previous start.
            #expect(text.contains("event: gap\ndata: {\"missed\":null}\n\n") == (id != 1_999_999), "\(text)")
            #expect(text.contains("{\"n\":0}"))
        }
    }

    @Test func `the event number of another start reports at once that events may be missing`() throws {
        try withServer { path in
            let connection = try #require(RawHTTP(path))
            connection.send("GET /v1/events?only=attempt HTTP/1.0\r\nLast-Event-ID: 7\r\n\r\n")
            let gap = "id: 999999\nevent: gap\ndata: {\"missed\":null}\n\n"
            #expect(connection.read(until: gap).contains(gap))
        }
    }

    @Test func `a client that returns after file events were not recorded learns this, if it wants them`() throws {
        let feed = EventFeed(now: Timestamp(seconds: 2, nanoseconds: 0))
        feed.publish(.attempt) { "{\"n\":0}" }
        #expect(!feed.isFollowed)
        feed.publish(.attempt) { "{\"n\":1}" }
        try withServer(feed: feed) { path in
            func follow(_ kinds: String, after id: Int) throws -> String {
                let connection = try #require(RawHTTP(path))
                connection.send("GET /v1/events?only=\(kinds) HTTP/1.0\r\nLast-Event-ID: \(id)\r\n\r\n")
                return connection.read(until: "{\"n\":1}\n\n")
            }
            let gap = "event: gap\ndata: {\"missed\":null}\n\n"
            let wanting = try follow("attempt,file", after: 2_000_000)
            #expect(wanting.contains(gap))
            let others = try follow("attempt", after: 2_000_000)
            #expect(!others.contains(gap))
            // No earlier event is missing, but the gap is reported anyway.
            let earlier = try follow("file,attempt", after: 1_999_999)
            #expect(earlier.contains(gap))
        }
    }

    @Test func `the status is sent once, and again when it changes`() throws {
        try withServer { path in
            let connection = try #require(RawHTTP(path))
            connection.send("GET /v1/events HTTP/1.0\r\n\r\n")
            let text = connection.read(until: "event: status")
            #expect(text.contains("text/event-stream"))
            #expect(connection.read(until: "\"running\"}\n\n").contains("data: {\"state\":\"running\"}\n\n"))
        }
    }

    @Test func `a follower that does not read blocks neither the publisher nor other clients`() throws {
        let feed = EventFeed(now: Timestamp(seconds: 2, nanoseconds: 0))
        try withServer(feed: feed) { path in
            let lazy = try #require(RawHTTP(path))
            lazy.send("GET /v1/events?only=attempt HTTP/1.0\r\n\r\n")
            _ = lazy.read(until: "retry: ")
            let text = String(repeating: "x", count: 10_000)
            let start = ContinuousClock.now
            for _ in 0..<2000 { feed.publish(.attempt) { text } }
            #expect(ContinuousClock.now - start < .seconds(5))
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200)
        }
    }
}
