import Globbing
import Testing
import TestKit

struct PathSamplesTests {
    private static func glob(_ pattern: String) -> Glob {
        do { return try Glob(pattern) } catch { preconditionFailure("\(pattern): \(error)") }
    }

    /// Pairs of patterns that match common paths.
    private static let pairs = [
        ("/in/*", "/in/*.jpg"), ("/in/*.x", "/in/a*"), ("/in/IMG_*", "/in/IMG_2024*.jpg"), ("/in/*b.jpg", "/in/a*.JPG"),
        ("/in/a*b*", "/in/*c*d"), ("/in/[a-c]*", "/in/[c-e]*"), ("/in/????-??-??*", "/in/2024-[0-1]*"),
        ("/in/**/*.txt", "/in/x/y/a.*"), ("/in/**", "/in/x/*/y/*.txt"), ("/**", "/in/deep/*"), ("/*/deep/*", "/in/**"),
        ("/in/{a,b}*.{jpg,png}", "/in/*b*.png"), ("/in/[é-ü]", "/in/[!a-z]"), ("/in/*", "/in/[[:digit:]][!0-8]"),
        ("/in/a?c*", "/in/ab*d"), ("/in/.*", "/in/.env"), ("/in/2024*", "/in/[0-9][0-9][0-9][0-9]-*.jpg"),
        ("/in/*_small.jpg", "/in/IMG_*.jpg"),
    ]

    @Test(arguments: pairs)
    private func `samples built from the words of another pattern include a common path`(one: String, other: String) {
        for (one, other) in [(Self.glob(one), Self.glob(other)), (Self.glob(other), Self.glob(one))] {
            let samples = one.samples(PathWords(of: [other], for: [one]))
            #expect(samples.allSatisfy { one.matches($0) })
            #expect(samples.contains { other.matches($0) }, "\(one) and \(other)")
        }
    }

    @Test func `samples are unique and limited in number`() {
        let samples = Self.glob("/in/*-*-*-*").samples(PathWords(), limit: 100)
        #expect(samples.count > 90 && samples.count <= 100)
        #expect(Set(samples).count == samples.count)
        #expect(Self.glob("/in/a.txt").samples(PathWords()) == [Array("/in/a.txt".utf8)])
    }

    // MARK: All short paths

    /// Paths of up to three names, which are built from one or two of these characters.
    private static let world: [[UInt8]] = {
        let characters = ["a", "b", "."]
        let two = characters.flatMap { first in characters.map { first + $0 } }
        let names = (characters + two + ["a.b", "b.a"]).filter { $0 != "." && $0 != ".." }
        let one = names.map { "/" + $0 }
        let pairs = one.flatMap { path in names.map { path + "/" + $0 } }
        let triples = pairs.flatMap { path in ["a", "b", ".a", "a.b"].map { path + "/" + $0 } }
        return (one + pairs + triples).map { Array($0.utf8) }
    }()

    private static func pattern(_ random: inout some RandomNumberGenerator) -> String {
        let parts = ["a", "b", "*", "**", "?", "*.b", "a*", "[ab]", "[!a]?", ".*", "{a,*b}", "a.b", "?.a"]
        return (0..<Int.random(in: 1...3, using: &random)).map { _ in
            "/" + (parts.randomElement(using: &random) ?? "a")
        }.joined()
    }

    @Test(arguments: 0..<20)
    func `a path that two patterns share is found among all short paths`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<30 {
            let one = Self.glob(Self.pattern(&random))
            let other = Self.glob(Self.pattern(&random))
            guard Self.world.contains(where: { one.matches($0) && other.matches($0) }) else { continue }
            let samples = one.samples(PathWords(of: [other], for: [one]))
            #expect(samples.contains { other.matches($0) }, "\(one) and \(other)")
        }
    }
}
