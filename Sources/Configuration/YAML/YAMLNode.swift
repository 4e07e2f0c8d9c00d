/// A value in a YAML file, with its range.
///
/// Aliases are resolved: a node with several aliases is shared, and its range is that of the anchored text.
package struct YAMLNode: Sendable {
    package enum Style: Sendable, Hashable {
        case plain, singleQuoted, doubleQuoted
        /// `|` or `>`.
        case block
    }

    package enum Content: Sendable {
        case scalar(String, Style)
        case sequence([YAMLNode])
        case mapping([Entry])
    }

    /// A key and its value.
    package struct Entry: Sendable {
        package var key: YAMLNode
        package var value: YAMLNode
        /// Whether the entry comes from the merge key `<<`.
        package var isMerged = false

        /// The string of the key; keys that are not strings are not part of the tree.
        package var name: String { key.text ?? "" }
    }

    package var content: Content
    /// The range of bytes in the text, without anchor and tag.
    package var range: Range<Int>
    /// Whether the node is a collection in `{ }` or `[ ]`.
    package var isFlow = false
    /// Whether the tag `!!str` or `!` makes the scalar a string, whatever its content.
    package var isTaggedAsText = false

    /// Whether the node has already been reported, so that no further message is needed.
    package var isFaulty = false

    package init(_ content: Content, range: Range<Int>) {
        self.content = content
        self.range = range
    }

    /// The string of a scalar.
    package var text: String? {
        guard case .scalar(let text, _) = content else { return nil }
        return text
    }

    package var elements: [YAMLNode]? {
        guard case .sequence(let elements) = content else { return nil }
        return elements
    }

    package var entries: [Entry]? {
        guard case .mapping(let entries) = content else { return nil }
        return entries
    }

    /// Returns the entry with that name, if the node is a mapping.
    package func entry(_ name: String) -> Entry? {
        guard case .mapping(let entries) = content else { return nil }
        // A rule is queried for every known key, so entries that do not match are not copied.
        for index in entries.indices where entries[index].key.isText(name) { return entries[index] }
        return nil
    }

    private func isText(_ other: String) -> Bool {
        guard case .scalar(let text, _) = content else { return other.isEmpty }
        return text == other
    }

    /// Whether the node is a scalar without quotes and without a string tag.
    package var isPlain: Bool {
        guard case .scalar(_, .plain) = content else { return false }
        return !isTaggedAsText
    }

    /// Whether the node is `false`, which turns off a value from `defaults`.
    var isOff: Bool { isPlain && text == "false" }

    /// Whether the value is missing.
    package var isEmpty: Bool { isPlain && text?.isEmpty == true }

    /// Whether the value is missing, `null` or `~`.
    package var isNull: Bool { isPlain && PlainScalar.isNull(text ?? "") }
}
