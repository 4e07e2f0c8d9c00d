import Globbing
import Testing
import TestKit

/// The reasons that filters give, for random filters and paths.
struct PathRefusalFuzzTests {
    @Test(.timeLimit(.minutes(15)), arguments: [1, 2, 3, 4] as [UInt64])
    func `a reason is given exactly for paths that do not match`(seed: UInt64) {
        var generator = SeededGenerator(seed: Fuzzing.seed(seed))
        var matched = 0
        var reasons: [String: Int] = [:]
        func set(_ patterns: [[UInt8]], _ options: Glob.Options) -> GlobSet {
            GlobSet(patterns.compactMap { $0.first == 0x2F ? nil : try? Glob($0, options: options) })
        }
        for _ in 0..<Fuzzing.rounds(2_000) {
            let patterns = (0...Int.random(in: 0...2, using: &generator)).map { _ in
                [0x2F] + GlobAgreementFuzzTests.makePattern(&generator)
            }
            let options = Glob.Options(matchesHidden: Int.random(in: 0..<4, using: &generator) == 0)
            let globs = patterns.compactMap { try? Glob($0, options: options) }
            let sets = (0..<3).map { _ in
                guard Int.random(in: 0..<4, using: &generator) == 0 else { return GlobSet([]) }
                return set([GlobAgreementFuzzTests.makePattern(&generator)], Glob.Options(matchesHidden: true))
            }
            let filter = PathFilter(
                globs: globs, exclude: sets[0], ignores: sets[1], outputs: sets[2],
                depth: Bool.random(using: &generator) ? nil : Int.random(in: 0...2, using: &generator))
            for _ in 0..<3 {
                let path = GlobAgreementFuzzTests.makePath(like: generator.pick(patterns), &generator)
                let refusal = filter.refusal(of: path)
                // A filter without globs matches nothing and has no glob to report.
                guard !globs.isEmpty else { continue }
                #expect((refusal == nil) == (filter.root(matching: path) != nil), "\(filter) and \(path)")
                guard let refusal else {
                    matched += 1
                    continue
                }
                reasons[String("\(refusal.reason)".prefix { $0 != "(" }), default: 0] += 1
            }
        }
        #expect(matched > 200)
        for word in ["outside", "above", "glob", "hidden", "depth", "excluded"] {
            #expect(reasons[word, default: 0] > 20, "\(word) came \(reasons[word, default: 0]) times")
        }
    }
}
