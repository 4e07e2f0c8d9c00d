/// Finds the word that a misspelled word was meant to be.
package enum Spelling {
    /// Returns the candidate with one typo relative to the word, or two if the first letter is the same; nil if none is
    /// near.
    ///
    /// A typo is an extra, missing or wrong letter, or two swapped neighbors. A word of up to four letters may have
    /// one. Case is ignored.
    ///
    /// - Parameters:
    ///   - word: The word as it was written.
    ///   - candidates: The known words.
    ///   - present: The words that are present already, and cannot be meant.
    /// - Returns: The candidate as it is written in the list.
    package static func nearest(
        to word: String, in candidates: some Sequence<String>, except present: some Sequence<String> = [String]()
    ) -> String? {
        let wanted = Array(word.lowercased().unicodeScalars)
        let allowed = wanted.count <= 4 ? 1 : 2
        var best: (candidate: String, distance: Int)?
        for candidate in Set(candidates).subtracting(present).sorted() where candidate != word {
            let other = Array(candidate.lowercased().unicodeScalars)
            guard abs(other.count - wanted.count) <= allowed else { continue }
            let distance = distance(from: wanted, to: other)
            guard distance <= allowed, distance < max(wanted.count, other.count) else { continue }
            guard distance == 1 || wanted.first == other.first else { continue }
            if distance < best?.distance ?? Int.max { best = (candidate, distance) }
        }
        return best?.candidate
    }

    /// Returns the help of a diagnostic: `write 'size'; the parameters are size, to`.
    ///
    /// - Parameters:
    ///   - word: The word as it was written.
    ///   - candidates: The valid words, in the order to show.
    ///   - noun: The plural noun for the candidates.
    ///   - present: The words that are present already; they are listed, but never suggested.
    /// - Returns: The sentence; nil if there are no candidates.
    package static func help(
        for word: String, candidates: [String], noun: String, except present: some Sequence<String> = [String]()
    ) -> String? {
        guard !candidates.isEmpty else { return nil }
        let list = "the \(noun) are \(candidates.joined(separator: ", "))"
        guard let nearest = nearest(to: word, in: candidates, except: present) else { return list }
        return "write '\(nearest)'; \(list)"
    }

    /// Returns the Damerau-Levenshtein distance (adjacent swaps, no substring edited twice).
    private static func distance(from left: [Unicode.Scalar], to right: [Unicode.Scalar]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var distance = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    distance = min(distance, beforeLast[column - 1] + 1)
                }
                current.append(distance)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
