import FileEvents
import Rules
import Testing

struct EventSpellingTests {
    private let list = "the events are created, modified, deleted, moved, attributes, and those in docs/events.md"

    @Test(arguments: [
        ("creatde", "created"), ("rename", "moved"), ("Changed", "modified"), ("append", "extended"),
        ("mode", "attributes.mode"), ("attributes.owner", nil), ("attribute.mtime", "attributes.mtime"),
        ("in_open", "IN_OPEN"), ("IN_OPEM", nil), ("scan-end", "scan_end"), ("root_bak", "root_back"), ("xyz", nil),
    ])
    func `the intended word is suggested among all events`(word: String, meant: String?) {
        #expect(EventSpelling.help(for: word) == (meant.map { "write '\($0)'; \(list)" } ?? list))
    }

    @Test func `a mask is described in the words that form it`() {
        #expect(EventSpelling.words(of: [.truncated, .created, .mode]) == ["created", "truncated", "attributes.mode"])
        #expect(EventSpelling.words(of: []).isEmpty)
        for word in EventMask.words {
            #expect(EventMask(word: word).map { EventSpelling.words(of: $0) } == [word])
        }
    }

    @Test func `every suggestion is a valid event`() {
        for word in ["add", "chmod", "chown", "owner", "group", "links", "touch", "grown", "arrived", "read", "close"] {
            let meant = EventSpelling.help(for: word).split(separator: "'").dropFirst().first.map(String.init)
            #expect(meant.flatMap { EventMask(word: $0) } != nil)
        }
    }
}
