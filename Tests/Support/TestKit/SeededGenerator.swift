/// A random number generator with the same sequence in every run (SplitMix64).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Creates the generator for one part of a run, such as one worker in one round.
    package init(seed: UInt64, parts: UInt64...) {
        self.init(seed: seed)
        for part in parts { self = SeededGenerator(seed: next() ^ (part &* 0xD1B5_4A32_D192_ED03)) }
    }

    /// Returns a number from 0 up to, but not including, the bound.
    ///
    /// Unlike the standard library's, the sequence does not depend on the compiler.
    package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    /// Returns true in one of `number` cases on average.
    package mutating func isOne(in number: Int) -> Bool { below(number) == 0 }

    package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Returns an element with a probability proportional to its weight.
    package mutating func pick<Element>(weighted elements: [(Int, Element)]) -> Element {
        var rest = below(elements.reduce(0) { $0 + $1.0 })
        for (weight, element) in elements {
            if rest < weight { return element }
            rest -= weight
        }
        preconditionFailure("a number below the sum of all weights is in one of them")
    }
}
