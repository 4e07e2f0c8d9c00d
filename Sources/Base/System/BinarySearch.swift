extension Range where Bound: FixedWidthInteger {
    /// Returns the first number for which the condition is true, by bisection; the upper bound if there is none.
    ///
    /// The condition must be false for all numbers before that one, and true for all after it.
    package func bisected(where condition: (Bound) -> Bool) -> Bound {
        var (low, high) = (lowerBound, upperBound)
        while low < high {
            let middle = low + (high - low) / 2
            if condition(middle) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
