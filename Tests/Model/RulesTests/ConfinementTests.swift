import FileEvents
import Rules
import System
import Testing
import TestKit

struct ConfinementTests {
    @Test(arguments: [
        "idle", "best-effort", "best-effort:0", "best-effort:7", "realtime:0", "realtime:7",
    ])
    func `an I/O priority is parsed and shown as written`(text: String) {
        #expect(IOPriority(text)?.text == text)
    }

    @Test(arguments: [
        "", "Idle", "idle:1", "best-effort:8", "best-effort:", "best-effort:-1", "realtime", "realtime:10",
    ])
    func `an invalid I/O priority is refused`(text: String) { #expect(IOPriority(text) == nil) }

    @Test func `limits are shown without rounding`() {
        var limits = ResourceLimits()
        limits.cpu = .seconds(90)
        limits.memory = 512 << 20
        limits.fileSize = 3_000_000_001
        #expect(
            limits.shown.map { "\($0.name)=\($0.value)" } == ["cpu=1m 30s", "memory=512 MiB", "file_size=3000000001 B"])
    }

    @Test func `the mode bits determine who can read a file`() {
        var snapshot = Snapshot.sample()
        (snapshot.uid, snapshot.gid) = (1, 2)
        func canRead(_ mode: UInt16, uid: UInt32, groups: [UInt32] = []) -> Bool {
            snapshot.mode = mode
            return ProgramUser(text: "u", name: nil, uid: uid, gid: 9, groups: groups, home: "/").canRead(snapshot)
        }
        #expect(canRead(0o000, uid: 0))
        #expect(canRead(0o400, uid: 1) && !canRead(0o044, uid: 1))
        #expect(canRead(0o040, uid: 5, groups: [2]) && !canRead(0o404, uid: 5, groups: [2]))
        #expect(canRead(0o004, uid: 5) && !canRead(0o640, uid: 5))
    }

    @Test(
        arguments: [
            ("/srv/out", "/srv/out"), ("out", "/rules/out"), ("../out/", "/out"), ("${directory}", "/in/2026"),
            ("${path}.lock", "/in/2026/a.txt.lock"), ("/srv/${stem}/x", "/srv/a/x"),
            ("${relative}", "/rules/2026/a.txt"),
            ("/srv/x${match.empty}", "/srv/x"), ("/srv/${match.dots}x", "/srv/..x"), ("/srv/..${match.empty}/x", nil),
            ("/srv/${match.empty}", nil), ("/srv/${match.empty}/x", nil), ("/srv/${match.dots}", nil),
            ("/srv/${match.dots}/x", nil), ("/srv/${match.dot}", nil), ("${match.empty}", nil),
            ("/srv/${match.dot}${match.dot}", nil), ("/srv/${match.dot}.", nil), ("${directory}/${match.dots}", nil),
            ("${directory}${match.empty}/b", nil),
        ] as [(String, String?)])
    func `a path for a sandbox is never wider than the path written`(text: String, path: String?) throws {
        let template = try #require(Template(text))
        var values = PlaceholderValues(
            event: .sample(.created, "/in/2026/a.txt", root: "/in"), rule: "r", job: "j", attempt: 1,
            now: Timestamp(seconds: 0, nanoseconds: 0))
        values.captures.named = ["empty": [], "dot": [.dot], "dots": [.dot, .dot]]
        #expect(template.confinedPath(with: values, in: "/rules") == path.map { PathBytes($0) })
    }
}
