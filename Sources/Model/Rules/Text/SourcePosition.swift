/// A position in a rules file.
package struct SourcePosition: Sendable, Hashable, CustomStringConvertible {
    /// The file, as the user named it.
    package var file: String
    /// The line, from 1.
    package var line: Int
    /// The column in characters, from 1.
    package var column: Int

    package init(file: String, line: Int, column: Int) { (self.file, self.line, self.column) = (file, line, column) }

    package var description: String { "\(file):\(line):\(column)" }
}
