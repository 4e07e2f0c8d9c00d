import Globbing
import Rules
import System
import Testing

struct ReadinessTests {
    static func template(_ text: String) throws -> Template { try #require(Template(text)) }

    static func snapshot(size: UInt64 = 5, modified: Int64 = 100, changed: Int64 = 100) -> Snapshot {
        var snapshot = Snapshot.unseen
        snapshot.type = .file
        snapshot.size = size
        snapshot.modified = Timestamp(seconds: modified, nanoseconds: 0)
        snapshot.changed = Timestamp(seconds: changed, nanoseconds: 0)
        return snapshot
    }

    @Test func `the age is that of the content, and the remaining age is the pause`() {
        var ready = Readiness()
        ready.minimumAge = .seconds(10)
        let now = Timestamp(seconds: 104, nanoseconds: 500_000_000)
        let found = ready.waiting("/in/a", Self.snapshot(), now: now, .system) { _ in .absent }
        #expect(found?.waiting.cause == .age)
        #expect(found?.pause == .milliseconds(5_500))
        let later = Timestamp(seconds: 110, nanoseconds: 0)
        #expect(ready.waiting("/in/a", Self.snapshot(), now: later, .system) { _ in .absent } == nil)
        // A time in the future is not: the file was changed when its change time was set, or is changed now.
        let ahead = ready.waiting("/in/a", Self.snapshot(modified: 200, changed: 104), now: later, .system) { _ in
            .absent
        }
        #expect(ahead?.pause == .seconds(4))
        let all = ready.waiting("/in/a", Self.snapshot(modified: 200, changed: 200), now: later, .system) { _ in .absent
        }
        #expect(all?.pause == .seconds(10))
    }

    @Test func `a minimum size applies to files only`() {
        var ready = Readiness()
        ready.minimumSize = 6
        let now = Timestamp(seconds: 0, nanoseconds: 0)
        #expect(ready.waiting("/in/a", Self.snapshot(), now: now, .system) { _ in .absent }?.waiting.cause == .size)
        #expect(ready.waiting("/in/a", Self.snapshot(size: 6), now: now, .system) { _ in .absent } == nil)
        var directory = Self.snapshot()
        directory.type = .directory
        #expect(ready.waiting("/in/a", directory, now: now, .system) { _ in .absent } == nil)
    }

    @Test(arguments: [
        ("${name}.done", "/in/a.txt.done"), ("${stem}.ok", "/in/a.ok"), ("done/${name}", "/in/done/a.txt"),
        ("../marks/${stem}-${extension}", "/marks/a-txt"), ("_SUCCESS", "/in/_SUCCESS"), (".${name}", "/in/.a.txt"),
    ])
    func `the done file is relative to the directory of the file`(text: String, marker: String) throws {
        var ready = Readiness()
        ready.doneFile = try Self.template(text)
        let path = PathBytes(marker)
        #expect(ready.marker(of: "/in/a.txt") == path)
        #expect(ready.mayBeMarker(path))
        let now = Timestamp(seconds: 0, nanoseconds: 0)
        #expect(
            ready.waiting("/in/a.txt", Self.snapshot(), now: now, .system) {
                $0 == path ? .present(Self.snapshot()) : .absent
            }
                == nil)
        let found = ready.waiting("/in/a.txt", Self.snapshot(), now: now, .system) { _ in .absent }
        #expect(found?.waiting == Waiting(.doneFile, "it waits for '\(path)'"))
        let unseen = ready.waiting("/in/a.txt", Self.snapshot(), now: now, .system) { _ in .unreadable(errno: 13) }
        #expect(unseen?.waiting == Waiting(.unreadable, "its marker '\(path)' can't be checked: Permission denied"))
    }

    @Test func `other files are not mistaken for the done file`() throws {
        var ready = Readiness()
        #expect(!ready.mayBeMarker("/in/a.done"))
        ready.doneFile = try Self.template(".${stem}.done")
        #expect(ready.mayBeMarker("/in/.a.done"))
        #expect(!ready.mayBeMarker("/in/a.done"))
        #expect(!ready.mayBeMarker("/in/.a.txt"))
        ready.doneFile = try Self.template("_SUCCESS")
        #expect(!ready.mayBeMarker("/in/_SUCCESS2"))
    }

    @Test func `a group has a key, an order and a list of missing kinds`() throws {
        func kind(_ text: String) throws -> Grouping.Kind {
            Grouping.Kind(text: text, glob: try Glob(Array(text.utf8)))
        }
        let group = Grouping(
            key: try Self.template("${stem}"), required: [try kind("*.mkv"), try kind("*.nfo")])
        #expect(group.key(of: "/in/film.mkv") == group.key(of: "/in/film.srt"))
        #expect(group.key(of: "/in/film.mkv") != group.key(of: "/in/film2.mkv"))
        #expect(group.missing(in: ["/in/film.mkv", "/in/film.srt"]) == ["*.nfo"])
        #expect(group.missing(in: ["/in/film.MKV", "/in/film.nfo"]).isEmpty)
        #expect(
            group.sorted(["/in/film.a", "/in/film.nfo", "/in/film.mkv"])
                == ["/in/film.mkv", "/in/film.nfo", "/in/film.a"])
    }
}
