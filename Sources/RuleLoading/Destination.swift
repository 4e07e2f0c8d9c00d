import FileEvents
import Globbing
import PluginProtocol
import Rules

/// Where an action writes, as a rule's author gave it.
struct Destination {
    /// The path, against the folder of the rules file where it is relative.
    var template: Template
    var folder: PathBytes
    /// The name of the handler.
    var handler: String
    /// Whether the handler is built in: these leave a file that is at its destination already.
    var isBuiltIn: Bool
    /// Whether it is written to only when a job has failed for good.
    var isOfFailure = false
    /// The extensions that a file there can have; empty for any.
    var extensions: [String] = []
    /// As it stands in the file.
    var written: String
    var range: Range<Int>
    let problems: DiagnosticCollector

    var afterFailure: Destination {
        var copy = self
        copy.isOfFailure = true
        return copy
    }

    /// The paths that it can stand for when a rule with these globs runs; empty when that can't be known.
    func paths(for globs: [Glob]) -> [PathSet] {
        guard let pieces = pieces(for: globs) else { return [] }
        var isWrittenOut = false
        if case .literal(let last)? = template.parts.last { isWrittenOut = last.last != .slash }
        guard let first = extensions.first, !isWrittenOut else { return [PathSet(pieces)] }
        // A name that has none of the extensions gets the first.
        let kept = PathSet(pieces)
        let options = Glob.Options(matchesHidden: true)
        let ends = extensions.compactMap { end in
            try? Glob(Array("/**/*".utf8) + Glob.escaped(Array(end.utf8)), options: options)
        }
        let extended = PathSet(pieces + [.literal(Array(first.utf8))])
        return kept.isMissed(by: PathFilter(globs: ends)) ? [extended] : [kept, extended]
    }

    private func pieces(for globs: [Glob]) -> [PathSet.Piece]? {
        var pieces: [PathSet.Piece] = []
        for part in template.parts {
            switch part {
            case .literal(let bytes): pieces.append(.literal(bytes))
            case .placeholder(let placeholder): pieces.append(Self.piece(for: placeholder, globs))
            }
        }
        guard let first = pieces.first else { return nil }
        if case .literal(let last) = pieces.last, last.last == .slash { pieces.append(.name(of: globs)) }
        // The literal beginning, made absolute and without `..`; behind a placeholder that can't be done.
        switch first {
        case .literal(let bytes):
            let path = folder.resolving(bytes)
            var head = path.normalized.bytes
            if bytes.last == .slash, head != [.slash] { head.append(.slash) }
            if bytes.last != .slash, pieces.count > 1, let slash = bytes.lastIndex(of: .slash) ?? bytes.indices.first {
                // A name that goes on behind the literal is no name of its own yet: `a/..${name}` is no parent.
                let cut = bytes[slash] == .slash ? slash + 1 : slash
                let start = bytes[..<cut]
                let base = start.isEmpty ? folder : folder.resolving(start)
                head = base.normalized.bytes
                if head != [.slash] { head.append(.slash) }
                head += bytes[cut...]
            }
            pieces[0] = .literal(head)
        case .path, .folder: break
        default: pieces.insert(.literal(folder.bytes == [.slash] ? [.slash] : folder.bytes + [.slash]), at: 0)
        }
        for (index, piece) in pieces.enumerated().dropFirst() {
            guard case .literal(let bytes) = piece else { continue }
            // What stands between two slashes is a whole name, and so is what ends the path.
            let names = bytes.split(separator: .slash, omittingEmptySubsequences: false)
            let whole = index == pieces.count - 1 ? names.dropFirst() : names.dropFirst().dropLast()
            let isOdd = whole.contains { $0.elementsEqual([.dot]) || $0.elementsEqual([.dot, .dot]) }
            if isOdd { return nil }
            pieces[index] = .literal(Self.withoutDoubledSlashes(bytes))
        }
        return pieces
    }

    private static func withoutDoubledSlashes(_ bytes: [UInt8]) -> [UInt8] {
        bytes.indices.filter { $0 == 0 || bytes[$0] != .slash || bytes[$0 - 1] != .slash }.map { bytes[$0] }
    }

    private static func piece(for placeholder: Placeholder, _ globs: [Glob]) -> PathSet.Piece {
        switch placeholder {
        case .path: .path(of: globs)
        case .name: .name(of: globs)
        case .stem: .stem(of: globs)
        case .extension: .extension(of: globs)
        case .directory: .folder(of: globs)
        case .relative: .relative(of: globs)
        case .root, .from, .stepOutput: .anything
        case .mtime(let format), .now(let format): format?.contains("/") == true ? .anything : .anyText
        default: .anyText
        }
    }

    /// Whether the file has its own name there.
    var keepsName: Bool {
        switch template.parts.last {
        case .placeholder(.name): true
        case .literal(let bytes): bytes.last == .slash
        default: false
        }
    }

    /// Whether it is the file's own path, where there is nothing to be done.
    var isInput: Bool {
        switch template.parts {
        case [.placeholder(.path)], [.placeholder(.directory), .literal([.slash])],
            [.placeholder(.directory), .literal([.slash]), .placeholder(.name)]:
            true
        default: false
        }
    }
}

extension RuleDecoder {
    /// What the schema marks as a destination, at any depth of mappings.
    func destinations(
        _ parameters: ParameterTemplate, schema: ParameterSchema?, node: YAMLNode?, of handler: HandlerDescription,
        extensions: [String] = []
    ) -> [Destination] {
        guard let schema, let node else { return [] }
        switch parameters {
        case .text(let template) where schema.role == ParameterSchema.destination:
            return [
                Destination(
                    template: template, folder: folder, handler: handler.reference.name,
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
