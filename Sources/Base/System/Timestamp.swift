/// A time of the system clock with nanoseconds, as file systems store it.
public struct Timestamp: Hashable, Sendable, Comparable, Codable {
    /// Whole seconds since 1970-01-01T00:00:00Z; negative before.
    public var seconds: Int64
    /// Nanoseconds after `seconds`, 0 to 999,999,999.
    public var nanoseconds: UInt32

    public init(seconds: Int64, nanoseconds: UInt32) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Creates a timestamp from the nanoseconds since 1970.
    package init(wholeNanoseconds: Int64) {
        var (seconds, rest) = wholeNanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        if rest < 0 { (seconds, rest) = (seconds - 1, rest + 1_000_000_000) }
        self.init(seconds: seconds, nanoseconds: UInt32(rest))
    }

    /// The nanoseconds since 1970; another time is meant if it is centuries away.
    package var wholeNanoseconds: Int64 { seconds &* 1_000_000_000 &+ Int64(nanoseconds) }

    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    /// Returns the duration from the other timestamp to this one; negative if this one is earlier.
    ///
    /// A file may have any timestamp, so the result is limited to 2^62 seconds in either direction.
    public func since(_ other: Timestamp) -> Duration {
        let (difference, isOverflow) = seconds.subtractingReportingOverflow(other.seconds)
        let bound: Int64 = 1 << 62
        guard !isOverflow, (-bound...bound).contains(difference) else {
            return .seconds(seconds > other.seconds ? bound : -bound)
        }
        return .seconds(difference) + .nanoseconds(Int64(nanoseconds) - Int64(other.nanoseconds))
    }

    /// Returns the timestamp moved by a duration of the system clock, exact to the nanosecond.
    public func advanced(by duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        let nanoseconds = Int64(nanoseconds) + attoseconds / 1_000_000_000
        let carry = nanoseconds >= 1_000_000_000 ? 1 : (nanoseconds < 0 ? -1 : 0) as Int64
        return Timestamp(
            seconds: self.seconds &+ seconds &+ carry, nanoseconds: UInt32(nanoseconds - carry * 1_000_000_000))
    }
}

extension Timestamp: CustomStringConvertible {
    /// The timestamp in RFC 3339 and UTC, with as many decimals as necessary: `2026-11-21T07:04:23.118204511Z`.
    ///
    /// A year that does not fit into four digits has as many as necessary, and a year before 0 has a minus sign.
    public var description: String {
        // Rounds down without addition, which could overflow: a file may have any timestamp.
        let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let days = remainder < 0 ? quotient - 1 : quotient
        let second = Int(remainder < 0 ? remainder + 86_400 : remainder)
        let (year, month, day) = Self.civil(days: days)
        // The longest result, for a date some 292 billion years from now, needs 40 bytes. The digits are written one by
        // one, because each request to a plugin has four timestamps: concatenating strings took a sixth of the
        // instructions of an action's thread.
        return String(unsafeUninitializedCapacity: 48) { buffer in
            var text = Characters(buffer: buffer)
            if year < 0 { text.add("-") }
            text.add(year.magnitude, 4, "-")
            text.add(month.magnitude, 2, "-")
            text.add(day.magnitude, 2, "T")
            text.add(second.magnitude / 3600, 2, ":")
            text.add(second.magnitude / 60 % 60, 2, ":")
            text.add(second.magnitude % 60, 2)
            if nanoseconds > 0 {
                text.add(".")
                text.add(UInt(nanoseconds), 9)
                text.removeZeros()
            }
            text.add("Z")
            return text.count
        }
    }

    /// A string written from the front.
    private struct Characters {
        let buffer: UnsafeMutableBufferPointer<UInt8>
        private(set) var count = 0

        mutating func add(_ character: Unicode.Scalar) {
            buffer[count] = UInt8(ascii: character)
            count += 1
        }

        /// Appends a number, padded with zeros to a width, and the character after it.
        mutating func add(_ number: UInt, _ width: Int, _ character: Unicode.Scalar? = nil) {
            var (length, rest) = (1, number / 10)
            while rest > 0 || length < width {
                length += 1
                rest /= 10
            }
            rest = number
            for index in (count..<(count + length)).reversed() {
                buffer[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            }
            count += length
            if let character { add(character) }
        }

        /// Removes the trailing zeros.
        mutating func removeZeros() { while buffer[count - 1] == UInt8(ascii: "0") { count -= 1 } }
    }

    /// The proleptic Gregorian date of a day count since 1970-01-01, by Hinnant's algorithm.
    private static func civil(days: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (Int(year), Int(month), Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1))
    }
}
