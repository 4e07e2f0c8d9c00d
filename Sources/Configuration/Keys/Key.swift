import JSON

/// The definition of a key in a mapping.
///
/// The loader, the JSON Schema, the reference in `docs/` and messages about unknown keys are all derived from it.
struct Key<Reader: NodeReading, Target>: Sendable {
    let name: String
    /// A one-sentence description for editors and for the reference.
    let description: String
    /// The name of the value's form in the reference.
    let noun: String
    /// The default value; nil if there is none that can be written.
    var standard: JSONValue?
    /// Returns the value that a target has without the key.
    var initialValue: @Sendable (Target) -> JSONValue? = { _ in nil }
    let examples: [JSONValue]
    /// Whether the key is also allowed in `defaults`.
    let isShared: Bool
    /// The schema of the value alone.
    let form: @Sendable () -> JSONValue
    /// Reads a value into the target; after it has reported a problem, the target is unchanged.
    let read: @Sendable (Reader, YAMLNode.Entry, inout Target) -> Void

    var schema: JSONValue {
        var members = form().object ?? [:]
        members["description"] = .string(description)
        if let standard { members["default"] = standard }
        if !examples.isEmpty { members["examples"] = .array(examples) }
        return .object(members)
    }
}

extension Key {
    init<Value>(
        _ name: String, _ description: String, _ form: Form<Reader, Value>, standard: JSONValue? = nil,
        examples: [JSONValue] = [], isShared: Bool = true, _ store: @escaping @Sendable (inout Target, Value) -> Void
    ) {
        self.init(
            name: name, description: description, noun: form.noun, standard: standard, examples: examples,
            isShared: isShared, form: form.schema
        ) { reader, entry, target in if let value = form.read(reader, entry) { store(&target, value) } }
    }

    /// The default is the value of the property in the initial target, if the form can write it.
    init<Value>(
        _ name: String, _ description: String, _ form: Form<Reader, Value>, examples: [JSONValue] = [],
        isShared: Bool = true, into property: any WritableKeyPath<Target, Value> & Sendable
    ) {
        self.init(name, description, form, examples: examples, isShared: isShared) { $0[keyPath: property] = $1 }
        initialValue = { form.json($0[keyPath: property]) }
    }

    init<Value>(
        _ name: String, _ description: String, _ form: Form<Reader, Value>, standard: JSONValue? = nil,
        examples: [JSONValue] = [], isShared: Bool = true, into property: any WritableKeyPath<Target, Value?> & Sendable
    ) {
        self.init(name, description, form, standard: standard, examples: examples, isShared: isShared) {
            $0[keyPath: property] = $1
        }
    }
}

/// The keys of a mapping.
struct KeyTable<Reader: NodeReading, Target>: Sendable {
    let keys: [Key<Reader, Target>]
    let names: [String]
    private let indices: [String: Int]

    /// - Parameters:
    ///   - keys: The keys.
    ///   - initial: The target without any keys, which has the defaults of the keys that state none.
    init(_ keys: [Key<Reader, Target>], over initial: Target? = nil) {
        self.keys = keys.map { key in
            var key = key
            key.standard = key.standard ?? initial.flatMap(key.initialValue)
            return key
        }
        names = keys.map(\.name)
        indices = Dictionary(uniqueKeysWithValues: zip(names, keys.indices))
    }

    /// Returns the key with that name.
    subscript(name: String) -> Key<Reader, Target>? { indices[name].map { keys[$0] } }

    /// Reads the entries in order; unknown ones are skipped.
    func read(_ entries: [YAMLNode.Entry], by reader: Reader, into target: inout Target) {
        for entry in entries { self[entry.name]?.read(reader, entry, &target) }
    }

    /// The schemas of the values, keyed by name.
    var schemas: [String: JSONValue] { Dictionary(uniqueKeysWithValues: keys.map { ($0.name, $0.schema) }) }
}
