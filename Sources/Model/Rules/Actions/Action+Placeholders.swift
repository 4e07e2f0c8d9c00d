extension Action {
    /// The placeholders of the action without duplicates, in the order of their first use.
    package var placeholders: [Placeholder] {
        let templates: [Template] =
            switch work {
            case .use(_, let with): with.templates
            case .exec(let templates): templates
            case .shell: []
            }
        var seen: Set<Placeholder> = []
        return templates.flatMap(\.placeholders).filter { seen.insert($0).inserted }
    }
}

extension ParameterTemplate {
    /// All templates in the value, with members sorted by name.
    fileprivate var templates: [Template] {
        switch self {
        case .value: []
        case .text(let template): [template]
        case .array(let elements): elements.flatMap(\.templates)
        case .object(let members): members.sorted { $0.key < $1.key }.flatMap(\.value.templates)
        }
    }
}

extension Placeholder {
    /// The placeholder as it is written: `path`, `mtime:%Y`, `steps.0.outputs.0`.
    package var word: String {
        switch self {
        case .mtime(let format): format.map { "mtime:\($0)" } ?? "mtime"
        case .now(let format): format.map { "now:\($0)" } ?? "now"
        case .stepOutput(let step, let output): "steps.\(step).outputs.\(output)"
        case .group(let number): "\(number)"
        case .namedGroup(let name): "match.\(name)"
        case .path, .name, .stem, .extension, .directory, .relative, .root, .rule, .event, .from, .job, .attempt,
            .type, .size, .mode, .nlink, .inode, .id:
            "\(self)"
        }
    }
}
