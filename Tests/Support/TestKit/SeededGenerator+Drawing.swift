extension SeededGenerator {
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
}
