/// Where in a rules file something stands.
package struct SourcePlace: Sendable, Hashable, CustomStringConvertible {
    /// The file as the user named it.
    package var file: String
    /// From 1.
    package var line: Int
    /// From 1, in characters.
    package var column: Int

    package init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }

    package var description: String { "\(file):\(line):\(column)" }
}
