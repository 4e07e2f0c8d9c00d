import PluginProtocol
@testable import Programs
import System
import Testing
import TestKit

/// Plugins may print anything: reading terminates, and the result stays within the limits of the protocol.
struct ResponseFuzzTests {
    private static let samples = [
        #"{"outcome":"succeeded","message":"5 words","values":{"words":5,"a":[1,{"b":null}]}}"#,
        #"{"outcome":"retry","retry_after":1.5,"code":"net.down","message":"é\n\u0000\ud83d\ude00"}"#,
        #"{"outcome":"failed","outputs":["a","/b/c",{"base64":"/w=="},{"base64":"?"}]}"#,
        #"{"outcome":"succeeded","results":[{"outcome":"skipped"},null,{"outcome":"not_ready","retry_after":-1},5]}"#,
        #" {"outcome":"succeeded","retry_after":1e308,"values":{"x":18446744073709551616}} "#,
    ]
    private static let pieces =
        ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "null", "true", "1e999", "-", "0", "\"outcome\":"]
        .map { Array($0.utf8) } + [[0], [0xFF], [0xC3], [0x0A]]

    private static func damage(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<(1 + random.below(4)) {
            let location = random.below(bytes.count + 1)
            switch random.below(4) {
            case 0 where location < bytes.count: bytes[location] ^= 1 << UInt8(random.below(8))
            case 1: bytes.removeSubrange(location..<min(bytes.count, location + random.below(12)))
            case 2:
                let end = min(bytes.count, location + random.below(30))
                bytes.insert(contentsOf: bytes[location..<end], at: random.below(bytes.count + 1))
            default: bytes.insert(contentsOf: random.pick(pieces), at: location)
            }
        }
        return bytes
    }

    private static func check(_ bytes: [UInt8]) -> Bool {
        var reader = ResponseReader(directory: "/srv/in")
        guard case .response(let response) = reader.read(bytes) else { return false }
        for each in [response] + reader.results.compactMap(\.self) {
            #expect((each.message?.utf8.count ?? 0) <= 4_096)
            #expect((each.code?.utf8.count ?? 0) <= 64)
            #expect((each.retryAfter ?? 0) >= 0)
            #expect(each.retryAfter?.isFinite ?? true)
            for output in each.outputs ?? [] { #expect(!output.bytes.contains(0)) }
        }
        return true
    }

    @Test(arguments: UInt64(0)..<8) func `a damaged response is read or refused`(seed: UInt64) {
        var random = SeededGenerator(seed: Fuzzing.seed(seed))
        var read = 0
        for _ in 0..<Fuzzing.rounds(1_500) {
            let sample = Array(random.pick(Self.samples).utf8)
            if Self.check(Self.damage(sample, &random)) { read += 1 }
        }
        #expect(read > 10)
        for sample in Self.samples { #expect(Self.check(Array(sample.utf8))) }
    }

    @Test(arguments: ["[", "{\"a\":", "{\"outcome\":\"succeeded\",\"values\":{\"a\":["])
    func `deep nesting is refused and does not crash the reader`(piece: String) {
        let bytes = Array(String(repeating: piece, count: 100_000).utf8)
        #expect(!Self.check(bytes))
        let closed =
            "{\"outcome\":\"succeeded\",\"values\":{\"a\":" + String(repeating: "[", count: 400)
            + String(repeating: "]", count: 400) + "}}"
        var reader = ResponseReader(directory: "/srv/in")
        guard case .unreadable(let reason) = reader.read(Array(closed.utf8)) else {
            Issue.record("it is read")
            return
        }
        #expect(reason == "is nested more than 64 levels deep")
    }
}
