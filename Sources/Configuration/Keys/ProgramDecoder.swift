import Rules
import System

/// Reads the environment, the limits and the permissions of programs.
struct ProgramDecoder: RulePart {
    let decoder: RuleDecoder

    // MARK: - Single values

    /// Parses three octal digits in quotes; without quotes some YAML readers parse `027` as a different number.
    func umask(_ entry: YAMLNode.Entry) -> UInt32? {
        let help = "write three octal digits in quotes, such as \"027\""
        guard let text = text(entry, help: help) else { return nil }
        let digits = text.utf8.count == 4 && text.hasPrefix("0") ? text.dropFirst() : text[...]
        let isOctal = digits.utf8.count == 3 && digits.utf8.allSatisfy(\.isOctalDigit)
        guard isOctal, let bits = UInt32(digits, radix: 8) else {
            return reject("'umask' can't be \(quoted(text))", at: mark(entry), help: help)
        }
        guard !entry.value.isPlain else {
            return reject(
                "'umask' must be in quotes, since \(text) is a number", at: mark(entry), help: "write \"\(text)\"")
        }
        return bits
    }

    func nice(_ entry: YAMLNode.Entry) -> Int? {
        guard let nice = integer(entry, in: -20...19) else { return nil }
        guard nice >= machine.leastNice else {
            return reject(
                "'nice' can't be \(nice) here: only root can set a priority that high", at: mark(entry),
                help: "write \(machine.leastNice) or more, or start Alight as root")
        }
        return nice
    }

    func ioPriority(_ entry: YAMLNode.Entry) -> IOPriority? {
        let help = "write idle, best-effort, best-effort:N or realtime:N, with N from 0 to 7"
        guard let text = text(entry, help: help) else { return nil }
        guard let priority = IOPriority(text) else {
            return reject("'ionice' can't be \(quoted(text))", at: mark(entry), help: help)
        }
        if case .realtime = priority, !machine.isRoot {
            return reject(
                "'ionice' can't be \(quoted(text)) here: only root can set it", at: mark(entry),
                help: "write 'best-effort:0', or start Alight as root")
        }
        return priority
    }

    // MARK: - Environment of programs

    func environment(_ entry: YAMLNode.Entry) -> [EnvironmentVariable]? {
        guard let entries = entries(of: entry.value) else {
            return mistyped(entry, "a mapping", help: "write the variables as 'NAME: value'")
        }
        return entries.compactMap { variable in
            let name = variable.name
            let isWord = name.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "_") }
            guard isWord, let first = name.utf8.first, !first.isDigit else {
                return reject(
                    "invalid variable name \(quoted(name))", at: variable.key.range,
                    help: "use letters, digits and '_', not starting with a digit")
            }
            guard !name.hasPrefix("ALIGHT_"), name != "TMPDIR" else {
                return reject(
                    "\(quoted(name)) is set by Alight itself", at: variable.key.range, help: "use another name")
            }
            guard let text = text(variable, help: "write \"\" for an empty value"),
                let template = template(text, variable.value, step: 0)
            else { return nil }
            return EnvironmentVariable(name: name, value: template)
        }
    }

    func directory(_ entry: YAMLNode.Entry) -> Template? {
        text(entry).flatMap { text in
            guard !text.isEmpty else {
                return reject("'directory' is empty", at: mark(entry), help: "write a directory, or remove the key")
            }
            return template(text, entry.value, step: 0)
        }
    }
}
