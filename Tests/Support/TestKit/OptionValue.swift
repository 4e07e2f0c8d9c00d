import Glibc
package import System

/// Parses option values, for the drivers that run from seeds.
package enum OptionValue {
    /// An invalid command line.
    package struct Wrong: Error {
        package var message: String

        package init(message: String) { self.message = message }
    }

    package static func number<Number: FixedWidthInteger>(
        _ word: String, _ value: String, atLeast least: Number = 0
    ) throws(Wrong) -> Number {
        guard let number = Number(value), number >= least else {
            throw Wrong(message: "'\(word) \(value)' is no number from \(least)")
        }
        return number
    }

    package static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ word: String, _ value: String
    ) throws(Wrong) -> Choice {
        guard let choice = Choice(rawValue: value) else {
            let known = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw Wrong(message: "'\(word) \(value)' is none of \(known)")
        }
        return choice
    }

    package static func absolute(_ path: String) -> PathBytes {
        if path.hasPrefix("/") { return PathBytes(path).normalized }
        guard let folder = getcwd(nil, 0) else { return PathBytes(path) }
        defer { free(folder) }
        return PathBytes(String(cString: folder)).appending(path).normalized
    }
}
