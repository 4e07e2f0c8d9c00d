import JSON
package import PluginProtocol
import RegularExpressions

/// Checks parameters against the schema of their handler.
///
/// A string with placeholders has no value before its event, so only its type is checked. A value that the schema marks
/// `writeOnly` is never quoted.
package struct ParameterCheck {
    private let schema: ParameterSchema
    private let path: [ParameterProblem.Step]

    /// Returns all problems in the order of the keys; empty if the parameters are valid.
    package static func problems(in parameters: ParameterTemplate, schema: ParameterSchema) -> [ParameterProblem] {
        ParameterCheck(schema: schema, path: []).problems(in: parameters)
    }

    /// Returns the parameters with the defaults of missing members, at every depth.
    ///
    /// A missing object is created only if the schema has a default for the object itself.
    package static func fillingDefaults(_ parameters: ParameterTemplate, schema: ParameterSchema) -> ParameterTemplate {
        switch parameters {
        case .object(var members):
            for (key, property) in schema.properties ?? [:] {
                if let member = members[key] {
                    members[key] = fillingDefaults(member, schema: property)
                } else if let value = property.default {
                    members[key] = fillingDefaults(ParameterTemplate(value), schema: property)
                }
            }
            return .object(members)
        case .array(let elements):
            guard let items = schema.items else { return parameters }
            return .array(elements.map { fillingDefaults($0, schema: items) })
        case .value, .text:
            return parameters
        }
    }

    // MARK: - One value

    private var name: String { ParameterWords.name(of: path) }

    private func problem(_ message: String, help: String? = nil) -> [ParameterProblem] {
        [ParameterProblem(path: path, message: message, help: help)]
    }

    private func problems(in value: ParameterTemplate) -> [ParameterProblem] {
        if let type = schema.type, !Self.fits(value, type: type) {
            return problem(
                "\(name) must be \(ParameterWords.noun(for: type)), not \(ParameterWords.shown(value, schema))",
                help: type == "string" && Self.isPlain(value) ? "put it into quotes" : schema.description)
        }
        if let constant = value.constant {
            if let choices = schema.enum, !choices.contains(where: { $0.isSame(as: constant) }) {
                return problem(
                    "\(name) can't be \(ParameterWords.shown(value, schema))",
                    help: Spelling.help(for: constant.string ?? "", candidates: choices.map(\.shown), noun: "values"))
            }
            if let only = schema.const, !only.isSame(as: constant) {
                return problem("\(name) can't be \(ParameterWords.shown(value, schema))", help: "write \(only.shown)")
            }
        }
        switch value {
        case .value(let constant):
            return constant.double.map(numberProblems) ?? []
        case .text(let template):
            guard let text = template.literal.map({ String(decoding: $0, as: UTF8.self) }) else {
                guard schema.role == ParameterSchema.literal else { return [] }
                return problem("\(name) can't contain a placeholder", help: "write a literal value, without '${…}'")
            }
            return textProblems(text)
        case .array(let elements):
            return arrayProblems(elements)
        case .object(let members):
            return objectProblems(members)
        }
    }

    private func numberProblems(_ number: Double) -> [ParameterProblem] {
        let value = schema.writeOnly == true ? "" : " \(ParameterWords.shown(number))"
        let help = ParameterWords.range("a number", from: schema.minimum, to: schema.maximum)
        if let minimum = schema.minimum, number < minimum {
            return problem("\(name)\(value) is below the minimum of \(ParameterWords.shown(minimum))", help: help)
        }
        if let maximum = schema.maximum, number > maximum {
            return problem("\(name)\(value) is above the maximum of \(ParameterWords.shown(maximum))", help: help)
        }
        return []
    }

    /// Returns the error of a number of characters or elements; nil if it is allowed.
    private func countError(_ count: Int, _ noun: String, _ minimum: Int?, _ maximum: Int?) -> String? {
        if let minimum, count < minimum { return "\(name) has \(count) \(noun), but at least \(minimum) are needed" }
        if let maximum, count > maximum { return "\(name) has \(count) \(noun), but at most \(maximum) are allowed" }
        return nil
    }

    private func textProblems(_ text: String) -> [ParameterProblem] {
        if let error = countError(text.unicodeScalars.count, "characters", schema.minLength, schema.maxLength) {
            return problem(text.isEmpty && schema.minLength == 1 ? "\(name) is empty" : error, help: schema.description)
        }
        guard let pattern = schema.pattern else { return [] }
        // A pattern that cannot be compiled was rejected with the schema.
        switch (try? RegularExpression(pattern))?.search(text.utf8) ?? .notFound {
        case .found: return []
        case .notFound:
            let value = schema.writeOnly == true ? "" : " '\(text)'"
            return problem("\(name)\(value) doesn't match the pattern \(pattern)", help: schema.description)
        case .tooComplex:
            return problem(
                "the pattern \(pattern) is too complex for \(name)",
                help: "simplify 'pattern' in the plugin's description")
        }
    }

    /// Returns the error of a pattern in a schema; nil if it is valid.
    package static func refusal(of pattern: String) -> String? {
        do throws(RegularExpressionError) {
            _ = try RegularExpression(pattern)
            return nil
        } catch { return error.message }
    }

    private func arrayProblems(_ elements: [ParameterTemplate]) -> [ParameterProblem] {
        var found: [ParameterProblem] = []
        if let error = countError(elements.count, "elements", schema.minItems, schema.maxItems) {
            found += problem(error, help: schema.description)
        }
        guard let items = schema.items else { return found }
        for (index, element) in elements.enumerated() {
            found += ParameterCheck(schema: items, path: path + [.index(index)]).problems(in: element)
        }
        return found
    }

    private func objectProblems(_ members: [String: ParameterTemplate]) -> [ParameterProblem] {
        let properties = schema.properties ?? [:]
        var found: [ParameterProblem] = []
        for key in (schema.required ?? []).sorted() where members[key] == nil && properties[key]?.default == nil {
            let what = properties[key]?.description.map { ": \($0)" } ?? ""
            let word = ParameterWords.path(path + [.key(key)])
            found += problem("parameter '\(word)' is missing", help: "add '\(key):'\(what)")
        }
        found += memberProblems(members)
        for (key, member) in members.sorted(by: { $0.key < $1.key }) {
            let inner = path + [.key(key)]
            if let property = properties[key] {
                let check = ParameterCheck(schema: property, path: inner)
                found += check.problems(in: member)
                if let extensions = property.extensions?.list({ schema.text($0, in: members) }) {
                    found += check.extensionProblems(member, extensions)
                }
            } else if schema.additionalProperties == false {
                let known = properties.keys.sorted()
                found.append(
                    ParameterProblem(
                        path: inner, isAboutKey: true, message: "unknown parameter '\(ParameterWords.path(inner))'",
                        help: known.isEmpty
                            ? "it accepts no parameters"
                            : Spelling.help(
                                for: key, candidates: known, noun: "parameters",
                                except: known.filter { members[$0] != nil })
                    ))
            }
        }
        return found
    }

    /// Returns the problems of the members as a whole: too few members, or members that exclude each other.
    private func memberProblems(_ members: [String: ParameterTemplate]) -> [ParameterProblem] {
        func list(_ keys: [String], _ word: String) -> String { keys.map { "'\($0)'" }.joined(separator: " \(word) ") }
        var found: [ParameterProblem] = []
        if let minimum = schema.minProperties, members.count < minimum {
            let known = list((schema.properties ?? [:]).keys.sorted(), "or")
            found += problem("\(name) needs at least \(minimum) of its parameters", help: "write \(known)")
        }
        let dependent = (schema.dependentRequired ?? [:]).sorted { $0.key < $1.key }
        for (key, needed) in dependent where members[key] != nil {
            for other in needed where members[other] == nil {
                found += problem("parameter '\(key)' needs '\(other)'", help: "add '\(other):'")
            }
        }
        guard let choices = schema.oneOf, found.isEmpty else { return found }
        let fitting = choices.filter { ParameterCheck(schema: $0, path: path).problems(in: .object(members)).isEmpty }
        let words = choices.map { list($0.required ?? [], "and") }
        if fitting.isEmpty {
            found += problem("one of \(words.joined(separator: ", ")) is needed", help: "write one of them")
        } else if fitting.count > 1 {
            let words = fitting.map { list($0.required ?? [], "and") }
            found += problem("\(words.joined(separator: ", ")) exclude each other", help: "write one of them")
        }
        return found
    }

    /// Returns a problem if a destination ends with an extension that the handler cannot write.
    private func extensionProblems(_ value: ParameterTemplate, _ extensions: [String]) -> [ParameterProblem] {
        guard !extensions.isEmpty, case .text(let template) = value, case .literal(let tail)? = template.parts.last,
            tail.last != UInt8(ascii: "/")
        else { return [] }
        // The name of a file may precede it.
        let file = template.parts.count == 1 ? tail : Array("x".utf8) + tail
        guard !DestinationExtensions.has(file, extensions) else { return [] }
        let end = tail[(tail.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)...]
        return problem(
            "\(name) can't end in '\(String(decoding: end, as: UTF8.self))'",
            help: "end it in \(extensions.joined(separator: ", ")), or in '/' for a directory")
    }

    // MARK: - Types

    private static func fits(_ value: ParameterTemplate, type: String) -> Bool {
        switch (value, type) {
        case (.text, "string"), (.array, "array"), (.object, "object"): true
        case (.value(let constant), "integer"): constant.double.map { $0 == $0.rounded() } ?? false
        case (.value(let constant), "number"): constant.double != nil
        case (.value(let constant), _): constant.typeName == type
        default: false
        }
    }

    /// Whether it is a number or a boolean, which would be a string in YAML if it was quoted.
    private static func isPlain(_ value: ParameterTemplate) -> Bool {
        if case .value(let constant) = value { constant.bool != nil || constant.double != nil } else { false }
    }
}

extension ParameterSchema {
    /// Returns the string of a member without placeholders, or its default.
    package func text(_ key: String, in members: [String: ParameterTemplate]) -> String? {
        members[key].map { $0.constant?.string } ?? properties?[key]?.default?.string
    }
}

extension JSONValue {
    /// Whether JSON Schema considers both equal, as for `1` and `1.0`.
    fileprivate func isSame(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.array(let left), .array(let right)):
            return left.count == right.count && zip(left, right).allSatisfy { $0.isSame(as: $1) }
        case (.object(let left), .object(let right)):
            return left.count == right.count
                && left.allSatisfy { key, value in right[key].map(value.isSame(as:)) ?? false }
        default:
            guard let left = double, let right = other.double else { return self == other }
            return left == right
        }
    }
}

/// An error in one value of a rule's `with:`, with its location.
package struct ParameterProblem: Error, Sendable, Hashable {
    package enum Step: Sendable, Hashable {
        case key(String)
        case index(Int)
    }

    /// The path from `with:` to the value; empty for `with:` itself.
    package var path: [Step]
    /// Whether the error is in the key, not its value: the caret is placed under the key.
    package var isAboutKey = false
    package var message: String
    package var help: String?
}
