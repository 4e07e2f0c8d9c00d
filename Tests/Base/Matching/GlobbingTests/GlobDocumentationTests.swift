import Foundation
import Globbing
import Testing
import TestKit

/// The examples in `docs/globs.md`, checked against the matcher.
struct GlobDocumentationTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let pattern: String
        let matched: [String]
        let left: [String]

        var testDescription: String { pattern }
    }

    /// The rows below the heading "Examples".
    static let rows: [Row] = {
        let page = try? String(contentsOfFile: "\(Places.checkout)/docs/globs.md", encoding: .utf8)
        let examples = (page ?? "").components(separatedBy: "\n## ").first { $0.hasPrefix("Examples") } ?? ""
        return examples.split(separator: "\n").compactMap { line in
            let cells = line.components(separatedBy: " | ").map { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
            guard cells.count == 3, let pattern = cells[0].first else { return nil }
            return Row(pattern: pattern, matched: cells[1], left: cells[2])
        }
    }()

    @Test func `the page contains examples`() {
        #expect(Self.rows.count >= 20)
        #expect(Self.rows.allSatisfy { !$0.matched.isEmpty && !$0.left.isEmpty })
    }

    @Test(arguments: rows)
    func `an example matches as documented`(_ row: Row) throws {
        let glob = try Glob(row.pattern)
        for path in row.matched { #expect(glob.matches(Array(path.utf8)), "\(glob) takes \(path)") }
        for path in row.left { #expect(!glob.matches(Array(path.utf8)), "\(glob) leaves \(path)") }
    }
}
