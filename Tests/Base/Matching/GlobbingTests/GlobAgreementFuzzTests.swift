import Globbing
import Testing
import TestKit

/// The matcher, compared with a slow and simple one on random patterns and paths.
struct GlobAgreementFuzzTests {
    /// They include the whole character `é` and its single bytes, so that characters are combined and split.
    static let letters: [[UInt8]] = [[0x61], [0x61], [0x62], [0x41], [0x2E], [0x2E], [0xC3, 0xA9], [0xC3], [0xA9]]
    static let pieces: [[UInt8]] = [
        "*", "*", "?", "[ab]", "[!a]", "[b\u{E9}]", "{a,.b}", "{,a}", "{a/b,*}",
    ].map { Array($0.utf8) }
    static let parts: [[UInt8]] = ["**", "**", "*", ".a", "a", "{**,b}"].map { Array($0.utf8) }

    static func makePattern(_ generator: inout SeededGenerator) -> [UInt8] {
        var pattern: [UInt8] = Bool.random(using: &generator) ? [0x2F] : []
        for number in 0...Int.random(in: 0...3, using: &generator) {
            if number > 0 { pattern.append(0x2F) }
            if Int.random(in: 0..<5, using: &generator) < 2 {
                pattern += generator.pick(parts)
            } else {
                for _ in 0...Int.random(in: 0...3, using: &generator) {
                    pattern += generator.pick(Bool.random(using: &generator) ? letters : pieces)
                }
            }
        }
        return pattern
    }

    /// Makes a path that resembles the pattern, because most random paths match nothing.
    static func makePath(like pattern: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var path: [UInt8] = []
        for byte in generator.pick(ReferenceGlob.expand(pattern)) {
            switch byte {
            case 0x2A, 0x3F, 0x5B, 0x5D, 0x21:
                for _ in 0..<Int.random(in: 0...2, using: &generator) {
                    path += Int.random(in: 0..<6, using: &generator) == 0 ? [0x2F] : generator.pick(letters)
                }
            default:
                path += Int.random(in: 0..<12, using: &generator) == 0 ? generator.pick(letters) : [byte]
            }
        }
        let names = path.split(separator: 0x2F).filter { !$0.elementsEqual([0x2E]) && !$0.elementsEqual([0x2E, 0x2E]) }
        let anchor: [UInt8] = pattern.first == 0x2F ? [0x2F] : []
        return anchor + Array(names.joined(separator: [0x2F]))
    }

    /// The directories above the path, topmost first.
    static func ancestors(of path: [UInt8]) -> [[UInt8]] {
        let top: [UInt8] = path.first == 0x2F ? [0x2F] : [0x2E]
        return [top] + path.indices.dropFirst().filter { path[$0] == 0x2F }.map { Array(path[..<$0]) }
    }

    @Test(.timeLimit(.minutes(15)), arguments: [1, 2, 3, 4] as [UInt64])
    func `the matcher agrees with a recursive matcher`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: Fuzzing.seed(seed))
        var compared = 0
        var matched = 0
        while compared < Fuzzing.rounds(6_000) {
            let pattern = Self.makePattern(&generator)
            let options = Glob.Options(
                matchesHidden: Int.random(in: 0..<4, using: &generator) == 0,
                isCaseSensitive: Int.random(in: 0..<4, using: &generator) == 0)
            // Invalid patterns, such as `a/..` or `{,a}`, are skipped.
            guard let glob = try? Glob(pattern, options: options) else { continue }
            let reference = ReferenceGlob(
                pattern, matchesHidden: options.matchesHidden, foldsExtension: !options.isCaseSensitive)
            for _ in 0..<4 {
                let path = Self.makePath(like: pattern, &generator)
                let isMatch = glob.matches(path)
                #expect(isMatch == reference.matches(path), "\(glob) and \(path), \(options)")
                let directories = Self.ancestors(of: path)
                #expect(!isMatch || directories.last.map { glob.canMatch(in: $0) } == true, "\(glob) and \(path)")
                let isBelowRoot = glob.root == directories[0] || path.starts(with: glob.root + [0x2F])
                #expect(!isMatch || isBelowRoot, "\(glob) and \(path)")
                for directory in directories {
                    let canMatch = glob.canMatch(below: directory)
                    #expect(!isMatch || canMatch, "\(glob) below \(directory), which holds \(path)")
                    let names = directory == [0x2E] ? [] : directory
                    #expect(canMatch == reference.canMatch(below: names), "\(glob) below \(directory), \(options)")
                    let canMatchIn = glob.canMatch(in: directory)
                    #expect(canMatchIn == reference.canMatch(in: names), "\(glob) in \(directory), \(options)")
                }
                compared += 1
                matched += isMatch ? 1 : 0
            }
        }
        // If the generator produced only mismatches, the test would prove little.
        #expect(matched > Fuzzing.rounds(1_200))
    }

    @Test func `no match is deeper than the reported depth`() throws {
        var generator = SeededGenerator(seed: Fuzzing.seed(5))
        for _ in 0..<Fuzzing.rounds(5_000) {
            let pattern = Self.makePattern(&generator)
            guard let glob = try? Glob(pattern), let depth = glob.depth else { continue }
            let path = Self.makePath(like: pattern, &generator)
            guard glob.matches(path) else { continue }
            let rootLevels = glob.root == [0x2E] ? 0 : glob.root.split(separator: 0x2F).count
            #expect(path.split(separator: 0x2F).count - rootLevels - 1 <= depth, "\(glob) and \(path)")
        }
    }
}
