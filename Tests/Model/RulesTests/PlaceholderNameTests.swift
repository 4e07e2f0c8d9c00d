import FileEvents
import Rules
import System
import Testing

struct PlaceholderNameTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let stem: String
        let `extension`: String

        init(_ name: String, _ stem: String, _ extension: String) {
            self.name = name
            self.stem = stem
            self.extension = `extension`
        }

        var testDescription: String { "\(name) is \(stem) and \(`extension`)" }
    }

    static let cases = [
        Case("a.jpg", "a", "jpg"), Case("a.tar.gz", "a.tar", "gz"), Case("a", "a", ""), Case("a.", "a", ""),
        Case(".profile", ".profile", ""), Case(".a.b", ".a", "b"), Case("a..b", "a.", "b"),
        // A stem that consists only of dots would lead a template into another directory.
        Case("..jpg", "..jpg", ""), Case("...jpg", "...jpg", ""), Case("...", "...", ""), Case("....a", "....a", ""),
        Case("..a.b", "..a", "b"),
    ]

    @Test(arguments: cases)
    func `a name is split into stem and extension`(_ example: Case) {
        let identity = FileIdentity(deviceMajor: 0, deviceMinor: 0, inode: 1, birth: 1)
        let time = Timestamp(seconds: 0, nanoseconds: 0)
        let snapshot = Snapshot(
            identity: identity, type: .file, size: 0, modified: time, changed: time, born: nil, mode: 0o644, uid: 0,
            gid: 0, links: 1)
        let event = FileEvent(
            kind: .created, path: PathBytes("/in").appending(example.name), root: "/in", snapshot: snapshot, time: time)
        let values = PlaceholderValues(event: event, rule: "r", job: "j", attempt: 1, now: time)
        #expect(PathBytes(values.value(of: .stem)) == PathBytes(example.stem))
        #expect(PathBytes(values.value(of: .extension)) == PathBytes(example.extension))
    }
}
