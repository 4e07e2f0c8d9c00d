import Globbing
import PluginProtocol
import Rules
import System

/// A destination to which an action writes, as the rule specifies it.
struct Destination {
    /// The path; a relative one is relative to the directory of the rules file.
    var template: Template
    var baseDirectory: PathBytes
    /// The types of the files that the action writes; nil for those of the rule's files.
    var types: Set<FileType>?
    /// Whether many files share the output.
    var isShared = false
    /// Whether the handler is built in; built-in handlers skip a file that is already at its destination.
    var isBuiltIn: Bool
    /// Whether the action writes there only after a job has failed permanently.
    var isOfFailure = false
    /// The possible extensions of a file at the destination; empty for any.
    var extensions: [String] = []
    /// The destination as written in the rules file.
    var written: String
    var range: Range<Int>
    let problems: DiagnosticCollector

    /// Returns sample paths that the destination can expand to, in forms that the other rule could match.
    ///
    /// The result is empty if nothing is known about the paths.
    func paths(of rule: Rule, like other: Rule) -> [[UInt8]] {
        let literals = template.parts.compactMap(\.literal).flatMap { $0.split(separator: .slash).map(Array.init) }
        let words = PathWords(of: other.patterns + rule.patterns, for: rule.globs, beside: literals)
        let inputs = rule.samples(words)
        return inputs.flatMap { paths(for: $0, of: rule, words, limit: max(4_000 / inputs.count, 16)) }
    }

    /// Returns sample paths that the destination can expand to when the rule runs for this file.
    ///
    /// The words replace values that are known only at run time.
    func paths(for input: [UInt8], of rule: Rule, _ words: PathWords, limit: Int = 1_000) -> [[UInt8]] {
        let input = PathBytes(input)
        let values = PlaceholderValues(name: input, root: rule.root(matching: input), rule: rule.name)
        // A hidden name or an empty value is also possible.
        let texts = words.words + [Array(".x".utf8), []]
        var lists: [[[UInt8]]] = []
        for part in template.parts {
            switch part {
            case .literal(let bytes): lists.append([bytes])
            case .placeholder(let placeholder):
                switch placeholder {
                case .path, .name, .stem, .extension, .directory, .relative, .root, .rule:
                    lists.append([values.value(of: placeholder)])
                case .from, .stepOutput:
                    // A whole path of which nothing is known.
                    guard !lists.isEmpty else { return [] }
                    lists.append(texts)
                case .mtime(let format?) where format.contains("/"), .now(let format?) where format.contains("/"):
                    lists.append(texts)
                default: lists.append(texts.filter { !$0.contains(.slash) })
                }
            }
        }
        let paths = PathWords.combinations(of: lists, limit: limit).map { text in
            let path = baseDirectory.resolving(text.last == .slash ? text + input.lastComponent : text).normalized
            // A name without one of the extensions gets the first one, unless the template ends in a literal name.
            guard let first = extensions.first, !isWrittenOut, !DestinationExtensions.has(path.bytes, extensions) else {
                return path.bytes
            }
            return path.bytes + Array(first.utf8)
        }
        return isBuiltIn ? paths.filter { $0 != input.bytes } : paths
    }

    /// Whether it is the path of an output of one file, and contains nothing of the file but its name.
    var losesDirectory: Bool {
        !isBuiltIn && !isShared
            && !template.placeholders.contains { placeholder in
                switch placeholder {
                case .path, .directory, .relative, .from, .job, .inode, .id, .stepOutput, .group, .namedGroup: true
                default: false
                }
            }
    }

    /// Whether the template itself specifies the end of the name.
    private var isWrittenOut: Bool { template.parts.last?.literal.map { $0.last != .slash } ?? false }

    /// Returns directories that together contain every path that the destination can expand to.
    func directories(of rule: Rule) -> [PathBytes] {
        let leavesDirectory = template.parts.dropFirst().compactMap(\.literal).contains { bytes in
            bytes.split(separator: .slash).contains { $0.elementsEqual([.dot, .dot]) }
        }
        if leavesDirectory { return ["/"] }
        switch template.parts.first {
        case .literal(let bytes):
            let end = bytes.lastIndex(of: .slash).map { $0 + 1 } ?? 0
            return [baseDirectory.resolving(bytes[..<end]).normalized]
        case .placeholder(.path), .placeholder(.directory), .placeholder(.root): return rule.roots
        default: return [baseDirectory]
        }
    }

    /// Returns the directory at the start of the template, for a file directly in this root.
    func directory(below root: PathBytes) -> PathBytes? {
        guard case .placeholder(let first)? = template.parts.first else {
            return template.literalDirectory(in: baseDirectory)
        }
        guard first == .root || first == .directory else { return nil }
        let literal = template.parts.dropFirst().first?.literal ?? []
        return PathBytes(root.bytes + literal[..<(literal.lastIndex(of: .slash) ?? 0)]).normalized
    }

    /// Returns the possible endings of the paths that the destination can expand to, in lower case.
    func endings(of rule: Rule) -> [[UInt8]] {
        switch template.parts.last {
        case .literal(let bytes) where bytes.last != .slash: [bytes.map(\.lowercased)]
        case .literal, .placeholder(.name), .placeholder(.path), .placeholder(.relative):
            extensions.isEmpty ? rule.globs.flatMap(\.endings) : [[]]
        default: [[]]
        }
    }
}

extension RuleDecoder {
    /// Returns the parameters that the schema marks as destinations, at any depth of mappings.
    func destinations(
        _ parameters: ParameterTemplate, schema: ParameterSchema?, node: YAMLNode?, of handler: HandlerDescription,
        extensions: [String] = []
    ) -> [Destination] {
        guard let schema, let node else { return [] }
        switch parameters {
        case .text(let template) where schema.isOutput:
            checkExpansion(of: node.text ?? "", node)
            return [
                Destination(
                    template: template, baseDirectory: directory, types: handler.outputTypes,
                    isShared: schema.role == ParameterSchema.shared,
                    isBuiltIn: handler.reference.location == nil, extensions: extensions, written: node.text ?? "",
                    range: mark(node), problems: problems)
            ]
        case .object(let members):
            return members.sorted { $0.key < $1.key }.flatMap { key, value in
                let property = schema.properties?[key]
                return destinations(
                    value, schema: property, node: node.entry(key)?.value, of: handler,
                    extensions: property?.extensions?.list { schema.text($0, in: members) } ?? [])
            }
        default: return []
        }
    }
}
