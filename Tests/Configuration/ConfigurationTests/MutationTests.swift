import Configuration
import Rules
import Testing
import TestKit

/// Loading of rules files that are damaged at random, in the same way each time.
struct MutationTests {
    /// The SplitMix64 generator: short, and the same on every machine.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
            return value ^ value >> 31
        }
    }

    /// Bytes with a meaning in YAML, globs or placeholders, and some without any meaning.
    private static let interesting =
        Array("{}[]()*&!|>%@`\"'\\#,:?-~$./ \t\r\n0aé日\u{85}\u{2028}\u{FEFF}".utf8) + [
            0, 1, 0x7F, 0x80, 0xC2, 0xE2, 0xFF,
        ]

    private static func damage(_ bytes: [UInt8], _ random: inout Generator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let location = Int.random(in: 0...bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where location < bytes.count: bytes[location] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1 where location < bytes.count: bytes.remove(at: location)
            case 2: bytes.insert(interesting.randomElement(using: &random) ?? 0, at: location)
            case 3 where location < bytes.count: bytes[location] = interesting.randomElement(using: &random) ?? 0
            case 4:
                let end = min(bytes.count, location + Int.random(in: 0...20, using: &random))
                bytes.removeSubrange(location..<end)
            default:
                let end = min(bytes.count, location + Int.random(in: 0...20, using: &random))
                bytes.insert(contentsOf: bytes[location..<end], at: Int.random(in: 0...bytes.count, using: &random))
            }
        }
        return bytes
    }

    /// Returns the lengths of the lines, as an editor counts lines.
    private static func lines(_ bytes: [UInt8]) -> [Int] {
        let text = String(decoding: bytes, as: UTF8.self)
        var lengths = [0]
        var scalars = text.unicodeScalars[...]
        while let scalar = scalars.popFirst() {
            if scalar == "\r", scalars.first == "\n" { scalars.removeFirst() }
            if scalar == "\n" || scalar == "\r" { lengths.append(0) } else { lengths[lengths.count - 1] += 1 }
        }
        return lengths
    }

    @Test(.timeLimit(.minutes(15)), arguments: 0..<10)
    func `for any file, loading terminates and diagnostics point into the file`(seed: Int) {
        let files = RuleFixture.all.map(\.bytes).filter { $0.count < 2_000 }
        #expect(files.count > 50)
        var random = Generator(state: Fuzzing.seed(UInt64(seed)))
        withTempTree { tree in
            let path = tree.path("damaged.yaml")
            let loader = makeLoader(in: tree.root)
            for _ in 0..<Fuzzing.rounds(500) {
                let bytes = Self.damage(files.randomElement(using: &random) ?? [], &random)
                TestFile.write(path, bytes)
                let loaded = loader.load(["damaged.yaml"])
                let lines = Self.lines(bytes)
                for diagnostic in loaded.diagnostics where diagnostic.location.line > 0 {
                    let isInside =
                        diagnostic.location.line <= lines.count && diagnostic.location.column >= 1
                        && diagnostic.location.column <= lines[diagnostic.location.line - 1] + 1
                    #expect(isInside, "\(diagnostic.location) in \(bytes)")
                    #expect(diagnostic.length >= 1)
                    #expect(diagnostic.caret <= diagnostic.sourceLine?.unicodeScalars.count ?? 0)
                }
                #expect(!DiagnosticText.text(of: loaded.diagnostics).contains("\u{1B}"))
            }
        }
    }
}
