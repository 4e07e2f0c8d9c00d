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
        } catch let problem as HandlerProblem {
            problem.say()
            throw Exit(.usage)
        }
        for diagnostic in diagnostics { diagnostic.tell(as: .text) }
        if diagnostics.contains(where: { $0.severity == .error }) { throw Exit(.rulesInvalid) }
        return loaded
    }

    /// Loads the configuration like ``load(_:)``, but returns the problems of the file instead of printing them.
    ///
    /// - Throws: The problem of an invalid environment variable. Rethrows errors of `flags`.
    func read(_ flags: (inout Configuration) throws -> Void) throws -> (LoadedConfiguration, [Diagnostic]) {
        let variables = ProcessInfo.processInfo.environment
        let surroundings = CommandContext.loading(variables)
        var settings = Configuration.standard(variables)
        var diagnostics: [Diagnostic] = []
        let path = path(variables)
        if let path {
            diagnostics = ConfigurationLoader(surroundings: surroundings).load(
                CommandContext.currentFolder.resolving(path.bytes).normalized, shown: path.description, into: &settings)
        }
        try ConfigurationEnvironment(variables, surroundings: surroundings).read(into: &settings)
        try flags(&settings)
        return (LoadedConfiguration(settings: settings, file: path), diagnostics)
    }

    /// Returns the configuration file to read; nil when there is none.
    private func path(_ variables: [String: String]) -> PathBytes? {
        if let config { return RawArguments.paths([config])[0] }
        if let named = variables["ALIGHT_CONFIG"], !named.isEmpty { return PathBytes(named) }
        return Self.usualFiles(variables).first { path in
            var status = stat()
            // A file that is not accessible is returned too, so that reading it reports the error.
            return path.withCString { lstat($0, &status) } == 0 || (errno != ENOENT && errno != ENOTDIR)
        }
    }

    /// Returns the default locations, in order; the first that exists is read.
    static func usualFiles(_ variables: [String: String]) -> [PathBytes] {
        var files: [PathBytes] = []
        if let folder = CommandContext.configurationFolder(variables) {
            files.append(PathBytes("\(folder)/alight/config.yaml"))
        }
        if geteuid() == 0 { files.append("/etc/alight/config.yaml") }
        return files
    }
}

/// The configuration in effect, and the file that was read for it.
struct LoadedConfiguration {
    var settings: Configuration
    var file: PathBytes?
}

extension Configuration {
    /// Returns the default configuration.
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

    /// Returns the default journal file; nil if neither XDG_STATE_HOME nor HOME is an absolute path and the user is
    /// not root.
    private static func usualJournal(_ variables: [String: String]) -> PathBytes? {
        let state = variables["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = variables["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.local/state" : nil }
        let folder = state ?? (geteuid() == 0 ? "/var/lib" : home)
        return folder.map { PathBytes("\($0)/alight/journal.db").normalized }
    }

    /// Returns whether standard error or standard output is the stream that systemd connected to its journal.
    ///
    /// - Parameter stream: The value of `JOURNAL_STREAM`: device and inode number of the stream.
    /// - Returns: Whether one of the two descriptors is that stream.
    private static func isJournalStream(_ stream: String?) -> Bool {
        guard let stream else { return false }
        return [STDERR_FILENO, STDOUT_FILENO].contains { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
        }
    }

    /// Returns the default control socket.
    private static func usualControl(_ variables: [String: String]) -> PathBytes {
        let user = geteuid()
        if user == 0 { return "/run/alight/control.sock" }
        // After su(1), the variable is not set although the directory exists.
        let session = PathBytes("/run/user/\(user)")
        let runtime =
            variables["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? PathBytes($0) : nil }
            ?? (UserDirectory.isOwn(session, user: user) ? session : nil)
        let folder = runtime?.appending("alight") ?? UserDirectory(in: "/tmp", user: user).path
        return folder.appending("control.sock").normalized
    }

    private static var usualJobs: Int {
        max(4, min(2 * Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), jobsRange.upperBound))
    }

    /// The number of slots.
    var actionLimit: Int { jobs?.value ?? Self.usualJobs }

    /// The number of extra slots; defaults to ``actionLimit``.
    var extraActions: Int { extraJobs?.value ?? actionLimit }

    var retention: JournalRetention {
        var retention = JournalRetention()
        if let period = retentionPeriod?.value { retention.period = period }
        if let jobs = retentionJobs?.value { retention.jobs = jobs }
        if let size = retentionSize?.value { retention.bytes = Int64(size) }
        return retention
    }
}
