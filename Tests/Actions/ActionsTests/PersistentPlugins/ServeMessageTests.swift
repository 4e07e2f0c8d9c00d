import PersistentPlugins
import Testing

/// Parsing of a line from a serving plugin, including lines that can be read only in part.
struct ServeMessageTests {
    private static func line(_ type: String, _ rest: String) -> [UInt8] {
        Array(#"{"type":"\#(type)","id":"a","attempt":1,\#(rest)}"#.utf8)
    }

    /// Members that are not valid JSON, or whose value no type can represent.
    static let unreadable: [[UInt8]] = [
        Array(#""x":1e400"#.utf8), Array(#""x":""#.utf8) + [0xFF, 0x22], Array(#""x":"\ud800""#.utf8),
        Array(#""x":"C:\dir""#.utf8), Array("\"x\":\"a\tb\"".utf8), Array(#""x":007"#.utf8),
    ]

    private static func line(_ type: String, unreadable: [UInt8]) -> [UInt8] {
        Array(#"{"type":"\#(type)","id":"a","attempt":1,"fraction":0.5,"message":"m","outcome":"succeeded","#.utf8)
            + unreadable + [UInt8(ascii: "}")]
    }

    @Test(arguments: unreadable) func `an answer counts, whatever else its line has`(member: [UInt8]) {
        let line = Self.line("result", unreadable: member)
        #expect(ServeMessage(line: line[...]) == .result(id: "a", attempt: 1, line: line))
    }

    @Test(arguments: unreadable) func `a progress report counts too, and an unknown type is retained`(member: [UInt8]) {
        let progress = ServeMessage(line: Self.line("progress", unreadable: member)[...])
        #expect(progress == .progress(id: "a", fraction: 0.5, message: "m"))
        #expect(ServeMessage(line: Self.line("stat", unreadable: member)[...]) == .other("stat"))
    }

    @Test func `a member that cannot be read counts as absent`() {
        #expect(
            ServeMessage(line: Self.line("progress", #""fraction":1e400,"message":"m""#)[...])
                == .progress(id: "a", fraction: 0, message: "m"))
        #expect(
            ServeMessage(line: Self.line("progress", #""fraction":0.5,"message":"\ud800""#)[...])
                == .progress(id: "a", fraction: 0.5, message: nil))
    }

    @Test func `a whole number in any notation does not change a message`() {
        for more in [#""x":2"#, #""x":2.0"#] {
            func message(_ text: String) -> ServeMessage? { ServeMessage(line: Array("{\(text),\(more)}".utf8)[...]) }
            #expect(message(#""type":"ready","protocol":1,"concurrent":4"#) == .ready(protocol: 1, concurrent: 4))
            #expect(message(#""type":"ready","concurrent":"4""#) == .ready(protocol: nil, concurrent: nil))
            #expect(message(#""type":"pong","n":7"#) == .pong(7))
            let progress = message(#""type":"progress","id":"a","fraction":7"#)
            #expect(progress == .progress(id: "a", fraction: 1, message: nil))
            #expect(message(#""type":"result","id":5"#) == .other("result"))
            #expect(message(#""id":"a""#) == .other(nil))
        }
    }

    @Test(arguments: [#"{"type":"result""#, "[]", "hi", #"{"type":"result","id":"a"} x"#])
    func `a line that is not an object is reported verbatim`(text: String) {
        #expect(ServeMessage(line: Array(text.utf8)[...]) == .unreadable(text))
    }

    @Test func `an empty line is ignored`() { #expect(ServeMessage(line: Array(" \t".utf8)[...]) == nil) }
}
