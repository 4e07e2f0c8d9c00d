import ArgumentParser
import FileEvents
import Foundation
import Glibc
import Handling
import RuleLoading
import Rules
import Storage
import System

/// Where the configuration is, for all commands that need it.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: ArgumentHelp(
            "The configuration file.",
            discussion: """
                Default: $XDG_CONFIG_HOME/alight/config.yaml, where XDG_CONFIG_HOME defaults to ~/.config; as root, \
                else /etc/alight/config.yaml. 'alight config' shows the values in effect.
                """,
            valueName: "file"),
        completion: .file())
    var config: String?

    /// What holds, from the options, the environment and the file.
    ///
    /// - Parameter flags: Puts in what the options of the command say.
    /// - Returns: What holds, and the file that was read.
    /// - Throws: `Exit` when the file or a variable can't be used; it has been said. What `flags` throws.
    func load(_ flags: (inout Configuration) throws -> Void = { _ in }) throws -> LoadedConfiguration {
        let (loaded, diagnostics): (LoadedConfiguration, [Diagnostic])
        do {
            (loaded, diagnostics) = try read(flags)
        } catch let problem as HandlerProblem {
            problem.say()
            throw Exit(.usage)
        }
        for diagnostic in diagnostics { diagnostic.tell(as: .text) }
        if diagnostics.contains(where: { $0.severity == .error }) { throw Exit(.rulesInvalid) }
        return loaded
    }

    /// As ``load(_:)``, with the problems of the file instead of messages.
    ///
    /// - Throws: The problem of a variable that can't be used. What `flags` throws.
    func read(
        _ flags: (inout Configuration) throws -> Void
    ) throws -> (LoadedConfiguration, [Diagnostic]) {
        let variables = ProcessInfo.processInfo.environment
        let surroundings = ProgramSurroundings.loading(variables)
        var settings = Configuration.standard(variables)
        var diagnostics: [Diagnostic] = []
        let path = path(variables)
        if let path {
            diagnostics = ConfigurationLoader(surroundings: surroundings).load(
                ProgramSurroundings.currentFolder.resolving(path.bytes).normalized, shown: path.description,
                into: &settings)
        }
        try ConfigurationEnvironment(variables, surroundings: surroundings).read(into: &settings)
        try flags(&settings)
        return (LoadedConfiguration(settings: settings, file: path), diagnostics)
    }

    /// The file that is read; nil when there is none.
    private func path(_ variables: [String: String]) -> PathBytes? {
        if let config { return RawArguments.paths([config])[0] }
        if let named = variables["ALIGHT_CONFIG"], !named.isEmpty { return PathBytes(named) }
        return Self.usualFiles(variables).first { path in
            var status = stat()
            // One that can't be reached is read all the same, to say so.
            return path.withCString { lstat($0, &status) } == 0 || (errno != ENOENT && errno != ENOTDIR)
        }
    }

    /// Where it is when it is not named; the first that is there is read.
    static func usualFiles(_ variables: [String: String]) -> [PathBytes] {
        var files: [PathBytes] = []
        if let folder = ProgramSurroundings.configurationFolder(variables) {
            files.append(PathBytes("\(folder)/alight/config.yaml"))
        }
        if geteuid() == 0 { files.append("/etc/alight/config.yaml") }
        return files
    }
}

/// The configuration that holds, and the file that was read for it.
struct LoadedConfiguration {
    var settings: Configuration
    var file: PathBytes?
}

extension Configuration {
    /// What holds where nobody says anything.
    static func standard(_ variables: [String: String]) -> Configuration {
        let retention = JournalRetention()
        var standard = Configuration()
        standard.journal = usualJournal(variables).map { Setting(.file($0), from: .standard) }
        standard.retentionPeriod = Setting(retention.period, from: .standard)
        standard.retentionJobs = Setting(retention.jobs, from: .standard)
        standard.retentionSize = Setting(Int(retention.bytes), from: .standard)
        standard.listen = Setting(nil, from: .standard)
        standard.externalURLs = Setting([], from: .standard)
        standard.control = Setting(usualControl(variables), from: .standard)
        standard.jobs = Setting(usualJobs, from: .standard)
        let isJournal = isJournalStream(variables["JOURNAL_STREAM"])
        standard.logFormat = Setting(
            isJournal ? .journal : .text, from: isJournal ? .variable("JOURNAL_STREAM") : .standard)
        standard.logLevel = Setting(.info, from: .standard)
        standard.plugins = Setting([], from: .standard)
        return standard
    }

    /// The file that is used when none is named; nil if nothing says where a user's files are.
    private static func usualJournal(_ variables: [String: String]) -> PathBytes? {
        let state = variables["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = variables["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.local/state" : nil }
        let folder = state ?? (geteuid() == 0 ? "/var/lib" : home)
        return folder.map { PathBytes("\($0)/alight/journal.db").normalized }
    }

    /// Whether standard error or standard output is the stream that systemd connected with its journal.
    ///
    /// - Parameter stream: `JOURNAL_STREAM`: its device and inode.
    /// - Returns: Whether one of them is.
    private static func isJournalStream(_ stream: String?) -> Bool {
        guard let stream else { return false }
        return [STDERR_FILENO, STDOUT_FILENO].contains { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
        }
    }

    /// The control socket that is used when none is named.
    private static func usualControl(_ variables: [String: String]) -> PathBytes {
        let user = geteuid()
        if user == 0 { return "/run/alight/control.sock" }
        // After su(1) the variable is missing, and the directory is there.
        let session = PathBytes("/run/user/\(user)")
        let runtime =
            variables["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? PathBytes($0) : nil }
            ?? (UserFolder.isOwn(session, user: user) ? session : nil)
        let folder = runtime?.appending("alight") ?? UserFolder(in: "/tmp", user: user).path
        return folder.appending("control.sock").normalized
    }

    private static var usualJobs: Int {
        max(4, min(2 * Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), jobsRange.upperBound))
    }

    /// The number of slots.
    var actionLimit: Int { jobs?.value ?? Self.usualJobs }

    /// The number of slots beyond that.
    var extraActions: Int { extraJobs?.value ?? actionLimit }

    var retention: JournalRetention {
        var retention = JournalRetention()
        if let period = retentionPeriod?.value { retention.period = period }
        if let jobs = retentionJobs?.value { retention.jobs = jobs }
        if let size = retentionSize?.value { retention.bytes = Int64(size) }
        return retention
    }
}
