import FileEvents
import Rules

/// The keys that say what programs may use and reach; nil for those that are not given.
struct ConfinementSettings {
    var umask: UInt32?
    var nice: Int?
    var ioPriority: IOPriority?
    var limits: Switched<ResourceLimits>?
    var user: Switched<ProgramUser>?
    var sandbox: Switched<Sandbox>?
    /// Whether `run_as` was given and could not be read, which has been told.
    var hasFaultyUser = false
    /// What `sandbox` asks of the groups of regular expressions.
    var captures: [CaptureUse] = []
    /// Where the number of processes is.
    var processesMark: Range<Int>?

    static let keys = ["umask", "nice", "ionice", "limits", "run_as", "sandbox"]

    /// These settings, and those of the other where these say nothing.
    func over(_ other: ConfinementSettings) -> ConfinementSettings {
        ConfinementSettings(
            umask: umask ?? other.umask, nice: nice ?? other.nice, ioPriority: ioPriority ?? other.ioPriority,
            limits: limits ?? other.limits, user: user ?? other.user, sandbox: sandbox ?? other.sandbox,
            hasFaultyUser: hasFaultyUser || (user == nil && other.hasFaultyUser),
            captures: sandbox == nil ? other.captures : captures,
            processesMark: limits == nil ? other.processesMark : processesMark)
    }

    var confinement: Confinement {
        var confinement = Confinement()
        confinement.umask = umask
        confinement.nice = nice
        confinement.ioPriority = ioPriority
        confinement.limits = limits?.value
        confinement.user = user?.value
        confinement.sandbox = sandbox?.value
        return confinement
    }
}

extension RuleDecoder {
    func confinement(from node: YAMLNode) -> ConfinementSettings {
        var settings = ConfinementSettings()
        settings.umask = node.entry("umask").flatMap { umask($0) }
        settings.nice = node.entry("nice").flatMap { nice($0) }
        settings.ioPriority = node.entry("ionice").flatMap { ioPriority($0) }
        if let entry = node.entry("run_as") {
            settings.user = user(entry)
            settings.hasFaultyUser = settings.user == nil
        }
        (settings.sandbox, settings.captures) = captures.noted { node.entry("sandbox").flatMap { sandbox($0) } }
        if let entry = node.entry("limits") {
            settings.limits = limits(entry)
            settings.processesMark = entry.value.entry("processes").map { mark($0) }
        }
        return settings
    }

    /// Tells of limits that hold for nobody.
    func checkConfinement(_ settings: ConfinementSettings) {
        guard !settings.hasFaultyUser, let mark = settings.processesMark, settings.limits?.value?.processes != nil,
            machine.isRoot
        else {
            return
        }
        if settings.user?.value.map({ $0.uid != 0 }) == true { return }
        problems.warning(
            "'processes' has no effect on programs of root", at: mark,
            help: "add 'run_as' with another user, or remove it")
    }

    var machine: RuleLoader.Machine { surroundings.machine }

    // MARK: - Single values

    /// Three octal digits, in quotes: without them some readers of YAML take `027` for a number of another value.
    private func umask(_ entry: YAMLNode.Entry) -> UInt32? {
        let help = "write three octal digits in quotes, such as \"027\""
        guard let text = text(entry, help: help) else { return nil }
        let digits = text.utf8.count == 4 && text.hasPrefix("0") ? text.dropFirst() : text[...]
        let isOctal = digits.utf8.count == 3 && digits.utf8.allSatisfy { (0x30...0x37).contains($0) }
        guard isOctal, let bits = UInt32(digits, radix: 8) else {
            problems.error("'umask' can't be \(quoted(text))", at: mark(entry), help: help)
            return nil
        }
        guard !entry.value.isPlain else {
            problems.error(
                "'umask' must be in quotes, since \(text) is a number", at: mark(entry), help: "write \"\(text)\"")
            return nil
        }
        return bits
    }

    private func nice(_ entry: YAMLNode.Entry) -> Int? {
        guard let nice = integer(entry, in: -20...19) else { return nil }
        guard nice >= machine.leastNice else {
            problems.error(
                "'nice' can't be \(nice) here: only root may put programs that far in front", at: mark(entry),
                help: "write \(machine.leastNice) or more, or start Alight as root")
            return nil
        }
        return nice
    }

    private func ioPriority(_ entry: YAMLNode.Entry) -> IOPriority? {
        let help = "write idle, best-effort, best-effort:N or realtime:N, with N from 0 to 7"
        guard let text = text(entry, help: help) else { return nil }
        guard let priority = IOPriority(text) else {
            problems.error("'ionice' can't be \(quoted(text))", at: mark(entry), help: help)
            return nil
        }
        if case .realtime = priority, !machine.isRoot {
            problems.error(
                "'ionice' can't be \(quoted(text)) here: that is for root alone", at: mark(entry),
                help: "write 'best-effort:0', or start Alight as root")
            return nil
        }
        return priority
    }

    /// Whether the entry says `false`, by which a rule does without what `defaults` have.
    func isOff(_ entry: YAMLNode.Entry) -> Bool { entry.value.isPlain && entry.value.text == "false" }

    // MARK: - Limits

    private func limits(_ entry: YAMLNode.Entry) -> Switched<ResourceLimits>? {
        if isOff(entry) { return .off }
        let keys = ["cpu", "memory", "files", "processes", "file_size"]
        let example = "write a mapping, such as { cpu: 30s, memory: 512 MiB }"
        return mapping(entry, "a mapping or false", keys: keys, help: example) { node in
            var limits = ResourceLimits()
            let terabyte = 1_000_000_000_000
            limits.cpu = node.entry("cpu").flatMap { duration($0, atLeast: (.seconds(1), "1s")) }
            limits.memory = node.entry("memory").flatMap {
                size($0, in: (4 << 20)...(64 * terabyte), shown: "4 MiB or more")
            }
            limits.files = node.entry("files").flatMap { integer($0, in: 16...1_048_576) }
            limits.processes = node.entry("processes").flatMap { integer($0, in: 1...4_194_304) }
            limits.fileSize = node.entry("file_size").flatMap {
                size($0, in: 1...(512 * terabyte), shown: "more than 0")
            }
            return limits
        }.map { .on($0) }
    }
}
