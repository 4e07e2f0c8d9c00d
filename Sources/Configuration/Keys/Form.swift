import JSON
import Rules

/// The form of a value: its reader, its JSON Schema and its name in the reference.
struct Form<Reader: NodeReading, Value>: Sendable {
    typealias Read = @Sendable (Reader, YAMLNode.Entry) -> Value?

    /// The name of the form in the reference, such as `duration` or `list of globs`.
    let noun: String
    let schema: @Sendable () -> JSONValue
    /// Returns a default value as it is written; nil if it is not shown.
    let json: @Sendable (Value) -> JSONValue?
    /// Reads a value; returns nil after it has reported a problem.
    let read: Read

    init(
        _ noun: String, _ schema: @autoclosure @escaping @Sendable () -> JSONValue,
        json: @escaping @Sendable (Value) -> JSONValue? = { _ in nil }, read: @escaping Read
    ) {
        (self.noun, self.schema, self.json, self.read) = (noun, schema, json, read)
    }
}

// MARK: - Single values

extension Form where Value == Bool {
    static var boolean: Form { Form("boolean", SchemaForm.boolean, json: { .bool($0) }) { $0.bool($1) } }
}

extension Form where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Form {
        Form("number", SchemaForm.integer(range), json: { .integer(Int64($0)) }) { $0.integer($1, in: range) }
    }

    /// A number of bytes in a range; `shown` is the range for messages.
    static func size(_ range: ClosedRange<Int>, shown: String) -> Form {
        let most = range.upperBound == .max ? nil : range.upperBound
        return Form(
            "size", SchemaForm.size(atLeast: range.lowerBound, atMost: most), json: { .integer(Int64($0)) }
        ) { $0.size($1, in: range, shown: shown) }
    }
}

extension Form where Value == Duration {
    static func duration(allowsZero: Bool = false, atLeast least: (Duration, String)? = nil) -> Form {
        Form("duration", SchemaForm.duration(allowsZero: allowsZero), json: { JSONValue($0) }) {
            $0.duration($1, allowsZero: allowsZero, atLeast: least)
        }
    }
}

extension Form where Value: RawRepresentable<String> & CaseIterable & SendableMetatype {
    /// One of the raw values of a type.
    static func choice(_: Value.Type, read: @escaping Read = { $0.choice($1) }) -> Form {
        let words = Value.allCases.map(\.rawValue)
        let quoted = words.map { "`\($0)`" }
        return Form(
            quoted.dropLast().joined(separator: ", ") + " or " + quoted[quoted.count - 1], SchemaForm.words(words),
            json: { .string($0.rawValue) }, read: read)
    }
}

extension Form where Value == Void {
    /// A value that is decoded later, since it depends on other keys.
    static func unread(_ noun: String, _ schema: @autoclosure @escaping @Sendable () -> JSONValue) -> Form {
        Form(noun, schema()) { _, _ in nil }
    }
}

extension JSONValue {
    /// Creates the form in which a rules file contains the duration.
    init(_ duration: Duration) { self = duration == .zero ? 0 : .string(DurationText.shown(duration)) }
}

// MARK: - Mappings and switches

extension Form where Value: Sendable {
    /// A mapping of keys.
    ///
    /// - Parameters:
    ///   - keys: The known keys.
    ///   - initial: The value without any keys.
    ///   - expected: The expected type for messages.
    ///   - help: Returns the help for a value of another type; nil for the names of the keys.
    ///   - finish: Checks keys against each other, if all of them were read without errors.
    /// - Returns: The form.
    static func mapping(
        _ keys: [Key<Reader, Value>], over initial: Value, expected: String = "a mapping",
        help: @escaping @Sendable (Reader, YAMLNode.Entry) -> String? = { _, _ in nil },
        finish: @escaping @Sendable (Reader, YAMLNode.Entry, inout Value) -> Void = { _, _, _ in }
    ) -> Form {
        let table = KeyTable(keys, over: initial)
        return Form("mapping", SchemaForm.object(table.schemas, isNonEmpty: true)) { reader, entry in
            let errors = reader.problems.errorCount
            let help = help(reader, entry)
            guard let entries = reader.mapping(entry, expected, keys: table.names, help: help) else { return nil }
            var value = initial
            table.read(entries, by: reader, into: &value)
            if reader.problems.errorCount == errors { finish(reader, entry, &value) }
            return value
        }
    }

    /// `false` for none, or a value.
    static func orFalse<Wrapped>(_ form: Form<Reader, Wrapped>) -> Form where Value == Wrapped? {
        Form("\(form.noun), or `false`", ["anyOf": [["const": false], form.schema()]]) { reader, entry in
            entry.value.isOff ? .some(nil) : form.read(reader, entry).map { .some($0) }
        }
    }

    /// `true` for the defaults, `false` for none, or a mapping with settings.
    static func switched<Wrapped: Sendable>(
        _ keys: [Key<Reader, Wrapped>], over plain: Wrapped,
        help: @escaping @Sendable (YAMLNode.Entry) -> String? = { _ in nil },
        finish: @escaping @Sendable (Reader, YAMLNode.Entry, inout Wrapped) -> Void = { _, _, _ in }
    ) -> Form where Value == Wrapped? {
        let names = keys.map(\.name).joined(separator: ", ")
        let mapping = Form<Reader, Wrapped>.mapping(
            keys, over: plain, expected: "true, false or a mapping",
            help: { help($1) ?? $0.boolHelp($1) ?? "write 'true', or a mapping with \(names)" }, finish: finish)
        return Form(
            "mapping, or `false`", ["anyOf": [SchemaForm.boolean, mapping.schema()]],
            json: { $0 == nil ? .bool(false) : nil }
        ) { reader, entry in
            if entry.value.isOff { return .some(nil) }
            if entry.value.isPlain, entry.value.text == "true" { return .some(plain) }
            return mapping.read(reader, entry).map { .some($0) }
        }
    }
}
