/// One character of a name: a Unicode scalar, or a stray byte.
///
/// A byte that is not part of valid UTF-8 has a value above that of every scalar. So characters compare as numbers, and
/// a stray byte equals only itself.
struct GlobCharacter {
    let value: UInt32
    /// The length in bytes, 1 to 4.
    let length: Int

    /// The value of the stray byte 0; the first above the scalars.
    static let strayBase: UInt32 = 0x11_0000

    /// Reads the character at a position, which must not be the end.
    ///
    /// Overlong forms, surrogates and values above U+10FFFF are not UTF-8: each
    /// of their bytes is a character of its own.
    @inline(__always)
    init(_ bytes: Span<UInt8>, at position: Int, end: Int) {
        let first = bytes[position]
        if first < 0x80 {
            self.init(value: UInt32(first), length: 1)
        } else {
            self.init(multibyte: bytes, at: position, end: end)
        }
    }

    private init(value: UInt32, length: Int) { (self.value, self.length) = (value, length) }

    private init(multibyte bytes: Span<UInt8>, at position: Int, end: Int) {
        let first = bytes[position]
        let count = Self.expectedLength(first)
        var scalar = UInt32(first) & (0x7F >> UInt32(count))
        var isValid = count > 1 && end - position >= count
        if isValid {
            for offset in 1..<count {
                let byte = bytes[position + offset]
                isValid = isValid && UTF8.isContinuation(byte)
                scalar = scalar << 6 | UInt32(byte & 0x3F)
            }
        }
        let least: UInt32 = count == 2 ? 0x80 : count == 3 ? 0x800 : 0x1_0000
        if isValid, scalar >= least, Unicode.Scalar(scalar) != nil {
            self.init(value: scalar, length: count)
        } else {
            self.init(value: Self.strayBase + UInt32(first), length: 1)
        }
    }

    /// Returns the expected length in bytes of a sequence with this first byte.
    static func expectedLength(_ first: UInt8) -> Int {
        switch first {
        case 0xC0..<0xE0: 2
        case 0xE0..<0xF0: 3
        case 0xF0..<0xF8: 4
        default: 1
        }
    }
}

/// The characters between `[` and `]`.
struct GlobClass: Sendable {
    private var ranges: [ClosedRange<UInt32>]
    private var isNegated: Bool
    /// The answer for every ASCII character, negation and case included.
    private var ascii: UInt128 = 0

    init(_ ranges: [ClosedRange<UInt32>], isNegated: Bool, foldsCase: Bool = false) {
        (self.ranges, self.isNegated) = (ranges, isNegated)
        for value in UInt32(0)..<128 {
            var isListed = ranges.contains { $0.contains(value) }
            if foldsCase, (0x61...0x7A).contains(value | 0x20) {
                // A letter in its other case.
                isListed = isListed || ranges.contains { $0.contains(value ^ 0x20) }
            }
            if isListed != isNegated { ascii |= 1 << UInt128(value) }
        }
    }

    /// Returns the same class without case.
    func foldingCase() -> GlobClass { GlobClass(ranges, isNegated: isNegated, foldsCase: true) }

    func contains(_ character: UInt32) -> Bool {
        if character < 128 { return ascii &>> UInt128(character) & 1 == 1 }
        for range in ranges where range.contains(character) { return !isNegated }
        return isNegated
    }

    /// The characters at which it starts or stops matching.
    var bounds: [UInt32] { ranges.flatMap { [$0.lowerBound, $0.upperBound, $0.upperBound + 1] } }

    /// The names that may appear between `[:` and `:]`, for ASCII as in the C locale.
    static let names: [(name: String, ranges: [ClosedRange<UInt32>])] = [
        ("alnum", [0x30...0x39, 0x41...0x5A, 0x61...0x7A]),
        ("alpha", [0x41...0x5A, 0x61...0x7A]),
        ("blank", [0x09...0x09, 0x20...0x20]),
        ("cntrl", [0x00...0x1F, 0x7F...0x7F]),
        ("digit", [0x30...0x39]),
        ("graph", [0x21...0x7E]),
        ("lower", [0x61...0x7A]),
        ("print", [0x20...0x7E]),
        ("punct", [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E]),
        ("space", [0x09...0x0D, 0x20...0x20]),
        ("upper", [0x41...0x5A]),
        ("xdigit", [0x30...0x39, 0x41...0x46, 0x61...0x66]),
    ]
}
