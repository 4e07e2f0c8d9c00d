import ArgumentParser
import CAlightLinux
import CBuildCommit
import Configuration
import ContentTypes
import Glibc
import JSON
import Plugins
import Rules

/// The `alight` command: its subcommands, and the mapping of their errors to exit statuses.
@main
struct AlightCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alight", abstract: "Rules that run when files land.",
        discussion: """
            Alight watches the directories that your rules name, waits until each file there is finished, and then \
            runs an action for it: a built-in handler, a plugin, or any program.

              alight new DIRECTORY    write a first rule
              alight check rules/     check the rules
              alight run rules/       watch, until Ctrl-C
              alight explain PATH     show which rules match a path, and why
              alight apply RULE PATH  run a rule for files by hand
              alight status           show the status of the running instance
              alight log              follow what it does
              alight pause            start no more actions, until 'alight resume'
              alight jobs             list jobs and their outcomes
              alight retry --all      retry all failed jobs
              alight undo ID          undo what a job did to files
              alight watch PATH       print file events, without rules
              alight import           convert an incron table
              alight plugins          list, describe, create and test plugins
              alight config           show the configuration in effect
              alight schema           print the JSON Schema of rules files, for editors

            \(ExitStatus.table)
            """,
        version: Version.text,
        subcommands: [
            RunCommand.self, CheckCommand.self, SchemaCommand.self, ExplainCommand.self, WatchCommand.self,
            StatusCommand.self, LogCommand.self, PauseCommand.self, ResumeCommand.self, ReloadCommand.self,
            RescanCommand.self, JobsCommand.self,
            ShowCommand.self, RetryCommand.self, DiscardCommand.self, UndoCommand.self, ApplyCommand.self,
            NewCommand.self, ImportCommand.self, PluginsCommand.self, ConfigCommand.self,
        ])

    static func main() {
        cal_keep_heap_small()
        Signals.prepare()
        // A failed write of the log of 'run' does not change the exit status: the actions have run.
        var isLog = false
        do {
            try StartCheck.run()
            ContentType.prepare()
            var command = try parseAsRoot()
            if let run = command as? RunCommand { isLog = !run.dryRun }
            try command.run()
            if !isLog { Glibc.exit(Output.checked(.done).rawValue) }
        } catch {
            if let exit = Exit(error) { Glibc.exit((isLog ? exit.status : Output.checked(exit.status)).rawValue) }
            let code = exitCode(for: error)
            let message = fullMessage(for: error)
            if !message.isEmpty { (code.isSuccess ? Output.standard : Output.error).write(message) }
            if code.isSuccess { Glibc.exit(Output.checked(.done).rawValue) }
            Glibc.exit(code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue)
        }
    }
}

/// Checks for the parts of the system that every command requires, before anything depends on them.
enum StartCheck {
    /// The minimum limit of open files: below it, Foundation cannot start a program, regardless of how many are open.
    private static let neededDescriptors: rlim_t = 256

    /// - Throws: The problem if something is missing.
    static func run() throws(Problem) {
        // The Swift runtime reads the command line from /proc; without it, there would be no arguments.
        if access("/proc/self/cmdline", R_OK) != 0 {
            throw Problem(
                "cannot read '/proc/self/cmdline', which contains the command line",
                help: "mount /proc: mount -t proc proc /proc")
        }
        var limit = rlimit()
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(kind, &limit) == 0, limit.rlim_cur < neededDescriptors else { return }
        let found = limit.rlim_cur
        limit.rlim_cur = neededDescriptors
        guard limit.rlim_max < neededDescriptors || setrlimit(kind, &limit) != 0 else { return }
        throw Problem(
            "the limit of open files is \(found), and \(neededDescriptors) are needed",
            help: "raise it: 'ulimit -n 1024' in a shell, 'LimitNOFILE=1024' in a systemd unit")
    }
}

/// `alight schema`: prints the JSON Schema of rules files, or of the configuration.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "schema", "Print the JSON Schema of rules files, or of the configuration, for editors.",
        discussion: """
            Save it beside your rules and name it in their first line. An editor with the YAML language server then \
            completes keys and underlines errors:

              alight schema > rules/alight.schema.json
              # yaml-language-server: $schema=alight.schema.json
            """)

    @Flag(help: "Print the schema of the configuration instead.")
    var config = false

    func run() throws {
        let program = try CommandContext()
        let schema =
            config ? ConfigurationSchema.document : RuleSchema.document(handlers: program.registry.builtInHandlers)
        Output.standard.write(schema.lines())
    }
}

/// The version of the program.
enum Version {
    static let number = "0.1.0"

    /// The commit from which the program was built; nil if unknown.
    static let commit: String? = {
        let commit = String(cString: build_commit())
        return commit.isEmpty ? nil : commit
    }()

    /// The version and, if known, the commit.
    static let text = "alight \(number)" + (commit.map { " (commit \($0))" } ?? "")
}
