import Glibc

/// A histogram of durations with logarithmic classes; a quantile needs little memory and is accurate to a tenth.
package struct LogHistogram: Sendable, Hashable {
    /// The number of classes per doubling of the duration.
    private static let fineness = 4.0
    private static let least = 0.0001
    private static let classes = 112

    private var counts = [UInt32](repeating: 0, count: LogHistogram.classes)
    private var total = 0

    package init() {}

    package mutating func add(_ duration: Duration) {
        let seconds = max(duration / .seconds(1), Self.least)
        // A quarter of an octave each; the last class contains everything longer than about seven hours.
        let location = min(Self.classes - 1, Int(log2(seconds / Self.least) * Self.fineness))
        counts[location] &+= 1
        total += 1
    }

    /// Returns the duration that this share of all durations does not exceed, 0.5 for the median; nil if there are
    /// none.
    package func quantile(_ share: Double) -> Duration? {
        guard total > 0 else { return nil }
        let wanted = max(1, Int((Double(total) * share).rounded(.up)))
        var seen = 0
        for (location, count) in counts.enumerated() {
            seen += Int(count)
            if seen >= wanted { return .seconds(Self.least * exp2((Double(location) + 0.5) / Self.fineness)) }
        }
        return nil
    }
}
