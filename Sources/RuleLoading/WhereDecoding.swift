import FileEvents
import Rules

// What has to hold of a file besides its path.
extension RuleDecoder {
    static let conditionKeys = [
        "size", "age", "mime", "name", "regex", "owner", "depth", "path", "by", "any", "all", "not",
    ]

    /// The conditions of `where:`: a mapping of which all must hold.
    func condition(_ entry: YAMLNode.Entry) -> Condition? {
        condition(entry.value, name: quoted(entry.name), at: mark(entry))
    }

    private static let help = "write a mapping of conditions, such as { size: \"> 1 KB\" }"

    private func condition(_ node: YAMLNode, name: String, at range: Range<Int>) -> Condition? {
        guard let entries = node.entries, FlowPlaceholder.help(for: node, in: source) == nil else {
            reportType(node, name: name, "a mapping", at: range, help: Self.help)
            return nil
        }
        guard !entries.isEmpty else {
            problems.error("\(name) is empty", at: range, help: Self.help)
            return nil
        }
        let read = entries.map { single($0, beside: entries) }
        let known = read.compactMap { $0 }
        guard known.count == read.count else { return nil }
        return known.count == 1 ? known[0] : .all(known)
    }

    private func single(_ entry: YAMLNode.Entry, beside entries: [YAMLNode.Entry]) -> Condition? {
        switch entry.name {
        case "size": comparisons(entry, example: "> 1 KB", sizeValue).map { .size($0) }
        case "age": comparisons(entry, example: "> 7d", ageValue).map { .age($0) }
        case "depth": comparisons(entry, example: "<= 2", allowsBare: true, depthValue).map { .depth($0) }
        case "mime": list(entry, example: "application/pdf", mediaPattern).map { .mime($0) }
        case "name": list(entry, example: "IMG_*.jpg", nameGlob).map { .name($0) }
        case "path": list(entry, example: "2026/**/*.jpg", conditionGlob).map { .path($0) }
        case "owner": list(entry, example: "www-data", owner).map { .owner($0) }
        case "by": list(entry, example: "rsync", program).map { .by($0) }
        case "regex": regex(entry)
        case "any": group(entry).map { .any($0) }
        case "all": group(entry).map { .all($0) }
        case "not": negation(entry)
        default: unknown(entry, beside: entries)
        }
    }

    private func unknown(_ entry: YAMLNode.Entry, beside entries: [YAMLNode.Entry]) -> Condition? {
        switch entry.name {
        case "where":
            problems.error(
                "'where' cannot contain itself", at: entry.key.range, help: "write its conditions here, or 'all'")
        default:
            let synonyms = [
                "type": "write 'mime' for what the file holds, or 'types' beside 'where'",
                "types": "write 'types' beside 'where'", "content_type": "write 'mime'",
                "content-type": "write 'mime'", "mimetype": "write 'mime'", "mime_type": "write 'mime'",
                "mtime": "write 'age', the time since the last change", "older": "write 'age: \"> 7d\"'",
                "newer": "write 'age: \"< 7d\"'", "older_than": "write 'age: \"> 7d\"'", "user": "write 'owner'",
                "uid": "write 'owner'", "gid": "write 'owner: \":GROUP\"'", "group": "write 'owner: \":GROUP\"'",
                "comm": "write 'by'", "program": "write 'by'", "process": "write 'by'", "exe": "write 'by'",
                "writer": "write 'by'",
                "glob": "write 'name' for the last component, 'path' for the path below the root",
                "extension": "write 'name: \"*.jpg\"'", "match": "write 'regex'", "matches": "write 'regex'",
                "regexp": "write 'regex'", "pattern": "write 'name' for a glob, 'regex' for a regular expression",
                "or": "write 'any'", "and": "write 'all'", "none": "write 'not' with a list",
            ]
            let help: String? =
                if let meant = synonyms[entry.name] {
                    meant
                } else if Self.ruleKeys.contains(entry.name) {
                    "'\(entry.name)' is a key of the rule, beside 'where'"
                } else {
                    Spelling.help(
                        for: entry.name, candidates: Self.conditionKeys, noun: "conditions",
                        except: entries.map(\.name))
                }
            problems.error("unknown condition \(quoted(entry.name))", at: entry.key.range, help: help)
        }
        return nil
    }

    // MARK: - Several conditions

    /// The conditions in the list of `any` or `all`.
    private func group(_ entry: YAMLNode.Entry) -> [Condition]? {
        guard let elements = entry.value.elements else {
            let isMapping = entry.value.entries != nil && !entry.value.isNull
            reportType(
                entry, "a list",
                help: isMapping
                    ? "put '- ' in front of each condition" : "write a list of mappings, [{ … }, { … }]")
            return nil
        }
        return conditions(elements, in: entry)
    }

    private func conditions(_ elements: [YAMLNode], in entry: YAMLNode.Entry) -> [Condition]? {
        guard !elements.isEmpty else {
            problems.error(
                "\(quoted(entry.name)) is empty", at: mark(entry), help: "write at least one mapping of conditions")
            return nil
        }
        let read = elements.map { condition($0, name: "an element of \(quoted(entry.name))", at: mark($0)) }
        let known = read.compactMap { $0 }
        return known.count == read.count ? known : nil
    }

    /// `not`: a mapping that must not hold, or a list of which none may.
    private func negation(_ entry: YAMLNode.Entry) -> Condition? {
        if let elements = entry.value.elements {
            return conditions(elements, in: entry).map { .not($0.count == 1 ? $0[0] : .any($0)) }
        }
        return condition(entry).map { .not($0) }
    }

    // MARK: - Lists and comparisons

    /// One value or a list of them, of which one is enough.
    private func list<Value>(
        _ entry: YAMLNode.Entry, example: String, _ read: (String, YAMLNode) -> Value?
    ) -> [Value]? {
        texts(entry, example: example)?.compactMap { text, node in read(text, node) }.nonEmpty
    }

    /// The texts of an entry; nil for none, when that has been told.
    private func texts(_ entry: YAMLNode.Entry, example: String) -> [(String, YAMLNode)]? {
        let help = "write \(BareText.quoted(example)), or a list"
        guard entry.value.entries == nil || FlowPlaceholder.help(for: entry.value, in: source) != nil else {
            reportType(entry, "a string or a list of them", help: help)
            return nil
        }
        guard let elements = entry.value.elements else {
            return text(entry, help: help).map { [($0, entry.value)] }
        }
        guard !elements.isEmpty else {
            problems.error("\(quoted(entry.name)) is empty", at: mark(entry), help: help)
            return nil
        }
        return elements.compactMap { node in
            text(node, name: "an element of \(quoted(entry.name))", at: mark(node), help: help).map { ($0, node) }
        }
    }

    private func comparisons<Value>(
        _ entry: YAMLNode.Entry, example: String, allowsBare: Bool = false,
        _ parse: (String) throws(ComparisonText.Problem) -> Value
    ) -> Comparisons<Value>? {
        guard let texts = texts(entry, example: example) else { return nil }
        var bounds: [Comparisons<Value>.Bound] = []
        for (text, node) in texts {
            do throws(ComparisonText.Problem) {
                bounds += try ComparisonText.parse(text, noun: entry.name, allowsBare: allowsBare, parse)
            } catch {
                problems.error(error.message, at: mark(node), help: error.help)
                return nil
            }
        }
        let comparisons = Comparisons(bounds, text: texts.map { $0.0 }.joined(separator: " and "))
        guard !comparisons.isContradiction else {
            problems.error(
                "no \(entry.name) is \(escaped(comparisons.text, limit: 80))", at: mark(entry),
                help: "all in the list must match; write 'any' for alternatives")
            return nil
        }
        return comparisons
    }
}

extension Array {
    /// The array; nil when nothing is in it.
    fileprivate var nonEmpty: [Element]? { isEmpty ? nil : self }
}
