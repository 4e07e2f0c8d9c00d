import Glibc

/// The length and the seeds of tests with random input.
///
/// By default they are short and the same each time. `make soak` sets `FUZZ_ROUNDS`, a factor, and `FUZZ_SEED`, and
/// prints both; to repeat a failure: `FUZZ_ROUNDS=20 FUZZ_SEED=7 swift test --filter 'Fuzz|MutationTests'`.
package enum Fuzzing {
    private static let factor = number("FUZZ_ROUNDS").map { max(1, Int($0)) } ?? 1
    private static let base = number("FUZZ_SEED") ?? 0

    /// The seed of one case.
    package static func seed(_ number: UInt64) -> UInt64 { base &* 1_000_003 &+ number }

    /// The number of rounds, given the default number.
    package static func rounds(_ count: Int) -> Int { count * factor }

    private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
}
