import Foundation
import TestKit
import Testing

@testable import PluginProtocol

/// What is read without Foundation is what Foundation reads.
struct JSONReaderTests {
    private static func own(_ bytes: [UInt8]) -> JSONValue? { bytes.withUnsafeBufferPointer(JSONReader.value) }

    private static func foundation(_ bytes: [UInt8]) -> JSONValue? {
        try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    private static let plain = [
        #"{"type":"result","id":"01JD","attempt":1,"outcome":"succeeded","values":{"a":[1,-20,{"b":null}],"c":true}}"#,
        #" { "x" : [ ] , "y" : { } , "z" : false } "#, #""""#, #""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00""#, "0", "7",
        "-7",
        "0.5", "-1.25e-3", "[123456789012345678]", "1.25E+1",
    ]
    /// Those that Foundation has to decide about.
    private static let doubtful = [
        "", " ", "{", "[1,]", "[1 2]", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "01", "-", "-0", "1.", ".5", "1e", "1.0",
        "1e3",
        "+1", "1234567890123456789012", "1e999", "nul", "truex", "\"\\x\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
        "\"\u{1}\"", "\"a", "NaN", "{1:2}", String(repeating: "[", count: 100) + String(repeating: "]", count: 100),
    ]

    @Test func `JSON as programs write it is read, and is what Foundation reads`() throws {
        for text in Self.plain {
            let bytes = Array(text.utf8)
            let value = try #require(Self.own(bytes), "\(text)")
            #expect(value == Self.foundation(bytes), "\(text)")
        }
    }

    @Test func `what could be read otherwise is left to Foundation`() {
        for text in Self.doubtful {
            let bytes = Array(text.utf8)
            #expect(Self.own(bytes) == nil, "\(text)")
            #expect(JSONValue(json: bytes[...]) == Self.foundation(bytes), "\(text)")
        }
        #expect(JSONValue(json: [0x22, 0xFF, 0x22]) == nil)
        #expect(JSONValue(json: Array("[1.0]".utf8)[...]) == [1])
    }

    @Test func `a part of an array is read by itself`() {
        #expect(JSONValue(json: Array(#"x{"a":1}y"#.utf8)[1..<8]) == ["a": 1])
    }

    @Test(arguments: UInt64(0)..<4) func `damaged JSON is what Foundation makes of it (Fuzz)`(seed: UInt64) {
        var random = SeededGenerator(seed: Fuzzing.seed(seed))
        let pieces = ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "null", "-", "0", ".", "e", "1"]
        var read = 0
        for _ in 0..<Fuzzing.rounds(1_500) {
            var bytes = Array(random.pick(Self.plain).utf8)
            for _ in 0..<(1 + random.below(3)) {
                let place = random.below(bytes.count + 1)
                switch random.below(3) {
                case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(random.below(8))
                case 1: bytes.removeSubrange(place..<min(bytes.count, place + random.below(6)))
                default: bytes.insert(contentsOf: random.pick(pieces).utf8, at: place)
                }
            }
            guard let value = Self.own(bytes) else { continue }
            read += 1
            #expect(value == Self.foundation(bytes), "\(String(decoding: bytes, as: UTF8.self))")
        }
        #expect(read > 100)
    }
}
