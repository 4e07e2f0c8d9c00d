import System
import TestKit

/// How the program is interrupted.
enum Mode: String, CaseIterable {
    /// SIGKILL.
    case kill
    /// SIGKILL with loss of the end of the write-ahead log, as in a power failure.
    case truncate
    /// SIGSTOP for some time, then SIGCONT or SIGKILL.
    case stop
    /// SIGKILL, with the journal's disk full from time to time.
    case full
}

/// The options of the command line.
struct Options {
    var seed: UInt64 = 1
    var kills = 20
    var mode = Mode.kill
    /// The number of processes that change files.
    var processes = 3
    /// The directory of the journal; nil for the default inside the run's own.
    var journalDirectory: PathBytes?
    /// Whether the driver has mounted that directory itself.
    var hasMounted = false
    /// The number of seconds without new lines at the end, after which missing results count as findings.
    var timeout = 20
    /// The journal is removed before every Nth start; 0 for never.
    var forgetting = 0
    var alight: PathBytes?
    var directory: PathBytes?
    /// Set in a process that the driver started as a worker: its number, its life, and the number of operations.
    var worker: Int?
    var life = 0
    var operations = 0

    static let help = """
        usage: crash-driver [--seed N] [--kills N] [--mode MODE] [--processes P] [--journal-on DIRECTORY]
                            [--timeout SECONDS] [--forget N] [--alight PATH] [--directory PATH]

        Kills 'alight run --journal' at random times while P processes change files, and starts it again. Some lives
        end with a request to stop instead, after which it must exit with 0. When everything has settled after the last
        start, these must be true:

          - each rule that matches a file has handled it with its current content: with one step and two, slowly, after
            failures, in a batch, by a copy;
          - a mirror built from the reported events equals the tree;
          - a job ran twice only if its attempt was interrupted or failed, and its request showed this; no two jobs
            report the same about a file that did not change in between;
          - the journal passes PRAGMA integrity_check, after each kill and at the end, and has no unfinished or failed
            job;
          - no temporary file, scratch directory or process remains.

        Exit status: 0 if all checks pass, 1 if one fails, 2 for an invalid command line.

          --seed        determines the operations, and the time of each kill, counted from the start; how they
                        interleave depends on the machine (default: 1). With even seeds, existing files are reported;
                        with odd ones they count as known, and none changes until the first start is complete
          --kills       the number of kills (default: 20)
          --mode        kill: while it starts, works, is idle or stops (the default)
                        truncate: also, the end of the write-ahead log is lost, as in a power failure. The last commits
                        may be lost, so that work is repeated without 'interrupted', and the deletion of a file that is
                        no longer recorded is not reported
                        stop: first, SIGSTOP stops it for some time
                        full: the journal is on a small file system that is full from time to time
          --processes   the number of processes that change files (default: 3)
          --journal-on  the directory of the journal; with 'full' it must be a small file system (default: the run's
                        own directory; with 'full', a file system that is mounted in a separate namespace)
          --timeout     fails when results are missing and none has arrived for this time (default: 20)
          --forget      removes the journal before every Nth start, to test the checks (default: 0, never)
          --alight      the program (default: the one in the directory of this program)
          --directory   the working directory, which must be empty or missing (default: a new one below /tmp). It is
                        kept if a check fails

        A failed run prints the command that repeats it, the lives of the program with their times, and for each
        finding the runs and the operations of its path or job. Repeat it several times. In its directory, runs.log has
        the records of the action (crash-recorder), state/journal.db is the journal, and log/ has the output of each
        life, the journal after each kill, and the operations of each worker.
        """

    /// Parses the command line, without the program name.
    init(_ words: [String]) throws(OptionValue.Invalid) {
        var words = words[...]
        while let word = words.popFirst() {
            guard let value = words.popFirst() else { throw OptionValue.Invalid(message: "'\(word)' requires a value") }
            switch word {
            case "--seed": seed = try OptionValue.number(word, value)
            case "--kills": kills = try OptionValue.number(word, value)
            case "--mode": mode = try OptionValue.choice(word, value)
            case "--processes": processes = try OptionValue.number(word, value, atLeast: 1)
            case "--journal-on": journalDirectory = OptionValue.absolute(value)
            case "--mounted":
                journalDirectory = OptionValue.absolute(value)
                hasMounted = true
            case "--timeout": timeout = try OptionValue.number(word, value, atLeast: 1)
            case "--forget": forgetting = try OptionValue.number(word, value)
            case "--worker": worker = try OptionValue.number(word, value)
            case "--life": life = try OptionValue.number(word, value)
            case "--operations": operations = try OptionValue.number(word, value)
            case "--alight": alight = OptionValue.absolute(value)
            case "--directory": directory = OptionValue.absolute(value)
            default: throw OptionValue.Invalid(message: "unknown option '\(word)'")
            }
        }
    }

    /// A short title of the run.
    var title: String { "seed \(seed), \(mode.rawValue)" }

    /// The command that repeats the run, as far as timing allows.
    var command: String {
        var words = ["crash-driver --seed \(seed) --kills \(kills) --mode \(mode.rawValue) --processes \(processes)"]
        if let journalDirectory, !hasMounted { words.append("--journal-on \(journalDirectory)") }
        if forgetting > 0 { words.append("--forget \(forgetting)") }
        if let alight { words.append("--alight \(alight)") }
        return words.joined(separator: " ")
    }
}
