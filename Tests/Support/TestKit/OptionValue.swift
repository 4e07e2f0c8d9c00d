import Glibc
package import System

/// Parses option values, for the drivers that run from seeds.
package enum OptionValue {
    /// An invalid command line.
    package struct Invalid: Error {
        package var message: String

        package init(message: String) { self.message = message }
    }

    package static func number<Number: FixedWidthInteger>(
        _ word: String, _ value: String, atLeast least: Number = 0
    ) throws(Invalid) -> Number {
        guard let number = Number(value), number >= least else {
            throw Invalid(message: "'\(word) \(value)' is not a number from \(least) up")
        }
        return number
    }

    package static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ word: String, _ value: String
    ) throws(Invalid) -> Choice {
        guard let choice = Choice(rawValue: value) else {
            let known = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw Invalid(message: "'\(word) \(value)' is not one of \(known)")
        }
        return choice
    }

    package static func absolute(_ path: String) -> PathBytes {
        if path.hasPrefix("/") { return PathBytes(path).normalized }
        guard let directory = getcwd(nil, 0) else { return PathBytes(path) }
        defer { free(directory) }
        return PathBytes(String(cString: directory)).appending(path).normalized
    }
}
