import Foundation
import JSON
import Testing
import TestKit

/// The JSON reader, which agrees with Foundation, runs in linear time and limits the depth.
struct JSONReaderTests {
    private static func own(_ bytes: [UInt8]) -> JSONValue? { JSONValue(json: bytes) }

    private static func foundation(_ bytes: [UInt8]) -> JSONValue? {
        try? JSONDecoder().decode(Decoded.self, from: Data(bytes)).value
    }

    private static func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    private static let valid = [
        #"{"type":"result","id":"01JD","attempt":1,"outcome":"succeeded","values":{"a":[1,-20,{"b":null}],"c":true}}"#,
        #" { "x" : [ ] , "y" : { } , "z" : false } "#, #""""#, #""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00""#, "0", "7",
        "-7", "0.5", "-1.25e-3", "[123456789012345678]", "1.25E+1", "-0", "1.0", "1e3", "1234567890123456789012",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", nested(64),
    ]
    private static let invalid = [
        "", " ", "{", "[1,]", "[1 2]", "{\"a\":1,}", "01", "-", "1.", ".5", "1e", "+1", "1e999", "nul", "truex",
        "\"\\x\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\u{1}\"", "\"a", "NaN", "{1:2}", "[]]", "1 2",
        "null null", "{} x",
    ]

    @Test func `valid JSON is read as by Foundation`() throws {
        for text in Self.valid {
            let bytes = Array(text.utf8)
            let value = try #require(Self.own(bytes), "\(text)")
            #expect(value == Self.foundation(bytes), "\(text)")
        }
        #expect(JSONValue(json: Array("[1.0]".utf8)) == [1])
    }

    @Test func `invalid JSON is refused`() {
        for text in Self.invalid {
            #expect(Self.own(Array(text.utf8)) == nil, "\(text)")
        }
        #expect(JSONValue(json: [0x22, 0xFF, 0x22]) == nil)
        #expect(throws: JSONError.invalid(at: 4)) { try JSONValue(reading: Array("[1, x]".utf8)) }
    }

    @Test func `the first of several members with the same name counts`() {
        #expect(Self.own(Array(#"{"a":1,"b":2,"a":3}"#.utf8)) == ["a": 1, "b": 2])
    }

    @Test func `more than 64 levels are refused quickly, however large the input is`() {
        #expect(throws: JSONError.tooDeep(limit: 64)) { try JSONValue(reading: Array(Self.nested(65).utf8)) }
        // Foundation needs more than half a minute for this.
        let list = (0..<62).map { _ in Self.nested(500) }.joined(separator: ",")
        let start = ContinuousClock.now
        #expect(throws: JSONError.tooDeep(limit: 64)) { try JSONValue(reading: Array("{\"rule\":[\(list)]}".utf8)) }
        let open = String(repeating: #"{"a":["#, count: 500_000)
        #expect(throws: JSONError.tooDeep(limit: 64)) { try JSONValue(reading: Array(open.utf8)) }
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(JSONValue(record: Array(Self.nested(128).utf8)) != nil)
        #expect(JSONValue(record: Array(Self.nested(129).utf8)) == nil)
        #expect(JSONValue(record: Array("[1.0, 1]".utf8)) == [1.0, 1])
    }

    @Test func `the reading time does not grow quadratically`() {
        // Each piece is repeated to a megabyte that a reader could scan repeatedly.
        for piece in ["[\"\\u0061\"],", "1234567890,", "{\"a\":1},", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",", "  1,"] {
            func time(_ size: Int) -> Duration {
                let text = Array(("[" + String(repeating: piece, count: size / piece.utf8.count) + "0]").utf8)
                return (0..<3).map { _ in
                    ContinuousClock().measure { #expect(JSONValue(json: text) != nil) }
                }.min() ?? .zero
            }
            let small = max(time(1 << 16), .milliseconds(1))
            #expect(time(1 << 20) < small * 160, "\(piece)")
        }
    }

    @Test func `a lenient reader replaces values that are too deep or cannot be represented`() throws {
        let text = #"{"id":"x","a":\#(Self.nested(70)),"b":1e999,"c":"\ud800-","d":[{"e":"]"}]}"#
        #expect(Self.own(Array(text.utf8)) == nil)
        let value = try JSONValue(reading: Array(text.utf8), isLenient: true).object
        #expect(value?["id"] == "x" && value?["b"] == .null && value?["c"] == .null)
        #expect(value?["d"] == [["e": "]"]])
        #expect(throws: JSONError.self) {
            try JSONValue(reading: Array((String(repeating: "[", count: 70) + "\"]").utf8), isLenient: true)
        }
    }

    @Test func `a slice of an array is read on its own`() {
        #expect(JSONValue(json: Array(#"x{"a":1}y"#.utf8)[1..<8]) == ["a": 1])
    }

    @Test(arguments: UInt64(0)..<4) func `damaged JSON is what Foundation makes of it (Fuzz)`(seed: UInt64) {
        var random = SeededGenerator(seed: Fuzzing.seed(seed))
        let pieces = ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "null", "-", "0", ".", "e", "1"]
        var read = 0
        for _ in 0..<Fuzzing.rounds(1_500) {
            var bytes = Array(random.pick(Self.valid).utf8)
            for _ in 0..<(1 + random.below(3)) {
                let place = random.below(bytes.count + 1)
                switch random.below(3) {
                case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(random.below(8))
                case 1: bytes.removeSubrange(place..<min(bytes.count, place + random.below(6)))
                default: bytes.insert(contentsOf: random.pick(pieces).utf8, at: place)
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            _ = try? JSONValue(reading: bytes, isLenient: true)
            guard let value = Self.own(bytes) else {
                // Foundation also accepts other encodings, unpaired surrogates and deeper nesting.
                continue
            }
            read += 1
            #expect(Self.isAlike(value, Self.foundation(bytes)), "\(text)")
        }
        #expect(read > 100)
    }

    /// Whether two values are the same, apart from the last digits of a large number with a fraction, which Foundation
    /// sometimes reads as an integer.
    private static func isAlike(_ value: JSONValue, _ other: JSONValue?) -> Bool {
        if let left = value.double, let right = other?.double { return abs(left - right) <= abs(left) * 0x1p-52 }
        if let left = value.array, let right = other?.array {
            return left.count == right.count && zip(left, right).allSatisfy { isAlike($0, $1) }
        }
        if let left = value.object, let right = other?.object {
            return left.count == right.count && left.allSatisfy { isAlike($1, right[$0]) }
        }
        return value == other
    }
}

/// A value as Foundation reads it.
private struct Decoded: Decodable {
    var value: JSONValue

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let string = try? container.decode(String.self) {
            value = .string(string)
        } else if container.decodeNil() {
            value = .null
        } else if let object = try? container.decode([String: Decoded].self) {
            value = .object(object.mapValues(\.value))
        } else if let bool = try? container.decode(Bool.self) {
            value = .bool(bool)
        } else if let integer = try? container.decode(Int64.self) {
            value = .integer(integer)
        } else if let number = try? container.decode(Double.self) {
            value = .number(number)
        } else {
            value = .array(try container.decode([Decoded].self).map(\.value))
        }
    }
}
