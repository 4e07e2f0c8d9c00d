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
    var journalFolder: PathBytes?
    /// Whether the driver has mounted that directory itself.
    var hasMounted = false
    /// The number of seconds without new lines at the end, after which missing results count as findings.
    var patience = 20
    /// The journal is removed before every Nth start; 0 for never.
    var forgetting = 0
    var alight: PathBytes?
    var folder: PathBytes?
    /// Set in a process that the driver started as a worker: its number, its life, and the number of operations.
    var worker: Int?
    var life = 0
    var operations = 0

    typealias Wrong = OptionValue.Wrong

    static let help = """
        usage: crash-driver [--seed N] [--kills N] [--mode MODE] [--processes P] [--journal-on FOLDER]
                            [--patience SECONDS] [--forget N] [--alight PATH] [--folder PATH]

        Kills 'alight run --journal' at random moments while P processes work on files, starts it again, and compares at
        the end: each file was handled with the content that it has, and twice only where an attempt was cut off.
        Exit status: 0 when all is as it should be, 1 when not, 2 for a wrong command line.

          --seed        what the operations and the moments follow from; 1
          --kills       how often it is killed; 20
          --mode        kill; truncate, which also cuts the write-ahead log; stop, which stops it by SIGSTOP; or full,
                        where the journal's disk is full now and then; kill
          --processes   how many work on files; 3
          --journal-on  the folder of the journal; with 'full' it must be a small file system. Without it 'full' mounts
                        one, in a namespace of its own
          --patience    how long nothing may come at the end while something is missing; 20
          --forget      removes the journal before every so many starts, to see that it is noticed; 0, never
          --alight      the program; the one beside this one
          --folder      a folder that does not exist yet, to work in; one below /tmp. It stays when something is wrong
        """

    /// Parses the command line, without the program name.
    init(_ words: [String]) throws(Wrong) {
        var words = words[...]
        while let word = words.popFirst() {
            guard let value = words.popFirst() else { throw Wrong(message: "'\(word)' needs a value") }
            switch word {
            case "--seed": seed = try OptionValue.number(word, value)
            case "--kills": kills = try OptionValue.number(word, value)
            case "--mode": mode = try OptionValue.choice(word, value)
            case "--processes": processes = try OptionValue.number(word, value, atLeast: 1)
            case "--journal-on": journalFolder = OptionValue.absolute(value)
            case "--mounted":
                journalFolder = OptionValue.absolute(value)
                hasMounted = true
            case "--patience": patience = try OptionValue.number(word, value, atLeast: 1)
            case "--forget": forgetting = try OptionValue.number(word, value)
            case "--worker": worker = try OptionValue.number(word, value)
            case "--life": life = try OptionValue.number(word, value)
            case "--operations": operations = try OptionValue.number(word, value)
            case "--alight": alight = OptionValue.absolute(value)
            case "--folder": folder = OptionValue.absolute(value)
            default: throw Wrong(message: "unknown option '\(word)'")
            }
        }
    }

    /// A short title of the run.
    var title: String { "seed \(seed), \(mode.rawValue)" }

    /// The command that repeats the run, as far as timing allows.
    var command: String {
        var words = ["crash-driver --seed \(seed) --kills \(kills) --mode \(mode.rawValue) --processes \(processes)"]
        if let journalFolder, !hasMounted { words.append("--journal-on \(journalFolder)") }
        if forgetting > 0 { words.append("--forget \(forgetting)") }
        if let alight { words.append("--alight \(alight)") }
        return words.joined(separator: " ")
    }
}
