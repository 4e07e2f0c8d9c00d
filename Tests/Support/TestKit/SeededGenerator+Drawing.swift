extension SeededGenerator {
    /// Makes the generator of a part, such as one worker in one round.
    package init(seed: UInt64, parts: UInt64...) {
        self.init(seed: seed)
        for part in parts { self = SeededGenerator(seed: next() ^ (part &* 0xD1B5_4A32_D192_ED03)) }
    }

    /// A number from 0 up to, and without, the bound; unlike the standard library's the same with every compiler.
    package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    /// True once in so many times.
    package mutating func isOne(in number: Int) -> Bool { below(number) == 0 }

    package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
