// Both loops below move forward and remember only the last `*` or `**`: if the part after it fails, that wildcard is
// extended by one step. Earlier wildcards never need to be extended, because the leftmost match of the part between two
// stars leaves the most of the path to the second. So the time is at most proportional to the length of the path times
// the length of the pattern, and nothing is allocated.

extension GlobProgram {
    /// The goal of the walk along a path.
    private enum Goal {
        /// The pattern ends with the path.
        case whole
        /// The pattern continues where the path ends.
        case below
        /// The pattern continues there with one name.
        case inside
    }

    /// Whether the whole path matches.
    func matches(_ path: Span<UInt8>) -> Bool {
        guard path.count > lead.count, starts(path) else { return false }
        for alternative in alternatives {
            if let suffix = alternative.suffix {
                let start = path.count - suffix.count
                guard start >= lead.count, holds(path, suffix, at: start) else { continue }
            }
            if walk(path, from: lead.count, along: alternative.components, to: .whole) { return true }
        }
        return false
    }

    /// Whether a path strictly below the directory could match.
    func canMatch(below directory: Span<UInt8>) -> Bool {
        if directory.isEmpty || directory.count == 1 && directory[0] == .dot { return !isAbsolute }
        if directory.count < lead.count { return isRootOrAbove(directory) }
        guard starts(directory) else { return false }
        if directory.count == lead.count { return isAbsolute && lead.count == 1 }
        return alternatives.contains { walk(directory, from: lead.count, along: $0.components, to: .below) }
    }

    /// Whether a path directly in the directory could match.
    func canMatch(in directory: Span<UInt8>) -> Bool {
        guard canMatch(below: directory) else { return false }
        let isTop = directory.isEmpty || directory.count == 1 && directory[0] == .dot
        let length = isTop ? 0 : directory.count
        let rootLength = lead.count > 1 ? lead.count - 1 : lead.count
        if length <= rootLength { return length == rootLength && alternatives.contains { isOneName($0.components) } }
        return alternatives.contains { walk(directory, from: lead.count, along: $0.components, to: .inside) }
    }

    /// Whether the components can match a single name.
    private func isOneName(_ components: Range<Int>) -> Bool {
        components.count { !self.components[$0].isAnyDirectories } == 1
    }

    private func starts(_ path: Span<UInt8>) -> Bool {
        lead.indices.allSatisfy { path[$0] == lead[$0] }
    }

    /// Whether a directory shorter than the lead is the root or contains it.
    private func isRootOrAbove(_ directory: Span<UInt8>) -> Bool {
        (0..<directory.count).allSatisfy { directory[$0] == lead[$0] }
            && (lead[directory.count] == .slash || directory.count == 1 && isAbsolute)
    }

    /// Matches the components of an alternative against those of a path.
    private func walk(_ path: Span<UInt8>, from start: Int, along components: Range<Int>, to goal: Goal) -> Bool {
        var position = start
        var current = components.lowerBound
        var retry = -1
        var retryPosition = 0
        while true {
            // There is no slash after the last name, so the end is count + 1.
            let isAtEnd = position > path.count
            if current < components.upperBound {
                if isAtEnd, goal == .below { return true }
                if isAtEnd, goal == .inside, isOneName(current..<components.upperBound) { return true }
                let component = self.components[current]
                if component.isAnyDirectories {
                    current += 1
                    retry = current
                    retryPosition = position
                    continue
                }
                if !isAtEnd {
                    let end = Self.endOfName(path, from: position)
                    if matches(path, position..<end, component) {
                        position = end + 1
                        current += 1
                        continue
                    }
                }
            } else if isAtEnd, goal == .whole {
                return true
            }
            guard retry >= 0, retryPosition <= path.count else { return false }
            let end = Self.endOfName(path, from: retryPosition)
            guard end > retryPosition, matchesHidden || path[retryPosition] != .dot else { return false }
            retryPosition = end + 1
            position = retryPosition
            current = retry
        }
    }

    static func endOfName(_ path: Span<UInt8>, from start: Int) -> Int {
        var end = start
        while end < path.count, path[end] != .slash { end += 1 }
        return end
    }

    /// Matches one name against one component.
    func matches(_ path: Span<UInt8>, _ name: Range<Int>, _ component: GlobComponent) -> Bool {
        guard !name.isEmpty else { return false }
        if path[name.lowerBound] == .dot, !component.startsWithDot, !matchesHidden { return false }
        var end = name.upperBound
        var lastToken = component.tokens.upperBound
        if component.hasStar {
            // After the last star, the end of the name decides without a search.
            while case .literal(let literal) = tokens[lastToken - 1], !literal.startsInside {
                guard end - name.lowerBound >= literal.count, holds(path, literal, at: end - literal.count) else {
                    return false
                }
                end -= literal.count
                lastToken -= 1
            }
        }
        return search(path, name.lowerBound..<end, component.tokens.lowerBound..<lastToken)
    }

    private func search(_ path: Span<UInt8>, _ name: Range<Int>, _ tokens: Range<Int>) -> Bool {
        let end = name.upperBound
        var position = name.lowerBound
        var current = tokens.lowerBound
        var retry = -1
        var retryPosition = 0
        while true {
            if current == tokens.upperBound {
                if position == end { return true }
            } else if case .star = self.tokens[current] {
                current += 1
                if current == tokens.upperBound { return true }
                retry = current
                retryPosition = position
                continue
            } else {
                let length = self.length(of: self.tokens[current], in: path, at: position, end: end)
                if length >= 0 {
                    position += length
                    current += 1
                    continue
                }
            }
            guard retry >= 0, retryPosition < end else { return false }
            retryPosition += GlobCharacter(path, at: retryPosition, end: end).length
            position = retryPosition
            current = retry
        }
    }

    /// Returns the number of bytes that the token matches at a position; -1 if it does not match there.
    @inline(__always)
    private func length(of token: GlobToken, in path: Span<UInt8>, at position: Int, end: Int) -> Int {
        switch token {
        case .literal(let literal):
            let next = position + literal.count
            guard next <= end, holds(path, literal, at: position) else { return -1 }
            if literal.openCount > 0 {
                // The character of the name may continue after the bytes of the literal. A part of a character is not a
                // match.
                let character = GlobCharacter(path, at: next - literal.openCount, end: end)
                if character.length > literal.openCount { return -1 }
            }
            return literal.count
        case .one:
            return position < end ? GlobCharacter(path, at: position, end: end).length : -1
        case .set(let number):
            guard position < end else { return -1 }
            let character = GlobCharacter(path, at: position, end: end)
            return classes[number].contains(character.value) ? character.length : -1
        case .star:
            preconditionFailure("a star takes no fixed length")
        }
    }

    /// Compares the bytes at a position, which must be within the path.
    private func holds(_ path: Span<UInt8>, _ literal: GlobLiteral, at position: Int) -> Bool {
        if literal.foldsCase {
            for offset in 0..<literal.count
            where path[position + offset].lowercased != bytes[literal.start + offset] { return false }
        } else {
            for offset in 0..<literal.count
            where path[position + offset] != bytes[literal.start + offset] { return false }
        }
        return true
    }
}
