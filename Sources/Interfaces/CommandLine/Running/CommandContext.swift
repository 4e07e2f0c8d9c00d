import ActionAPI
import Configuration
import FileActions
import Foundation
import Glibc
import JSON
import OtherActions
import Plugins
import Programs
import Rules
import Storage
import System

/// The environment of the program, read once and passed to the lower layers, which do not read it themselves.
struct CommandContext {
    let loading: RuleLoader.Environment
    let registry: HandlerRegistry
    let discovery: PluginDiscovery
    let launcher: ProcessLauncher
    let environment: ProgramEnvironment
    let runner: ActionRunner
    /// The host of plugin processes; to be closed when no more actions run.
    let host: PluginHost
    let scratchDirectories: ScratchDirectories
    /// The default locations of rules, if none are named or configured; the first that exists is used.
    let defaultRules: [String]
    /// The locations of the rules that the running instance has loaded, or else those in the configuration.
    let configuredRules: [PathBytes]?

    /// Reads the environment.
    ///
    /// - Parameters:
    ///   - settings: The configuration.
    ///   - startsPlugins: Whether plugins without a `plugin.yaml` are started to describe themselves.
    ///   - asRunning: Whether the rules and the environment variables are by default those of the instance that uses
    ///     the journal, if one is running.
    /// - Throws: `Exit` when a part of the installation is missing; the error has been printed.
    init(_ settings: Configuration = Configuration(), startsPlugins: Bool = true, asRunning: Bool = false) throws {
        let variables = ProcessInfo.processInfo.environment
        let isRoot = geteuid() == 0
        let home = Self.home(variables)
        let configuration = Self.configurationDirectory(variables)

        guard let launcherPath = ProcessLauncher.find() else {
            throw Exit(
                .runtimeError, error: "'alight-launch' is missing",
                help: "it is built with alight and belongs beside it, or into ../libexec/alight")
        }
        Orphans.adopt()
        launcher = ProcessLauncher(launcher: launcherPath)
        environment = ProgramEnvironment(
            home: PathBytes(home ?? "/"), timeZone: variables["TZ"], isRoot: LinkTrust.isMeaningful)
        scratchDirectories = Self.scratchDirectories(of: settings.journalFile)
        // What programs leave behind is beside the journal, or beside the default one if there is none on disk.
        let journal = settings.journalFile ?? Configuration.standard(variables).journalFile
        host = PluginHost(
            launcher: launcher, scratchDirectories: scratchDirectories, environment: environment,
            kept: journal.map { KeptFiles(journal: $0) })
        var searchDirectories = settings.plugins?.value ?? []
        // Plugins installed with this program, such as by `make install` in /usr/local.
        let installed = ProcessLauncher.programDirectory?.parent.appending("lib/alight/plugins")
        let own = configuration.map { PathBytes("\($0)/alight/plugins") }
        searchDirectories += [own, "/etc/alight/plugins", installed].compactMap(\.self)
        let system: PathBytes = "/usr/lib/alight/plugins"
        if !searchDirectories.contains(system) { searchDirectories.append(system) }
        discovery = PluginDiscovery(
            host: host, searchDirectories: searchDirectories, startsPlugins: startsPlugins,
            parse: { YAMLReader.json(from: $0) })
        let data = variables.directory("XDG_DATA_HOME") ?? home.map { "\($0)/.local/share" }
        let trash = Trash(home: data.map { PathBytes("\($0)/Trash") })
        registry = HandlerRegistry(
            builtIn: [
                LogHandler(), TransferHandler.copy(trash: trash), TransferHandler.move(trash: trash),
                TransferHandler.rename(trash: trash), LinkHandler(trash: trash), TrashHandler(trash: trash),
                DeleteHandler(), TouchHandler(), SetPermissionsHandler(),
                ArchiveHandler(trash: trash), ExtractHandler(trash: trash), ChecksumHandler(), TagHandler(),
                WebhookHandler(),
                NotifyHandler(launcher: launcher, environment: environment, bus: Self.sessionBus(variables)),
            ], discovery: discovery)
        runner = ActionRunner(registry: registry)
        var loading = Self.loading(asRunning ? Self.variablesOfInstance(settings) ?? variables : variables)
        loading.machine = RuleLoader.Machine(
            landlock: SandboxSupport.landlock, canShutOffNetwork: SandboxSupport.canShutOffNetwork)
        self.loading = loading
        configuredRules = (asRunning ? Self.rulesOfInstance(settings) : nil) ?? settings.rules?.value
        defaultRules =
            ["rules"] + (configuration.map { ["\($0)/alight/rules"] } ?? []) + (isRoot ? ["/etc/alight/rules"] : [])
    }

    /// Returns the environment for loading files.
    static func loading(_ variables: [String: String]) -> RuleLoader.Environment {
        var loading = RuleLoader.Environment(
            home: home(variables), environment: { variables[$0] }, currentDirectory: .current)
        if LinkTrust.isMeaningful {
            loading.distrust = { OwnershipCheck.problem(with: $0) }
            loading.distrustCommand = { OwnershipCheck.problem(running: $0, $1, searchPath: $2) }
        }
        return loading
    }

    /// Returns the environment variables of the running instance; nil if none is running, or if it runs as another
    /// user.
    private static func variablesOfInstance(_ settings: Configuration) -> [String: String]? {
        guard let process = settings.journalFile.flatMap({ DiskStore.holder(of: $0) }), process > 0 else { return nil }
        let descriptor = open("/proc/\(process)/environ", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_uid == geteuid(),
            let bytes = ProcFile.bytes(of: descriptor)
        else { return nil }
        let entries = bytes.split(separator: 0).map { entry in
            entry.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) }
        }
        return Dictionary(entries.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { $1 }
    }

    /// Returns the rules files of the running instance; nil if none is running, or if it does not answer.
    private static func rulesOfInstance(_ settings: Configuration) -> [PathBytes]? {
        let answer = settings.journalFile.flatMap { ControlClient.ask(instanceOf: $0, "/v1/rules", timeout: 10) }
        let files = answer?["rules"].elements.compactMap(\.["file"].string) ?? []
        return files.isEmpty ? nil : Set(files).sorted().map { PathBytes($0) }
    }

    private static func home(_ variables: [String: String]) -> String? {
        variables["HOME"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns `$XDG_CONFIG_HOME` or its default.
    static func configurationDirectory(_ variables: [String: String]) -> String? {
        variables.directory("XDG_CONFIG_HOME") ?? home(variables).map { "\($0)/.config" }
    }

    /// Warns about plugins that were not started to describe themselves.
    func reportUndescribed(_ reporter: Reporter = Reporter(format: .text)) {
        for path in discovery.undescribed {
            reporter.emit(
                .warning,
                "'\(Display.path(path))' was not run to describe itself, since this command starts no plugins: "
                    + "its events, types and parameters are not checked",
                help: "put it into a directory with a plugin.yaml")
        }
    }

    /// Warns if the best directory for scratch directories cannot be used.
    func reportSkippedDirectory(_ reporter: Reporter = Reporter(format: .text)) {
        guard let skipped = scratchDirectories.passedOver?.problem, scratchDirectories.problem == nil else { return }
        reporter.emit(
            .warning, "\(Display.text(skipped)); '\(Display.path(scratchDirectories.base))' is used instead",
            help: "remove what is in the way, or set XDG_RUNTIME_DIR to a directory that belongs to this user alone")
    }

    /// Returns why the programs of rules cannot run; nil if they can, or if the rules have none.
    func scratchProblem(for rules: [Rule]) -> ScratchFailure? {
        let hasPrograms = rules.contains { rule in
            rule.ready?.command != nil || (rule.actions + rule.onFailure).contains(where: \.isProgram)
        }
        return hasPrograms ? scratchDirectories.problem : nil
    }

    /// Refuses to start rules whose programs cannot run.
    ///
    /// - Throws: The failure.
    func requireScratch(for rules: [Rule]) throws(ScratchFailure) {
        if let problem = scratchProblem(for: rules) { throw problem }
    }

    /// Returns the address of the user's session bus; nil if there is none.
    private static func sessionBus(_ variables: [String: String]) -> String? {
        if let address = variables["DBUS_SESSION_BUS_ADDRESS"], !address.isEmpty { return address }
        guard let directory = variables["XDG_RUNTIME_DIR"], access("\(directory)/bus", F_OK) == 0 else { return nil }
        return "unix:path=\(directory)/bus"
    }

    /// Returns the scratch directories of the actions of a journal's jobs; nil for one in memory.
    static func scratchDirectories(of journal: PathBytes?) -> ScratchDirectories {
        ScratchDirectories(in: runtimeDirectories(ProcessInfo.processInfo.environment), journal: journal)
    }

    static func runtimeDirectories(_ variables: [String: String]) -> RuntimeDirectories {
        RuntimeDirectories(
            service: variables["RUNTIME_DIRECTORY"].map { PathBytes($0) },
            session: variables["XDG_RUNTIME_DIR"].map { PathBytes($0) },
            temporary: variables["TMPDIR"].map { PathBytes($0) }, user: geteuid())
    }

    /// Returns the absolute path, relative to the directory in which the program was started.
    func path(_ path: PathBytes) -> PathBytes { loading.currentDirectory.resolving(path.bytes).normalized }
}

extension [String: String] {
    /// Returns the value of an environment variable if it is an absolute path.
    func directory(_ name: String) -> String? { self[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
}
