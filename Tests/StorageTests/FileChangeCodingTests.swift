import JSON
import PluginProtocol
import Rules
import System
import Testing

@Suite("Changes in the journal")
struct FileChangeCodingTests {
    @Test func `a value with trailing bytes is not valid JSON`() {
        for text in ["{} x", "1 2", "null null", "[]]"] { #expect(JSONValue(record: Array(text.utf8)) == nil) }
        #expect(JSONValue(record: Array("null ".utf8)) == .some(.null))
    }

    @Test func `each kind of change survives a round trip, also with names that are not UTF-8`() throws {
        let left = FileMark(
            identity: FileIdentity(deviceMajor: 8, deviceMinor: 1, inode: .max, birth: 1_700_000_000_123_456_789),
            type: .file, size: 17, modified: Timestamp(seconds: -5, nanoseconds: 999_999_999))
        let odd = PathBytes([.slash, 0xFF, 0x0A, 0x22])
        var outcome = Outcome(.succeeded, "moved", outputs: [odd])
        outcome.changes = [
            FileChange(.madeDirectory("/out"), left: left), FileChange(.overwritten(odd), left: left),
            FileChange(.trashed(from: odd, to: "/T/files/a", info: "/T/info/a.trashinfo"), left: left),
            FileChange(.removed(odd, twin: "/out/twin"), left: left),
            FileChange(.made(odd, source: "/in/a"), left: left), FileChange(.moved(from: "/in/a", to: odd), left: left),
            FileChange(.unpacked(odd, source: "/in/a", sealed: left.modified), left: left),
        ]
        outcome.retryAfter = .seconds(1) + .nanoseconds(1)
        outcome.values = ["whole": 1.0, "text": "é"]
        outcome.process = ProcessDetails(status: 75, request: "{}")
        #expect([Outcome](record: [outcome].record) == [outcome])
        outcome.changes.append(outcome.changes[0])
        #expect([Outcome](record: [outcome].record.dropLast(2)) == nil)
    }
}
