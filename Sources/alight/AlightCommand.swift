import ArgumentParser
import CAlightLinux
import ContentTypes
import Glibc

/// The program: subcommands, and how their errors become exit codes.
@main
struct AlightCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alight",
        abstract: "Rules that run when files land.",
        discussion: """
            Alight watches the folders that your rules reach, waits until each file has really settled, and runs the \
            rule's action for it: a built-in handler, a plugin, or any program.

              alight check rules/     look at the rules
              alight run rules/       watch, until Ctrl-C
              alight schema           print the JSON Schema of rules, for editors
              alight explain PATH     say which rules take a path, and why the others don't
              alight watch DIR        print what happens, without rules
              alight status           say how it stands with the Alight that runs
              alight log              follow what it does
              alight pause            let it begin nothing more, until 'alight resume'
              alight jobs             list what was done, and what has failed
              alight retry --all      try again what has failed
              alight undo ID          take back what a job did to files
              alight apply RULE PATH  run a rule for files by hand
              alight new FOLDER       write a first rule
              alight import           write rules for a table of incron or direvent
              alight config           show the configuration that holds
              alight plugins          list plugins; describe, begin and test them

            \(ExitStatus.table)
            """,
        version: Version.text,
        subcommands: [
            RunCommand.self, CheckCommand.self, SchemaCommand.self, ExplainCommand.self, WatchCommand.self,
            StatusCommand.self, LogCommand.self, PauseCommand.self, ResumeCommand.self, ReloadCommand.self,
            RescanCommand.self, JobsCommand.self,
            ShowCommand.self, RetryCommand.self, DiscardCommand.self, UndoCommand.self,
            ApplyCommand.self,
            NewCommand.self, ImportCommand.self, PluginsCommand.self, ConfigCommand.self,
        ])

    static func main() {
        cal_keep_heap_small()
        Signals.prepare()
        ContentType.prepare()
        // What 'run' writes is a log, without which its work is done all the same.
        var isLog = false
        do {
            var command = try parseAsRoot()
            if let run = command as? RunCommand { isLog = !run.dryRun }
            try command.run()
            if !isLog { Glibc.exit(Output.checked(.done).rawValue) }
        } catch let status as Exit {
            Glibc.exit((isLog ? status.status : Output.checked(status.status)).rawValue)
        } catch {
            let code = exitCode(for: error)
            let message = fullMessage(for: error)
            if !message.isEmpty { (code.isSuccess ? Output.standard : Output.error).write(message) }
            if code.isSuccess { Glibc.exit(Output.checked(.done).rawValue) }
            Glibc.exit(code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue)
        }
    }
}

/// Ends the program with a status, everything having been said.
struct Exit: Error {
    var status: ExitStatus
    init(_ status: ExitStatus) { self.status = status }
}
