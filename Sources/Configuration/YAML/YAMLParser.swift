import Rules

/// A problem in a text.
package struct TextProblem: Error, Sendable, Hashable {
    /// The range of bytes that it concerns.
    package var range: Range<Int>
    package var message: String
    package var help: String?

    init(_ message: String, at range: Range<Int>, help: String?) {
        (self.range, self.message, self.help) = (range, message, help)
    }
}

/// Parses one YAML document into a tree, within limits.
///
/// It implements the core schema of YAML 1.2 only; aliases and the merge key `<<` are resolved. A syntax error of
/// libyaml stops the parser. Duplicate keys, unknown tags and similar problems are collected, and the tree omits
/// them.
package struct YAMLParser: ~Copyable {
    /// The maximum nesting of lists and mappings, far more than any rules file has.
    package static let maximumDepth = 64
    /// The maximum number of values in a file; every 64 bytes of a string count as one more.
    package static let maximumSize = 1_000_000
    /// The maximum number of values that aliases may stand for, counted at each use.
    ///
    /// Nested aliases can make a few hundred bytes stand for billions of values.
    package static let maximumAliasSize = 100_000

    /// Parses a text.
    ///
    /// - Returns: The tree, which is nil for a text with nothing but comments, and the problems found.
    /// - Throws: The problem that made the text unreadable.
    package static func parse(_ source: SourceText) throws(TextProblem) -> (root: YAMLNode?, problems: [TextProblem]) {
        try source.bytes.withUnsafeBufferPointer { bytes throws(TextProblem) in
            guard let reader = YAMLEventReader(bytes) else { throw TextProblem("out of memory", at: 0..<0, help: nil) }
            var parser = YAMLParser(source: source, reader: reader)
            return (try parser.document(), parser.problems)
        }
    }

    private let source: SourceText
    private var reader: YAMLEventReader
    private var problems: [TextProblem] = []
    private var anchored: [String: (node: YAMLNode, size: Int)] = [:]
    /// The anchors whose value is being read.
    private var open: Set<String> = []
    private var depth = 0
    private var size = 0
    private var aliasSize = 0

    private mutating func document() throws(TextProblem) -> YAMLNode? {
        _ = try next()
        guard case .documentStart = try next().kind else { return nil }
        let root = try node(try next()).node
        _ = try next()
        let after = try next()
        if case .documentStart = after.kind {
            report(
                "a second document starts here; a file contains one", at: range(of: after),
                help: "remove the '---', or move the rest into a separate file")
        }
        return root
    }

    // MARK: - Nodes

    /// Returns the node that starts with an event, and its number of values.
    private mutating func node(_ event: YAMLEvent) throws(TextProblem) -> (node: YAMLNode, size: Int) {
        if case .alias(let name) = event.kind { return try alias(name, at: range(of: event)) }
        if let anchor = event.anchor {
            anchored[anchor] = nil
            open.insert(anchor)
        }
        let sizeBefore = size
        var node: YAMLNode
        switch event.kind {
        case .scalar(let text, let style):
            node = YAMLNode(.scalar(text, style), range: contentRange(of: event))
            try grow(by: 1 + text.utf8.count / 64, at: node.range)
        case .sequenceStart: node = try sequence(from: event)
        default: node = try mapping(from: event)
        }
        checkTag(of: &node, event.tag, in: range(of: event))
        let size = size - sizeBefore
        if let anchor = event.anchor {
            anchored[anchor] = (node, size)
            open.remove(anchor)
        }
        return (node, size)
    }

    private mutating func alias(
        _ name: String, at range: Range<Int>
    ) throws(TextProblem) -> (node: YAMLNode, size: Int) {
        if let (node, size) = anchored[name] {
            aliasSize += size
            guard aliasSize <= Self.maximumAliasSize else {
                throw TextProblem(
                    "the aliases up to here expand to more than \(Self.maximumAliasSize) values", at: range,
                    help: "write fewer aliases of aliases")
            }
            try grow(by: size, at: range)
            return (node, size)
        }
        let shown = source.text(range)
        guard !open.contains(name) else {
            throw TextProblem(
                "alias \(quoted(shown)) is inside the value that it refers to", at: range, help: "write the value out")
        }
        let near = Spelling.nearest(to: name, in: anchored.keys.sorted())
        throw TextProblem(
            "alias \(quoted(shown)) has no anchor '&\(escaped(name, limit: 80))' before it", at: range,
            help: near.map { "write '*\(escaped($0))'" } ?? "write \"\(escaped(shown))\" if it is a pattern")
    }

    private mutating func sequence(from event: YAMLEvent) throws(TextProblem) -> YAMLNode {
        let start = contentRange(of: event).lowerBound
        try enter(at: start)
        var elements: [YAMLNode] = []
        while true {
            let inner = try next()
            if case .sequenceEnd = inner.kind {
                return leave(.sequence(elements), from: start, to: range(of: inner).upperBound, isFlow: event.isFlow)
            }
            elements.append(try node(inner).node)
        }
    }

    private mutating func mapping(from event: YAMLEvent) throws(TextProblem) -> YAMLNode {
        let start = contentRange(of: event).lowerBound
        try enter(at: start)
        var entries: [YAMLNode.Entry] = []
        var ranges: [String: Range<Int>] = [:]
        var merges: [YAMLNode] = []
        while true {
            let inner = try next()
            if case .mappingEnd = inner.kind {
                for merge in merges { add(merge, to: &entries, known: &ranges) }
                return leave(.mapping(entries), from: start, to: range(of: inner).upperBound, isFlow: event.isFlow)
            }
            let key = try node(inner).node
            let value = try node(try next()).node
            guard let name = key.text else {
                report(
                    "a key must be a string, not \(key.noun)", at: key.range,
                    help: FlowPlaceholder.help(for: key, in: source) ?? "quote it if it is a string")
                continue
            }
            if let first = ranges[name] {
                let line = source.location(at: first.lowerBound).line
                report(
                    "duplicate key \(quoted(name)); the first is on line \(line)", at: key.range,
                    help: "remove one of the two")
                continue
            }
            ranges[name] = key.range
            let isMerge = name == "<<" && key.isPlain
            if isMerge { merges.append(value) } else { entries.append(YAMLNode.Entry(key: key, value: value)) }
        }
    }

    /// Adds the entries of a merge key; existing entries take precedence.
    private mutating func add(
        _ merge: YAMLNode, to entries: inout [YAMLNode.Entry], known ranges: inout [String: Range<Int>]
    ) {
        for mapping in merge.elements ?? [merge] {
            guard let merged = mapping.entries else {
                report(
                    "'<<' expects a mapping or a list of mappings, not \(mapping.noun)", at: mapping.range,
                    help: "refer to an anchor, as in '<<: *base'")
                continue
            }
            for entry in merged where ranges[entry.name] == nil {
                ranges[entry.name] = entry.key.range
                entries.append(entry)
            }
        }
    }

    private mutating func report(_ message: String, at range: Range<Int>, help: String) {
        problems.append(TextProblem(message, at: range, help: help))
    }

    // MARK: - Limits

    private mutating func enter(at start: Int) throws(TextProblem) {
        depth += 1
        guard depth <= Self.maximumDepth else {
            throw TextProblem(
                "lists and mappings are nested more than \(Self.maximumDepth) levels deep",
                at: start..<(start + 1), help: "flatten the value")
        }
        try grow(by: 1, at: start..<(start + 1))
    }

    private mutating func leave(_ content: YAMLNode.Content, from start: Int, to end: Int, isFlow: Bool) -> YAMLNode {
        depth -= 1
        var node = YAMLNode(content, range: start..<max(start, end))
        node.isFlow = isFlow
        return node
    }

    private mutating func grow(by amount: Int, at range: Range<Int>) throws(TextProblem) {
        size += amount
        guard size > Self.maximumSize else { return }
        throw TextProblem(
            "the file contains more than \(Self.maximumSize) values", at: range, help: "split the file")
    }

    // MARK: - Events and ranges

    private mutating func next() throws(TextProblem) -> YAMLEvent {
        do throws(YAMLSyntaxError) {
            return try reader.next()
        } catch { throw SyntaxDiagnosis(error, in: source).problem }
    }

    private func range(of event: YAMLEvent) -> Range<Int> {
        let start = source.offset(ofCharacter: event.characters.lowerBound)
        return start..<max(start, source.offset(ofCharacter: event.characters.upperBound))
    }

    /// Returns the range without the anchor and the tag, which libyaml includes.
    private func contentRange(of event: YAMLEvent) -> Range<Int> {
        let range = range(of: event)
        guard event.anchor != nil || event.tag != nil else { return range }
        var start = range.lowerBound
        while start < range.upperBound, "&! \t\n\r".utf8.contains(source.bytes[start]) {
            let isProperty = "&!".utf8.contains(source.bytes[start])
            start += 1
            while isProperty, start < range.upperBound, !" \t\n\r".utf8.contains(source.bytes[start]) { start += 1 }
        }
        return start..<range.upperBound
    }

    // MARK: - Tags

    private static let coreTags: [String: String] = Dictionary(
        uniqueKeysWithValues: ["str", "int", "float", "bool", "null", "seq", "map"].map {
            ("tag:yaml.org,2002:\($0)", $0)
        })

    private mutating func checkTag(of node: inout YAMLNode, _ tag: String?, in range: Range<Int>) {
        guard let tag else { return }
        let core = Self.coreTags[tag]
        let fits =
            switch (core ?? tag, node.content) {
            case ("!", _), ("str", .scalar), ("seq", .sequence), ("map", .mapping): true
            case (let name, .scalar(let text, .plain)): PlainScalar(text).fits(name)
            default: false
            }
        node.isInvalid = !fits
        guard !fits else {
            node.isTaggedAsText = node.text != nil && ["!", "str"].contains(core ?? tag)
            return
        }
        if let core {
            return report("the tag '!!\(core)' does not match this value", at: node.range, help: "remove the tag")
        }
        let start = source.bytes[range.lowerBound...].firstIndex(of: UInt8(ascii: "!")) ?? range.lowerBound
        let text = BareText.range(in: source, from: start)
        let written = source.bytes[start..<text.upperBound].prefix { $0 != UInt8(ascii: " ") }
        report(
            "unknown tag \(quoted(String(decoding: written, as: UTF8.self)))", at: start..<(start + written.count),
            help: "remove it, or write \(BareText.quoted(source.text(text))) for a string")
    }
}

extension YAMLNode {
    /// A noun for messages, such as `a list`.
    var noun: String {
        switch content {
        case .sequence: "a list"
        case .mapping: "a mapping"
        case .scalar: isNull ? "nothing" : quoted(text ?? "")
        }
    }
}

extension PlainScalar {
    /// Whether a core tag such as `int` matches the scalar.
    fileprivate func fits(_ tag: String) -> Bool {
        switch (self, tag) {
        case (.integer, "int"), (.integer, "float"), (.number, "float"), (.bool, "bool"), (.null, "null"): true
        default: false
        }
    }
}
