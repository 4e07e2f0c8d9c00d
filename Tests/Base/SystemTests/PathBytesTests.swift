import FileEvents
import System
import Testing

struct PathBytesTests {
    @Test(arguments: [
        ("/a/./b", "/a/b"), ("/a//b/", "/a/b"), ("/a/b/../c", "/a/c"), ("/..", "/"), ("a/../..", ".."), ("./", "."),
        ("/", "/"), ("", "."), ("/a/b", "/a/b"), ("a", "a"), (".a", ".a"), ("/.a/..b", "/.a/..b"), ("/a/.", "/a"),
    ])
    func `a path has a normal form`(_ path: String, _ expected: String) {
        #expect(PathBytes(path).normalized == PathBytes(expected))
    }

    @Test(arguments: [("/a/b", "/a"), ("/a", "/"), ("/", "/"), ("a", ".")])
    func parent(_ path: String, _ expected: String) {
        #expect(PathBytes(path).parent == PathBytes(expected))
    }

    @Test func `containment compares whole components`() {
        #expect(PathBytes("/in/a").isInside("/in"))
        #expect(PathBytes("/in").isInside("/in"))
        #expect(PathBytes("/in").isInside("/"))
        #expect(!PathBytes("/inbox").isInside("/in"))
        #expect(PathBytes("/in/a/b").relative(to: "/in").map(Array.init) == Array("a/b".utf8))
        #expect(PathBytes("/x").relative(to: "/in") == nil)
    }

    @Test func `names that only look alike are different`() {
        #expect(PathBytes("caf\u{E9}") != PathBytes("cafe\u{301}"))
        #expect(PathBytes([0xE9]).text == nil)
        #expect(PathBytes([0xE9]).description == "\u{FFFD}")
    }
}

struct TimestampTests {
    @Test(arguments: [
        (0, 0, "1970-01-01T00:00:00Z"), (1_763_708_663, 118_204_511, "2025-11-21T07:04:23.118204511Z"),
        (951_782_400, 500_000_000, "2000-02-29T00:00:00.5Z"), (-1, 0, "1969-12-31T23:59:59Z"),
        (253_402_300_799, 0, "9999-12-31T23:59:59Z"),
        (253_402_300_800, 1, "10000-01-01T00:00:00.000000001Z"),
        (-62_167_219_200, 120_000_000, "0000-01-01T00:00:00.12Z"), (-62_167_219_201, 0, "-0001-12-31T23:59:59Z"),
        (-86_400, 0, "1969-12-31T00:00:00Z"), (.max, 0, "292277026596-12-04T15:30:07Z"),
        (.min, 0, "-292277022657-01-27T08:29:52Z"),
    ])
    func text(_ seconds: Int64, _ nanoseconds: UInt32, _ expected: String) {
        #expect(Timestamp(seconds: seconds, nanoseconds: nanoseconds).description == expected)
    }

    @Test func `advancing a time carries into the seconds`() {
        let time = Timestamp(seconds: 10, nanoseconds: 900_000_000)
        #expect(time.advanced(by: .milliseconds(200)) == Timestamp(seconds: 11, nanoseconds: 100_000_000))
        #expect(time.since(Timestamp(seconds: 9, nanoseconds: 950_000_000)) == .milliseconds(950))
        #expect(Timestamp(seconds: 9, nanoseconds: 950_000_000).since(time) == .milliseconds(-950))
        let (last, first) = (
            Timestamp(seconds: .max, nanoseconds: 999_999_999), Timestamp(seconds: .min, nanoseconds: 0)
        )
        #expect(last.since(first) == .seconds(1 << 62) && first.since(last) == .seconds(-(1 << 62)))
        #expect(first.since(time) == .seconds(-(1 << 62)))
        #expect(time.advanced(by: .milliseconds(-950)) == Timestamp(seconds: 9, nanoseconds: 950_000_000))
    }
}

struct EventMaskTests {
    @Test func `inotify names map to the corresponding events`() {
        #expect(EventMask(word: "IN_CLOSE_WRITE") == [.created, .modified])
        #expect(EventMask(word: "created") == .created)
        #expect(EventMask(word: "change") == nil)
    }
}
