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
    package var isInvalid = false

    package init(_ content: Content, range: Range<Int>) { (self.content, self.range) = (content, range) }

    /// The string of a scalar.
    package var text: String? { if case .scalar(let text, _) = content { text } else { nil } }

    package var elements: [YAMLNode]? { if case .sequence(let elements) = content { elements } else { nil } }

    package var entries: [Entry]? { if case .mapping(let entries) = content { entries } else { nil } }

    /// Returns the entry with that name, if the node is a mapping.
    package func entry(_ name: String) -> Entry? {
        guard case .mapping(let entries) = content else { return nil }
        // A rule is queried for every known key, so entries that do not match are not copied.
        for index in entries.indices where entries[index].key.isText(name) { return entries[index] }
        return nil
    }

    private func isText(_ other: String) -> Bool {
        if case .scalar(let text, _) = content { text == other } else { other.isEmpty }
    }

    /// Whether the node is a scalar without quotes and without a string tag.
    package var isPlain: Bool { if case .scalar(_, .plain) = content { !isTaggedAsText } else { false } }

    /// Whether the node is `false`, which turns off a value from `defaults`.
    var isOff: Bool { isPlain && text == "false" }

    /// Whether the value is missing.
    package var isEmpty: Bool { isPlain && text?.isEmpty == true }

    /// Whether the value is missing, `null` or `~`.
    package var isNull: Bool { isPlain && PlainScalar.isNull(text ?? "") }
}
