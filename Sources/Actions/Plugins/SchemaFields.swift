import JSON
import Rules

/// The members of an object by type; each is optional, and a member of another type is a problem.
struct SchemaFields {
    let members: [String: JSONValue]
    /// The path of the object for messages; empty at the top level.
    let location: String

    func text(_ key: String) throws(HandlerProblem) -> String? { try field(key, "a string") { $0.string } }

    func bool(_ key: String) throws(HandlerProblem) -> Bool? { try field(key, "true or false") { $0.bool } }

    func number(_ key: String) throws(HandlerProblem) -> Double? { try field(key, "a number") { $0.double } }

    func list(_ key: String, nullable: Bool = true) throws(HandlerProblem) -> [JSONValue]? {
        try field(key, "a list", nullable: nullable) { $0.array }
    }

    /// Returns a mapping, which may not be null.
    func mapping(_ key: String) throws(HandlerProblem) -> [String: JSONValue]? {
        try field(key, "a mapping", nullable: false) { $0.object }
    }

    func texts(_ key: String) throws(HandlerProblem) -> [String]? {
        try field(key, "a list of strings") { value in
            guard let texts = value.array?.compactMap(\.string), texts.count == value.array?.count else { return nil }
            return texts
        }
    }

    func count(_ key: String, atLeast least: Int = 0) throws(HandlerProblem) -> Int? {
        try field(key, "a whole number of at least \(least)") { value in
            guard let number = value.double, let count = Int(exactly: number), count >= least else { return nil }
            return count
        }
    }

    private func field<Value>(
        _ key: String, _ noun: String, nullable: Bool = true, _ read: (JSONValue) -> Value?
    ) throws(HandlerProblem) -> Value? {
        guard let value = members[key], value != .null || !nullable else { return nil }
        guard let field = read(value) else {
            let key = location.isEmpty ? key : "\(location).\(key)"
            throw HandlerProblem(message: "'\(key)' must be \(noun)", help: nil, key: key)
        }
        return field
    }
}
