package import RegularExpressions
package import System

/// The captures of a rule's regular expressions in a name: the values of `${1}` and `${match.NAME}`.
package struct Captures: Sendable, Hashable {
    /// The captures by the numbers of groups, from 1.
    package var numbered: [Int: [UInt8]] = [:]
    package var named: [String: [UInt8]] = [:]

    package init() {}

    /// Searches the last component of a path.
    ///
    /// If several expressions have a group with the same number or name, the first expression wins. A group that did
    /// not take part has no value.
    package init(of path: PathBytes, by expressions: [RegularExpression]) {
        let name = path.lastComponent
        for expression in expressions.reversed() {
            guard case .found(let match) = expression.search(name) else { continue }
            for number in 0..<match.groups.count where number > 0 {
                numbered[number] = Self.safe(match.groups[number] ?? [])
            }
            for (word, numbers) in expression.names {
                named[word] = Self.safe(numbers.lazy.compactMap { match.groups[$0] }.first ?? [])
            }
        }
    }

    /// A name is never `.` or `..`, which would change the directory of a path, but a part of a name may be.
    private static func safe(_ capture: [UInt8]) -> [UInt8] {
        capture == [.dot] || capture == [.dot, .dot] ? capture.map { _ in UInt8(ascii: "_") } : capture
    }
}
