import Glibc

/// How long tests with random input go on, and with which seeds.
///
/// By themselves they are short, and the same each time. `make soak` sets
/// `FUZZ_ROUNDS`, a factor, and `FUZZ_SEED`, which a failure is repeated with.
package enum Fuzzing {
    private static let factor = number("FUZZ_ROUNDS").map { max(1, Int($0)) } ?? 1
    private static let base = number("FUZZ_SEED") ?? 0

    /// The seed of one case.
    package static func seed(_ number: UInt64) -> UInt64 { base &* 1_000_003 &+ number }

    /// How often something is tried that is tried so often by itself.
    package static func rounds(_ count: Int) -> Int { count * factor }

    private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
}
