import Rules
import System
import Testing
import TestKit

struct JobIDTests {
    static func make(_ milliseconds: Int64, using generator: inout SeededGenerator) -> JobID {
        JobID(
            now: Timestamp(seconds: milliseconds / 1_000, nanoseconds: UInt32(milliseconds % 1_000) * 1_000_000),
            random: (generator.next(), UInt16.random(in: 0...UInt16.max, using: &generator)))
    }

    @Test func `an id has 26 characters of an alphabet without I, L, O and U`() {
        var generator = SeededGenerator(seed: 7)
        let alphabet = Set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
        for milliseconds in [0, 1, 1_790_000_000_000, (1 << 48) - 1] as [Int64] {
            let id = Self.make(milliseconds, using: &generator).description
            #expect(id.count == 26)
            #expect(alphabet.isSuperset(of: id))
        }
    }

    @Test func `ids sort by creation time`() {
        var generator = SeededGenerator(seed: 8)
        var milliseconds: Int64 = 0
        var former = Self.make(0, using: &generator).description
        for _ in 0..<2_000 {
            milliseconds += Int64.random(in: 1...3_000_000_000, using: &generator)
            let id = Self.make(milliseconds, using: &generator).description
            #expect(former < id)
            former = id
        }
    }

    @Test func `ids of the same millisecond have 80 random bits`() {
        let now = Timestamp(seconds: 1_790_000_000, nanoseconds: 5)
        var ids: Set<JobID> = [JobID(now: now, random: (0, 0))]
        for bit in 0..<64 { ids.insert(JobID(now: now, random: (1 << UInt64(bit), 0))) }
        for bit in 0..<16 { ids.insert(JobID(now: now, random: (0, 1 << UInt16(bit)))) }
        ids.insert(JobID(now: now, random: (.max, .max)))
        #expect(ids.count == 82)
        #expect(JobID(now: now, random: (.max, .max)).description.hasSuffix("ZZZZZZZZZZZZZZZZ"))
        #expect(JobID(now: now, random: (0, 0)).description.hasSuffix("0000000000000000"))
    }

    @Test func `ids of the same millisecond sort in the order in which a source creates them`() {
        var source = JobIDSource()
        let now = Timestamp(seconds: 1_790_000_000, nanoseconds: 5)
        let ids = (0..<1_000).map { _ in source.next(now: now).description }
        #expect(ids == ids.sorted() && Set(ids).count == 1_000)
    }

    @Test func `two sources never create the same id`() {
        let now = Timestamp(seconds: 1_790_000_000, nanoseconds: 5)
        var sources = (JobIDSource(), JobIDSource())
        let ids = (0..<100).flatMap { _ in [sources.0.next(now: now), sources.1.next(now: now)] }
        #expect(Set(ids).count == 200)
    }

    @Test func `the time part is that of a ULID`() {
        // The example in the specification: 01ARZ3NDEK is 1469922850259.
        let id = JobID(now: Timestamp(seconds: 1_469_922_850, nanoseconds: 259_000_000), random: (0, 0))
        #expect(id.description.hasPrefix("01ARZ3NDEK"))
    }

    @Test func `a clock before 1970 is accepted`() {
        let id = JobID(now: Timestamp(seconds: -5, nanoseconds: 0), random: (1, 1))
        #expect(id.description.hasPrefix("0000000000"))
    }
}
