import ArgumentParser
import JSON
import Storage

/// `alight show`: prints all details of a job.
struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a job: its event, its attempts, and the last request and output.",
        discussion: """
            Secret parameters are not stored in the journal; they are shown as ***.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Argument(
        help: ArgumentHelp("The id of the job, or a prefix of it.", valueName: "id"), completion: OfferedWords.jobs())
    var id: String

    @Flag(help: "Print one JSON object, with the requests and logs of all attempts.")
    var json = false

    @OptionGroup var journal: JournalOptions

    func validate() throws {
        try JobName.validate([id])
        try journal.check()
    }

    func run() throws {
        Signals.endUsually()
        let reader = try journal.open()
        let job = try JobName.find(id, in: reader).get()
        guard let details = try reader.details(of: job.id) else { throw Exit(.runtimeError) }
        if json {
            Output.standard.write(details.object.line)
        } else {
            let report = JobReport(details: details, hasColor: Output.standard.hasColor)
            Output.standard.write(report.lines.joined(separator: "\n"))
        }
    }
}
