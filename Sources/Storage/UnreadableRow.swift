/// A row that no version of Alight writes.
package struct UnreadableRow: Error {
    package var table: String

    package init(table: String) { self.table = table }
}
