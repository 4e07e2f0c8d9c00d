import System
import Testing
import TestKit

/// Commands of the built program that read a journal.
enum JournalCommand {
    static let environment = ["TZ": "UTC", "NO_COLOR": "1", "SHELL": "/bin/sh"]

    /// Runs a command in the directory, with the journal `journal.db`.
    static func run(
        _ tree: borrowing TemporaryTree, _ arguments: [String], journal: String = "journal.db"
    ) -> (status: Int32?, output: String, error: String) {
        RunningProgram.alight(arguments + ["--journal", journal], in: tree.root, environment: environment).result()
    }

    /// Waits until `count` jobs are stored as succeeded, which is shortly after they are reported.
    static func awaitSucceeded(_ count: Int, in journal: PathBytes) -> Bool {
        withTempTree { tree in
            Deadline.wait {
                let (status, output, _) = run(
                    tree, ["jobs", "--state", "succeeded", "--json"], journal: journal.description)
                return status == 0 && output.split(separator: "\n").count >= count
            }
        }
    }

    /// Runs a command on a terminal of this width and returns the output of the terminal, with newlines as line ends.
    static func onTerminal(_ tree: borrowing TemporaryTree, width: Int, _ arguments: [String]) -> String {
        let words = [Places.alight.description] + arguments + ["--journal", "journal.db"]
        let line = words.map { "'\($0)'" }.joined(separator: " ")
        let program = RunningProgram(
            "/usr/bin/script", ["-qec", "stty cols \(width) rows 24; exec \(line)", "/dev/null"], in: tree.root,
            environment: environment, output: tree.path("run"))
        #expect(program.wait() == 0, "\(program.error)")
        return program.output.replacing("\r\n", with: "\n")
    }
}
