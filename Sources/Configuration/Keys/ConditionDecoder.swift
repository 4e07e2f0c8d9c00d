import JSON
import Rules

// Conditions on a file other than its path.
extension RuleDecoder {
    /// The keys of `where`; each creates one condition.
    static let conditionKeys = KeyTable<RuleDecoder, Condition?>([
        Key(
            "size", "The size of the file.", comparisons(.size, "> 1 KB", sizeValue),
            examples: ["> 1 KB", "1 KB..5 MB"]
        ) { $0 = .size($1) },
        Key(
            "age", "The time since the last change of the content.",
            comparisons(.age, "> 7d", ageValue), examples: ["> 7d"]
        ) { $0 = .age($1) },
        Key(
            "depth", "The number of directories between the root and the file.",
            comparisons(.depth, "<= 2", depthValue)
        ) { $0 = .depth($1) },
        Key(
            "mime", "The MIME type, detected from the content.",
            oneOrMore(
                ["type": "string", "pattern": #"^(\*|[A-Za-z0-9!#$&^_.+-]+)/(\*|[A-Za-z0-9!#$&^_.+-]+)$"#],
                "application/pdf", RuleDecoder.mediaPattern), examples: ["application/pdf", "image/*"]
        ) { $0 = .mime($1) },
        Key(
            "name", "Globs for the last component of the path.",
            oneOrMore(SchemaForm.text(minimum: 1, pattern: "^[^/]*$"), "IMG_*.jpg", RuleDecoder.nameGlob),
            examples: ["IMG_*.jpg"]
        ) { $0 = .name($1) },
        Key(
            "path", "Globs for the path relative to the root, or for the absolute path.",
            oneOrMore(RuleDecoder.glob, "2026/**/*.jpg", RuleDecoder.conditionGlob), examples: ["2026/**"]
        ) { $0 = .path($1) },
        Key(
            "regex", "A PCRE2 regular expression to find in the last path component; its groups are ${1} and so on.",
            Form("string", SchemaForm.text(minimum: 1)) { $0.regex($1) }, examples: [#"^IMG_(\d+)"#]
        ) { $0 = $1 },
        Key(
            "owner", "The owner: USER, USER:GROUP or :GROUP.",
            oneOrMore(SchemaForm.text(minimum: 1, pattern: "^(?!:$)"), "www-data", RuleDecoder.owner),
            examples: ["www-data"]
        ) { $0 = .owner($1) },
        Key(
            "by", "The program that wrote the file: globs for its name or path. Alight must run as root.",
            oneOrMore(SchemaForm.text(minimum: 1), "rsync", RuleDecoder.program),
            examples: ["rsync", ["cp", "/usr/sbin/*ftpd"]]
        ) { $0 = .by($1) },
        Key("any", "At least one condition of the list is true.", conditionList) { $0 = .any($1) },
        Key("all", "All conditions of the list are true.", conditionList) { $0 = .all($1) },
        Key(
            "not", "The condition is false; of a list, all are.",
            Form("mapping or list", SchemaForm.oneOrMore(["$ref": "#/$defs/conditions"])) { $0.negation($1) }
        ) { $0 = $1 },
    ])

    private static let conditionList = Form<RuleDecoder, [Condition]>(
        "list", SchemaForm.list(of: ["$ref": "#/$defs/conditions"], isNonEmpty: true)
    ) { $0.conditionGroup($1) }

    /// One value or a list of alternatives.
    private static func oneOrMore<Value>(
        _ element: @autoclosure @escaping @Sendable () -> JSONValue, _ example: String,
        _ read: @escaping @Sendable (RuleDecoder) -> (String, YAMLNode) -> Value?
    ) -> Form<RuleDecoder, [Value]> {
        Form("string or list of strings", SchemaForm.oneOrMore(element())) { decoder, entry in
            let values = decoder.texts(entry, example: example)?.compactMap(read(decoder))
            return values?.isEmpty == true ? nil : values
        }
    }

    private static func comparisons<Value>(
        _ quantity: SchemaForm.Quantity, _ example: String,
        _ parse: @escaping @Sendable (String) throws(Problem) -> Value
    ) -> Form<RuleDecoder, Comparisons<Value>> {
        Form("comparison or list of comparisons", SchemaForm.comparisons(of: quantity)) { decoder, entry in
            guard let texts = decoder.texts(entry, example: example) else { return nil }
            var bounds: [Comparisons<Value>.Bound] = []
            for (text, node) in texts {
                do throws(Problem) {
                    bounds += try ComparisonText.parse(text, noun: entry.name, allowsBare: quantity == .depth, parse)
                } catch { return decoder.reject(error.message, at: decoder.mark(node), help: error.help) }
            }
            let comparisons = Comparisons(bounds, text: texts.map { $0.0 }.joined(separator: " and "))
            guard comparisons.isContradiction else { return comparisons }
            return decoder.reject(
                "no \(entry.name) is \(escaped(comparisons.text, limit: 80))", at: decoder.mark(entry),
                help: "all in the list must match; write 'any' for alternatives")
        }
    }

    /// Decodes the conditions of `where:`: a mapping of conditions that must all match.
    func condition(_ entry: YAMLNode.Entry) -> Condition? {
        condition(entry.value, name: quoted(entry.name), at: mark(entry))
    }

    private static let conditionHelp = "write a mapping of conditions, such as { size: \"> 1 KB\" }"

    private func condition(_ node: YAMLNode, name: String, at range: Range<Int>) -> Condition? {
        guard let entries = entries(of: node) else {
            return mistyped(node, name: name, "a mapping", at: range, help: Self.conditionHelp)
        }
        guard !entries.isEmpty else { return reject("\(name) is empty", at: range, help: Self.conditionHelp) }
        let conditions = entries.map { single($0, beside: entries) }.complete()
        return conditions.map { $0.count == 1 ? $0[0] : .all($0) }
    }

    private func single(_ entry: YAMLNode.Entry, beside entries: [YAMLNode.Entry]) -> Condition? {
        guard let key = Self.conditionKeys[entry.name] else { return reportUnknown(entry, beside: entries) }
        var condition: Condition?
        key.read(self, entry, &condition)
        return condition
    }

    private func reportUnknown(_ entry: YAMLNode.Entry, beside entries: [YAMLNode.Entry]) -> Condition? {
        if entry.name == "where" {
            return reject(
                "'where' cannot contain itself", at: entry.key.range, help: "write its conditions here, or 'all'")
        }
        let synonyms = [
            "type": "write 'mime' for the content type, or 'types' next to 'where'",
            "types": "write 'types' next to 'where'", "content_type": "write 'mime'",
            "content-type": "write 'mime'", "mimetype": "write 'mime'", "mime_type": "write 'mime'",
            "mtime": "write 'age', the time since the last change", "older": "write 'age: \"> 7d\"'",
            "newer": "write 'age: \"< 7d\"'", "older_than": "write 'age: \"> 7d\"'", "user": "write 'owner'",
            "uid": "write 'owner'", "gid": "write 'owner: \":GROUP\"'", "group": "write 'owner: \":GROUP\"'",
            "comm": "write 'by'", "program": "write 'by'", "process": "write 'by'", "exe": "write 'by'",
            "writer": "write 'by'",
            "glob": "write 'name' for the last component, 'path' for the path relative to the root",
            "extension": "write 'name: \"*.jpg\"'", "match": "write 'regex'", "matches": "write 'regex'",
            "regexp": "write 'regex'", "pattern": "write 'name' for a glob, 'regex' for a regular expression",
            "or": "write 'any'", "and": "write 'all'", "none": "write 'not' with a list",
        ]
        let isOfRule = Self.keys[entry.name] != nil
        return reject(
            "unknown condition \(quoted(entry.name))", at: entry.key.range,
            help: synonyms[entry.name]
                ?? (isOfRule ? "'\(entry.name)' is a key of the rule, not of 'where'" : nil)
                ?? Spelling.help(
                    for: entry.name, candidates: Self.conditionKeys.names, noun: "conditions",
                    except: entries.map(\.name)))
    }

    // MARK: - Several conditions

    /// Decodes the conditions in the list of `any` or `all`.
    private func conditionGroup(_ entry: YAMLNode.Entry) -> [Condition]? {
        guard let elements = entry.value.elements else {
            let isMapping = entry.value.entries != nil && !entry.value.isNull
            return mistyped(
                entry, "a list",
                help: isMapping ? "put '- ' in front of each condition" : "write a list of mappings, [{ … }, { … }]")
        }
        guard !elements.isEmpty else {
            return reject(
                "\(quoted(entry.name)) is empty", at: mark(entry), help: "write at least one mapping of conditions")
        }
        return elements.map { condition($0, name: "an element of \(quoted(entry.name))", at: mark($0)) }.complete()
    }

    /// Decodes `not`: a mapping that must not match, or a list of which none may match.
    private func negation(_ entry: YAMLNode.Entry) -> Condition? {
        if entry.value.elements == nil { return condition(entry).map { .not($0) } }
        return conditionGroup(entry).map { .not($0.count == 1 ? $0[0] : .any($0)) }
    }

    // MARK: - Lists

    /// Returns the strings of an entry; nil if there are none, which has been reported.
    private func texts(_ entry: YAMLNode.Entry, example: String) -> [(String, YAMLNode)]? {
        let help = "write \(BareText.quoted(example)), or a list"
        guard entry.value.entries == nil || FlowPlaceholder.help(for: entry.value, in: source) != nil else {
            return mistyped(entry, "a string or a list of strings", help: help)
        }
        guard let elements = entry.value.elements else { return text(entry, help: help).map { [($0, entry.value)] } }
        guard !elements.isEmpty else { return reject("\(quoted(entry.name)) is empty", at: mark(entry), help: help) }
        return elements.compactMap { node in
            text(node, name: "an element of \(quoted(entry.name))", at: mark(node), help: help).map { ($0, node) }
        }
    }
}
