import Rules
import System

// Limits and permissions of programs.
extension RuleDecoder {
    /// Warns about limits that have no effect.
    func checkConfinement(_ draft: RuleDraft) {
        guard machine.isRoot, !draft.hasFaultyUser, draft.rule.confinement.user.map({ $0.uid == 0 }) ?? true,
            draft.rule.confinement.limits?.processes != nil, let entry = draft["limits"]?.value.entry("processes")
        else { return }
        problems.warning(
            "'processes' has no effect on programs that run as root", at: mark(entry),
            help: "add 'run_as' with another user, or remove it")
    }

    var machine: RuleLoader.Machine { surroundings.machine }

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
}
