/// A value in a YAML file, with where it stands.
///
/// Aliases are resolved: a node that is named several times is shared, and its
/// range is that of the anchored text.
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
        /// Whether it came by the merge key `<<`.
        package var isMerged = false

        /// The text of the key; keys that are not text don't enter the tree.
        package var name: String { key.text ?? "" }
    }

    package var content: Content
    /// The bytes of the text that it was read from, without anchor and tag.
    package var range: Range<Int>
    /// Whether it is a collection in `{ }` or `[ ]`.
    package var isFlow = false
    /// Whether the tag `!!str` or `!` makes it text, whatever it looks like.
    package var isTaggedAsText = false

    /// Whether it was told of already, so that no more needs to be said.
    package var isFaulty = false

    package init(_ content: Content, range: Range<Int>) {
        self.content = content
        self.range = range
    }

    /// The text of a scalar.
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

    /// The entry of that name, when this is a mapping.
    package func entry(_ name: String) -> Entry? {
        guard case .mapping(let entries) = content else { return nil }
        // A rule is asked for all keys that there are: those that are others are not copied.
        for index in entries.indices where entries[index].key.isText(name) { return entries[index] }
        return nil
    }

    private func isText(_ other: String) -> Bool {
        guard case .scalar(let text, _) = content else { return other.isEmpty }
        return text == other
    }

    /// Whether it is a scalar that no quotes and no tag make text.
    package var isPlain: Bool {
        guard case .scalar(_, .plain) = content else { return false }
        return !isTaggedAsText
    }

    /// Whether it is `false`, by which a rule does without what `defaults` have.
    var isOff: Bool { isPlain && text == "false" }

    /// Whether nothing at all stands where the value would be.
    package var isEmpty: Bool { isPlain && text?.isEmpty == true }

    /// Whether it is nothing, `null` or `~`.
    package var isNull: Bool { isPlain && PlainScalar.isNull(text ?? "") }
}
