import ActionAPI
import ArgumentParser
import Configuration
import Foundation
import Glibc
import Programs
import Rules
import Storage
import System

/// The option for the configuration file, shared by all commands that read it.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        help: .value(
            "file", "The configuration file.",
            discussion: """
                Default: $XDG_CONFIG_HOME/alight/config.yaml, where XDG_CONFIG_HOME defaults to ~/.config; as root, \
                else /etc/alight/config.yaml. 'alight config' shows the values in effect.
                """),
        completion: .file())
    var config: String?

    /// Loads the configuration in effect from the options, the environment and the file.
    ///
    /// - Parameter flags: Applies the values that the options of the command set.
    /// - Returns: The configuration in effect, and the file that was read.
    /// - Throws: `Exit` when the file or a variable is invalid; the error has been printed. Rethrows errors of
    ///   `flags`.
    func load(_ flags: (inout Configuration) throws -> Void = { _ in }) throws -> LoadedConfiguration {
        let (loaded, diagnostics): (LoadedConfiguration, [Diagnostic])
        do {
            (loaded, diagnostics) = try read(flags)
        } catch let problem as Problem {
            throw Exit(.usage, error: problem.message, help: problem.help)
        }
        for diagnostic in diagnostics { diagnostic.log(as: .text) }
        if diagnostics.contains(where: { $0.severity == .error }) { throw Exit(.rulesInvalid) }
        return loaded
    }

    /// Loads the configuration like ``load(_:)``, but returns the problems of the file instead of printing them.
    ///
    /// - Throws: The problem of an invalid environment variable. Rethrows errors of `flags`.
    func read(_ flags: (inout Configuration) throws -> Void) throws -> (LoadedConfiguration, [Diagnostic]) {
        let variables = ProcessInfo.processInfo.environment
        let loader = ConfigurationLoader(hostEnvironment: CommandContext.loading(variables))
        var settings = Configuration.standard(variables)
        let path = path(variables)
        let diagnostics = path.map { path in
            loader.load(PathBytes.current.resolving(path.bytes).normalized, shown: path.description, into: &settings)
        }
        try loader.read(variables, into: &settings)
        try flags(&settings)
        return ((settings, path), diagnostics ?? [])
    }

    /// Returns the configuration file to read; nil when there is none.
    private func path(_ variables: [String: String]) -> PathBytes? {
        if let config { return RawArguments.paths([config])[0] }
        if let named = variables["ALIGHT_CONFIG"], !named.isEmpty { return PathBytes(named) }
        let own = CommandContext.configurationDirectory(variables).map { PathBytes("\($0)/alight/config.yaml") }
        let files = [own, geteuid() == 0 ? "/etc/alight/config.yaml" : nil].compactMap(\.self)
        // A file that is not accessible is returned too, so that reading it reports the error.
        return files.first { KernelFileSystem().stat($0) != .absent }
    }
}

/// The configuration in effect, and the file that was read for it.
typealias LoadedConfiguration = (settings: Configuration, file: PathBytes?)

extension Configuration {
    /// Returns the default configuration.
    static func standard(_ variables: [String: String]) -> Configuration {
        let retention = JournalRetention()
        var standard = Configuration()
        standard.journal = defaultJournal(variables).map { Setting(.file($0), from: .standard) }
        standard.retentionPeriod = Setting(retention.period, from: .standard)
        standard.retentionJobs = Setting(retention.jobs, from: .standard)
        standard.retentionSize = Setting(Int(retention.bytes), from: .standard)
        standard.listen = Setting(nil, from: .standard)
        standard.externalURLs = Setting([], from: .standard)
        standard.control = Setting(defaultControls(variables).first, from: .standard)
        standard.jobs = Setting(defaultJobs, from: .standard)
        let isJournal = isJournalStream(variables["JOURNAL_STREAM"])
        standard.logFormat = Setting(
            isJournal ? .journal : .text, from: isJournal ? .variable("JOURNAL_STREAM") : .standard)
        standard.logLevel = Setting(.info, from: .standard)
        standard.plugins = Setting([], from: .standard)
        return standard
    }

    /// Returns the default journal file; nil if neither XDG_STATE_HOME nor HOME is an absolute path and the user is
    /// not root.
    private static func defaultJournal(_ variables: [String: String]) -> PathBytes? {
        let home = variables.directory("HOME").map { "\($0)/.local/state" }
        let base = variables.directory("XDG_STATE_HOME") ?? (geteuid() == 0 ? "/var/lib" : home)
        return base.map { PathBytes("\($0)/alight/journal.db").normalized }
    }

    /// Returns whether standard error or standard output is the stream that systemd connected to its journal.
    ///
    /// - Parameter stream: The value of `JOURNAL_STREAM`: device and inode number of the stream.
    /// - Returns: Whether one of the two descriptors is that stream.
    private static func isJournalStream(_ stream: String?) -> Bool {
        [STDERR_FILENO, STDOUT_FILENO].contains { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
        }
    }

    /// Returns the paths at which the control socket may be by default, the best one first.
    private static func defaultControls(_ variables: [String: String]) -> [PathBytes] {
        let directories = CommandContext.runtimeDirectories(variables).forSocket
        let usable = directories.filter { $0.problem == nil }
        // Without one, the best is named by the error.
        return (usable.isEmpty ? Array(directories.prefix(1)) : usable)
            .map { $0.path.appending("control.sock").normalized }
    }

    /// The paths at which the control socket may be, the best one first; none if it is turned off.
    ///
    /// The default ones depend on the directories that exist now.
    var controlPaths: [PathBytes] {
        if control?.origin == .standard { return Self.defaultControls(ProcessInfo.processInfo.environment) }
        return [control?.value ?? nil].compactMap(\.self)
    }

    private static var defaultJobs: Int {
        max(4, min(2 * Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), jobsRange.upperBound))
    }

    /// The journal's file; nil for one in memory.
    var journalFile: PathBytes? { if case .file(let file)? = journal?.value { file } else { nil } }

    /// The number of slots.
    var actionLimit: Int { jobs?.value ?? Self.defaultJobs }

    /// The number of extra slots; defaults to ``actionLimit``.
    var extraActions: Int { extraJobs?.value ?? actionLimit }

    var retention: JournalRetention {
        let standard = JournalRetention()
        return JournalRetention(
            period: retentionPeriod?.value ?? standard.period, jobs: retentionJobs?.value ?? standard.jobs,
            bytes: retentionSize.map { Int64($0.value) } ?? standard.bytes)
    }
}

/// The options for the journal and the configuration, shared by all commands that need them.
struct JournalOptions: ParsableArguments {
    @Option(
        help: .value(
            "file", "The journal file.",
            discussion: """
                Default: 'journal' of the configuration, else $XDG_STATE_HOME/alight/journal.db, where \
                XDG_STATE_HOME defaults to ~/.local/state (as root /var/lib/alight/journal.db).
                """),
        completion: .file())
    var journal: String?

    @OptionGroup var configuration: ConfigurationOptions

    /// Applies the values that the options set.
    ///
    /// - Throws: `ValidationError` when the name is not a valid path.
    func apply(to settings: inout Configuration) throws {
        if let journal = try named() { settings.journal = Setting(journal, from: .flag("--journal")) }
    }

    /// Loads the configuration in effect, including these options.
    ///
    /// - Throws: The errors of ``apply(to:)``, and `Exit` when the configuration is invalid.
    func settings() throws -> Configuration { try configuration.load(apply).settings }

    private func named() throws -> JournalLocation? {
        guard let journal else { return nil }
        if journal == ":memory:" { return .memory }
        return .file(try RawArguments.file(journal, option: "--journal", noun: "file"))
    }

    /// Loads the configuration in effect, including all options that set a value.
    ///
    /// - Throws: The errors of the options, and `Exit` when the configuration is invalid.
    func load(_ running: RunningOptions, _ control: ControlOptions) throws -> LoadedConfiguration {
        try configuration.load { settings in
            try apply(to: &settings)
            running.apply(to: &settings)
            try control.apply(to: &settings)
        }
    }

    /// Validates the options, for commands that read a journal.
    ///
    /// - Throws: `ValidationError` when the name is not a valid path, or is `:memory:`.
    func check() throws { if case .memory = try named() { throw Self.nothingIsLeft(of: "--journal") } }

    /// Returns the journal file: the named one, the configured one, or the default.
    ///
    /// For commands that read a journal.
    ///
    /// - Throws: `ValidationError` as in ``check()``, and when no file is named and there is no default; `Exit` when
    ///   the configuration is invalid.
    func file(isWritten: Bool = false) throws -> PathBytes {
        let settings = try settings()
        if isWritten { try settings.checkJournalDirectory() }
        switch try settings.journalLocation() {
        case .file(let file): return file
        case .memory: throw Self.nothingIsLeft(of: settings.journal?.origin.word ?? "--journal")
        }
    }

    /// Opens the named or default journal for reading.
    ///
    /// - Parameter isFollowed: Whether the reader must see later writes.
    /// - Returns: The journal.
    /// - Throws: The errors of ``file()``, and a `StorageError` when it cannot be read.
    func open(isFollowed: Bool = false) throws -> JournalReader {
        try JournalReader(try file(), isTraceless: !isFollowed)
    }

    private static func nothingIsLeft(of word: String) -> ValidationError {
        ValidationError("'\(word) :memory:' is only for 'alight run': no other command can read it")
    }
}

extension Configuration {
    /// Refuses a journal in a directory that does not exist, except in the default one, which is created.
    ///
    /// - Throws: `Exit` with the reason.
    func checkJournalDirectory() throws {
        guard let journal, journal.origin != .standard, let directory = journalFile?.parent,
            access("\(directory)", F_OK) != 0, errno == ENOENT
        else { return }
        throw Exit(
            .runtimeError, error: "the directory '\(Display.path(directory))' of the journal does not exist",
            help: "create it, or correct '\(journal.origin.word)'")
    }

    /// Returns the location of the journal.
    ///
    /// - Throws: `ValidationError` when no file is named and there is no default; `Exit` when the named file is not
    ///   trustworthy, after printing the reason.
    func journalLocation() throws -> JournalLocation {
        guard let journal else {
            throw ValidationError("no location for the journal: set HOME, or name a file with --journal")
        }
        if LinkTrust.isMeaningful, let problem = journalFile.flatMap({ OwnershipCheck.problem(with: $0) }) {
            problem.emit("the journal cannot be trusted: ")
            throw Exit(.runtimeError)
        }
        return journal.value
    }
}

extension LogFormat: ExpressibleByArgument {}
extension LogLevel: ExpressibleByArgument {}

/// The configuration values that `alight run` accepts as options.
struct RunningOptions: ParsableArguments {
    @Option(
        help: .value(
            "format", "The format of messages: 'text', 'json' (one object per line), or 'journal' (systemd).",
            discussion:
                "Default: 'log.format' of the configuration, else journal if systemd reads the output, else text."))
    var logFormat: LogFormat?

    @Option(
        help: .value(
            "level", "The lowest level of messages to print.",
            discussion: "Default: 'log.level' of the configuration, else info."))
    var logLevel: LogLevel?

    @Option(
        help: .value(
            "n", "The number of slots: actions that may run programs at once, over all rules.",
            discussion: "Default: 'jobs' of the configuration, else twice the number of processors, at least 4."))
    var jobs: Int?

    func validate() throws { if let jobs { try Self.check(jobs: jobs) } }

    static func check(jobs: Int) throws {
        let range = Configuration.jobsRange
        guard !range.contains(jobs) else { return }
        throw ValidationError("'--jobs \(jobs)' is not between \(range.lowerBound) and \(range.upperBound)")
    }

    /// Applies the values that the options set.
    func apply(to settings: inout Configuration) {
        if let logFormat { settings.logFormat = Setting(logFormat, from: .flag("--log-format")) }
        if let logLevel { settings.logLevel = Setting(logLevel, from: .flag("--log-level")) }
        if let jobs { settings.jobs = Setting(jobs, from: .flag("--jobs")) }
    }
}
