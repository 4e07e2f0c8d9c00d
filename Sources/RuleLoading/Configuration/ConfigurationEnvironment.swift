import FileEvents
package import Rules

/// What variables of the environment say of the configuration.
///
/// They are `ALIGHT_` and the key in capitals; one that is empty says nothing. Several paths are separated by colons, as in
/// `PATH`, and several URLs by commas.
package struct ConfigurationEnvironment {
    private let variables: [String: String]

    package init(_ variables: [String: String]) { self.variables = variables }

    /// The variables that are read.
    package static let names = [
        "ALIGHT_CONFIG", "ALIGHT_JOURNAL", "ALIGHT_RETENTION", "ALIGHT_LISTEN", "ALIGHT_EXTERNAL_URL",
        "ALIGHT_CONTROL", "ALIGHT_JOBS", "ALIGHT_LOG_FORMAT", "ALIGHT_LOG_LEVEL", "ALIGHT_PLUGINS", "ALIGHT_RULES",
    ]

    /// Reads them.
    ///
    /// - Throws: What is wrong with the first that can't be read.
    package func configuration() throws(HandlerProblem) -> Configuration {
        var configuration = Configuration()
        configuration.journal = try read("ALIGHT_JOURNAL") { text, name throws(HandlerProblem) in
            text == ":memory:" ? .memory : .file(try Self.file(text, name))
        }
        configuration.retentionPeriod = try read("ALIGHT_RETENTION") { text, name throws(HandlerProblem) in
            try Self.about(name) { () throws(HandlerProblem) in try ConfigurationValues.period(text) }
        }
        configuration.listen = try read("ALIGHT_LISTEN") { text, name throws(HandlerProblem) in
            if text == "false" { return nil }
            return try Self.about(name) { () throws(HandlerProblem) in try ConfigurationValues.address(text) }
        }
        configuration.externalURLs = try read("ALIGHT_EXTERNAL_URL") { text, name throws(HandlerProblem) in
            try Self.about(name) { () throws(HandlerProblem) in
                var urls: [String] = []
                for part in text.split(separator: ",") {
                    urls.append(try ConfigurationValues.externalURL(part.filter { $0 != " " }))
                }
                return urls
            }
        }
        configuration.control = try read("ALIGHT_CONTROL") { text, name throws(HandlerProblem) in
            text == "false" ? nil : try Self.file(text, name)
        }
        configuration.jobs = try read("ALIGHT_JOBS") { text, name throws(HandlerProblem) in
            let range = Configuration.jobsRange
            if let number = Int(text), range.contains(number) { return number }
            throw HandlerProblem(
                message:
                    "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound), not \(quoted(text))",
                help: "set another one, or remove the variable")
        }
        configuration.logFormat = try read("ALIGHT_LOG_FORMAT", Self.choice)
        configuration.logLevel = try read("ALIGHT_LOG_LEVEL", Self.choice)
        configuration.plugins = try read("ALIGHT_PLUGINS", Self.paths)
        configuration.rules = try read("ALIGHT_RULES", Self.paths)
        return configuration
    }

    private func read<Value>(
        _ name: String, _ body: (_ text: String, _ name: String) throws(HandlerProblem) -> Value
    ) throws(HandlerProblem) -> Setting<Value>? {
        guard let text = variables[name], !text.isEmpty else { return nil }
        return Setting(try body(text, name), from: .variable(name))
    }

    private static func about<Value>(
        _ name: String, _ body: () throws(HandlerProblem) -> Value
    ) throws(HandlerProblem) -> Value {
        do throws(HandlerProblem) {
            return try body()
        } catch {
            throw HandlerProblem(message: "\(name): \(error.message)", help: error.help)
        }
    }

    private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ text: String, _ name: String
    ) throws(HandlerProblem) -> Choice {
        if let choice = Choice(rawValue: text) { return choice }
        throw HandlerProblem(
            message: "\(name) can't be \(quoted(text))",
            help: Spelling.help(for: text, candidates: Choice.allCases.map(\.rawValue), noun: "choices"))
    }

    /// A variable has no folder that a relative path could be meant from.
    private static func file(_ text: String, _ name: String) throws(HandlerProblem) -> PathBytes {
        guard text.hasPrefix("/") else {
            throw HandlerProblem(
                message: "\(name) must be an absolute path, not \(quoted(text))", help: "write the folder out")
        }
        guard !text.hasSuffix("/") else {
            throw HandlerProblem(message: "\(name) is the folder \(quoted(text))", help: "name a file in it")
        }
        return PathBytes(text).normalized
    }

    private static func paths(_ text: String, _ name: String) throws(HandlerProblem) -> [PathBytes] {
        var paths: [PathBytes] = []
        for part in text.split(separator: ":") {
            guard part.hasPrefix("/") else {
                throw HandlerProblem(
                    message: "\(name) must name absolute paths, not \(quoted(part))",
                    help: "write the folder out; several are separated by ':'")
            }
            paths.append(PathBytes(String(part)).normalized)
        }
        return paths
    }
}
