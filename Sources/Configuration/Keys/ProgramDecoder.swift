import Glibc
import Rules
import System

// The environment, the limits and the permissions of programs.
extension RuleDecoder {
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
            warnOfVariable(in: text, variable.value, key: "env")
            return EnvironmentVariable(name: name, value: template)
        }
    }

    func workingDirectory(_ entry: YAMLNode.Entry) -> Template? {
        text(entry).flatMap { text in
            guard !text.isEmpty else {
                return reject("'directory' is empty", at: mark(entry), help: "write a directory, or remove the key")
            }
            checkExpansion(of: text, entry.value)
            return template(text, entry.value, step: 0)
        }
    }

    // MARK: - The user that programs run as

    func user(_ entry: YAMLNode.Entry) -> ProgramUser? {
        guard let text = text(entry, help: "write a user, such as 'www-data', or USER:GROUP") else { return nil }
        guard machine.isRoot else {
            return reject(
                "'run_as' needs root: only root can start programs as another user", at: mark(entry),
                help: "start Alight as root, or as that user and without 'run_as'")
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let name = parts.first, !name.isEmpty, parts.count == 1 || !parts[1].isEmpty else {
            return reject("'run_as' can't be \(quoted(text))", at: mark(entry), help: "write USER or USER:GROUP")
        }
        // As in chown(1): a name takes precedence, and a number applies only if no user has that name.
        let number = UInt32(name).flatMap { $0 == .max ? nil : $0 }
        let account = machine.accounts.named(name) ?? number.flatMap { machine.accounts.numbered($0) }
        guard let uid = account?.uid ?? number else { return unknown("user", name, at: mark(entry)) }
        guard let gid = group(of: account, parts.count == 2 ? parts[1] : nil, number: name, entry) else { return nil }
        return ProgramUser(
            text: text, name: account?.name, uid: uid, gid: gid,
            groups: account.map { machine.accounts.groups($0.name, gid) } ?? [gid], home: account?.home ?? "/")
    }

    private func group(
        of account: Accounts.Account?, _ name: String?, number: String, _ entry: YAMLNode.Entry
    ) -> UInt32? {
        if let name {
            if let gid = Accounts.group(named: name) ?? UInt32(name).flatMap({ $0 == .max ? nil : $0 }) { return gid }
            return unknown("group", name, at: mark(entry))
        }
        if let account { return account.gid }
        return reject(
            "no user has the ID \(number), so its group is unknown", at: mark(entry), help: "write '\(number):GROUP'")
    }

    // MARK: - Sandbox

    /// Reports a sandbox that restricts nothing, and one that this machine can't enforce.
    func checkSandbox(_ sandbox: Sandbox, _ entry: YAMLNode.Entry) {
        if !sandbox.confinesFiles, sandbox.allowsNetwork {
            problems.warning(
                "'sandbox' restricts nothing", at: mark(entry),
                help: "add 'read' or 'write' with paths, or 'network: no'")
        }
        let confines = sandbox.confinesFiles
        func report(_ message: String, help: String) {
            if sandbox.isRequired {
                problems.error(message, at: mark(entry), help: "\(help), or add 'required: no' to run without it")
            } else {
                problems.warning("\(message); programs run without it", at: mark(entry), help: help)
            }
        }
        if confines, machine.landlock < 1 {
            let state =
                switch -machine.landlock {
                case ENOSYS: "Landlock ABI 0: the kernel was built without it"
                case EOPNOTSUPP: "Landlock ABI 0: it is disabled"
                default: "Landlock ABI 0: \(SystemError(errno: -machine.landlock))"
                }
            report(
                "this kernel can't restrict programs to the files of 'sandbox' (\(state))",
                help: "boot Linux 5.13 or later with 'landlock' in its parameter 'lsm='")
        } else if confines, machine.landlock < 3 {
            problems.warning(
                "with the Landlock ABI \(machine.landlock) of this kernel a program can still truncate files outside "
                    + "of its 'sandbox'", at: mark(entry), help: "boot Linux 6.2 or later, which has ABI 3")
        }
        if !sandbox.allowsNetwork, !machine.canShutOffNetwork {
            report(
                "this kernel can't block network access for programs: it has no seccomp filters",
                help: "boot a kernel that was built with CONFIG_SECCOMP_FILTER, on x86-64, arm64 or riscv64")
        }
    }

    /// Parses paths: absolute, or relative to the directory of the rules file; placeholders are expanded at each
    /// start.
    func paths(_ entry: YAMLNode.Entry) -> [Template]? {
        list(entry, of: "a path in \(quoted(entry.name))", example: "/srv/out", allowsEmpty: true) { text, node in
            guard !text.isEmpty else {
                return reject(
                    "a path in \(quoted(entry.name)) is empty", at: mark(node), help: "write a file or a directory")
            }
            let isGlob = text.replacing("${", with: "").utf8.contains { "*?[{".utf8.contains($0) }
            if isGlob {
                problems.warning(
                    "\(quoted(text)) is used literally: \(quoted(entry.name)) expects paths, not globs", at: mark(node),
                    help: "write a directory to include everything in it")
            }
            checkExpansion(of: text, node)
            return template(text, node, step: 0)
        }
    }

    /// Reports a user or a group that this machine does not have; returns nil.
    func unknown<Value>(_ kind: String, _ name: String, at range: Range<Int>) -> Value? {
        reject(
            "unknown \(kind) \(quoted(name))", at: range, help: "write a \(kind) name of this machine, or a \(kind) ID")
    }
}
