extension Condition {
    /// Whether no file can satisfy both conditions, as far as the conditions alone show it.
    package func excludes(_ other: Condition) -> Bool {
        switch (self, other) {
        case (.all(let parts), _): parts.contains { $0.excludes(other) }
        case (_, .all): other.excludes(self)
        case (.any(let parts), _): !parts.isEmpty && parts.allSatisfy { $0.excludes(other) }
        case (_, .any): other.excludes(self)
        case (.not, .not): false
        case (.not(.any(let parts)), _): parts.contains(other)
        case (.not(let part), _): part == other
        case (_, .not): other.excludes(self)
        case (.size(let one), .size(let two)): one.excludes(two)
        case (.age(let one), .age(let two)): one.excludes(two)
        case (.mime(let one), .mime(let two)): !one.contains { type in two.contains { type.meets($0) } }
        default: false
        }
    }

    /// Whether it holds only some time after a change to the file.
    package var isOfAge: Bool {
        switch self {
        case .age(let age): age.bounds.contains { [.more, .atLeast, .equal].contains($0.relation) }
        case .all(let parts): parts.contains(where: \.isOfAge)
        case .any(let parts): !parts.isEmpty && parts.allSatisfy(\.isOfAge)
        default: false
        }
    }
}

extension Comparisons {
    fileprivate func excludes(_ other: Comparisons) -> Bool {
        Comparisons(bounds + other.bounds, text: "").isContradiction
    }
}

extension Condition.MediaPattern {
    /// Whether a content type can match both patterns.
    fileprivate func meets(_ other: Condition.MediaPattern) -> Bool {
        (type == nil || other.type == nil || type == other.type)
            && (subtype == nil || other.subtype == nil || subtype == other.subtype)
    }
}
