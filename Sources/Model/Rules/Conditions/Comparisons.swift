/// The bounds of a number in the form of a rules file: `> 1 KB`, `1 KB..5 MB`.
package struct Comparisons<Value: Comparable & Hashable & Sendable>: Sendable, Hashable {
    package enum Relation: String, Sendable, Hashable, CaseIterable {
        case less = "<"
        case atMost = "<="
        case more = ">"
        case atLeast = ">="
        case equal = "="
        case unequal = "!="
    }

    package struct Bound: Sendable, Hashable {
        package var relation: Relation
        package var value: Value

        package init(_ relation: Relation, _ value: Value) { (self.relation, self.value) = (relation, value) }

        func holds(_ found: Value) -> Bool {
            switch relation {
            case .less: found < value
            case .atMost: found <= value
            case .more: found > value
            case .atLeast: found >= value
            case .equal: found == value
            case .unequal: found != value
            }
        }
    }

    /// The bounds, all of which must hold.
    package var bounds: [Bound]
    /// The comparison as written, for messages.
    package var text: String

    package init(_ bounds: [Bound], text: String) { (self.bounds, self.text) = (bounds, text) }

    package func hold(_ found: Value) -> Bool { bounds.allSatisfy { $0.holds(found) } }

    /// Whether no value satisfies the bounds, as far as the bounds alone show it.
    package var isContradiction: Bool {
        bounds.contains { lower in
            bounds.contains { upper in
                switch (lower.relation, upper.relation) {
                case (.more, .less), (.more, .atMost), (.atLeast, .less): lower.value >= upper.value
                case (.atLeast, .atMost): lower.value > upper.value
                case (.equal, _): !upper.holds(lower.value)
                default: false
                }
            }
        }
    }
}

/// Parses comparisons; the caller parses the values.
package enum ComparisonText {
    /// Parses `> VALUE`, one of the other relations, or the inclusive range `VALUE..VALUE`.
    ///
    /// - Parameters:
    ///   - text: The comparison.
    ///   - noun: The name of the quantity for messages, such as `size`.
    ///   - allowsBare: Whether a value without a relation means equality.
    ///   - parse: Parses a value.
    /// - Returns: The bounds, all of which must hold.
    /// - Throws: The first error.
    package static func parse<Value>(
        _ text: String, noun: String, allowsBare: Bool = false,
        _ parse: (String) throws(Problem) -> Value
    ) throws(Problem) -> [Comparisons<Value>.Bound] {
        let trimmed = trim(text[...])
        let shown = trimmed.count > 40 ? trimmed.prefix(40) + "…" : trimmed
        if let dots = trimmed.firstRange(of: "..") { return try range(trimmed, dots, shown, noun: noun, parse) }
        let sign = trimmed.prefix { "<>=!≤≥≠".contains($0) }
        let rest = String(trim(trimmed.dropFirst(sign.count)))
        if sign.isEmpty {
            let value = try parse(rest)
            guard allowsBare else {
                throw Problem(
                    "invalid comparison '\(shown)'", help: "write '>= \(shown)', '<= \(shown)' or '= \(shown)'")
            }
            return [Comparisons.Bound(.equal, value)]
        }
        guard let relation = Comparisons<Value>.Relation(rawValue: sign == "==" ? "=" : String(sign)) else {
            let meant = ["=>": ">=", "=<": "<=", "≥": ">=", "≤": "<=", "≠": "!=", "<>": "!=", "!": "!="][String(sign)]
            throw Problem(
                "invalid comparison '\(sign)'",
                help: meant.map { "write '\($0) \(rest)'" } ?? "write one of <, <=, >, >=, = and !=")
        }
        guard !rest.isEmpty else {
            throw Problem("'\(shown)' has no value to compare with", help: "write a \(noun) after it")
        }
        return [Comparisons.Bound(relation, try parse(rest))]
    }

    private static func range<Value>(
        _ text: Substring, _ dots: Range<Substring.Index>, _ shown: Substring, noun: String,
        _ parse: (String) throws(Problem) -> Value
    ) throws(Problem) -> [Comparisons<Value>.Bound] {
        let low = String(trim(text[..<dots.lowerBound]))
        let high = String(trim(text[dots.upperBound...]))
        if low.isEmpty || high.isEmpty {
            let value = low.isEmpty ? high : low
            let relation = low.isEmpty ? "<=" : ">="
            throw Problem(
                "the range '\(shown)' has only one end",
                help: value.isEmpty ? "write both, as in 'LOW..HIGH'" : "write '\(relation) \(value)'")
        }
        if let sign = [low, high].compactMap(\.first).first(where: { "<>=!".contains($0) }) {
            throw Problem(
                "the range '\(shown)' contains '\(sign)'",
                help: "write a range without it, or a list of two comparisons")
        }
        let bounds = [
            Comparisons<Value>.Bound(.atLeast, try parse(low)), Comparisons<Value>.Bound(.atMost, try parse(high)),
        ]
        guard bounds[0].value <= bounds[1].value else {
            throw Problem("the range '\(shown)' starts after its end", help: "write '\(high)..\(low)'")
        }
        return bounds
    }

    private static func trim(_ text: Substring) -> Substring {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
