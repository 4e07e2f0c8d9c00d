import ArgumentParser
import CAlightLinux
import ContentTypes
import Glibc

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
              alight import           convert an incron table or a direvent configuration
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
        StartCheck.run()
        ContentType.prepare()
        // A failed write of the log of 'run' does not change the exit status: the actions have run.
        var isLog = false
        do {
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
