package import FileEvents

/// What is worth a watch and what is worth a hint.
package struct WatchScope: Sendable {
    /// The folders where watching begins.
    ///
    /// They need not exist.
    package var roots: [PathBytes]
    /// Whether something strictly below the folder could be wanted.
    package var reaches: @Sendable (PathBytes) -> Bool
    /// Whether the path itself is wanted.
    package var takes: @Sendable (PathBytes) -> Bool

    package init(
        roots: [PathBytes], reaches: @escaping @Sendable (PathBytes) -> Bool,
        takes: @escaping @Sendable (PathBytes) -> Bool
    ) {
        self.roots = roots
        self.reaches = reaches
        self.takes = takes
    }
}
