import System
import TestKit

/// The difficulty that the program must cope with.
enum Mode: String, CaseIterable {
    case plain
    /// The program is stopped until the kernel's queue has overflowed.
    case overflow
    /// Only a few directories can be watched.
    case limit
    /// The rule asks for polling.
    case poll
    /// The program's output is not read while the workers run.
    case slow
    /// Directories become unreadable and readable again; everything runs as an ordinary user.
    case unreadable
}

/// The options of the command line.
struct Options {
    var seed: UInt64 = 1
    /// The total number of operations of all processes.
    var operations = 10_000
    var processes = 3
    var mode = Mode.plain
    var source = EventSource.run
    /// The number of operations between two quiet points, of all processes together.
    var every = 1000
    /// The number of seconds without new events after which a difference is final.
    var timeout = 60
    /// Every Nth event is not applied to the mirror; 0 for none.
    var losing = 0
    var alight: PathBytes?
    var directory: PathBytes?
    /// The words of operations to exclude, as they appear in the log.
    var without: Set<String> = []
    /// Set in a process that the driver started as a worker: its number and its round.
    var worker: Int?
    var round = 0

    static let help = """
        usage: mirror-driver [--seed N] [--operations M] [--processes P] [--mode MODE] [--every K]
                             [--source SOURCE] [--without WORD,...] [--timeout SECONDS]
                             [--lose N] [--alight PATH] [--directory PATH]

        Changes files at random in P processes while alight runs, maintains a mirror of the tree from the events alone,
        and compares the two after every K operations, when everything has settled: paths, types, sizes, modes,
        identities, link counts and modification times. An event that cannot follow from the earlier ones, such as a
        second 'created', is also an error.
        Exit status: 0 if they are always equal, 1 if they differ, 2 for an invalid command line.

          --seed        determines the operations (default: 1). Even seeds have hard links; odd seeds have a directory
                        outside the rule, from which and to which files and directories are moved
          --operations  the number of operations of all processes (default: 10000)
          --processes   the number of processes; with 1, runs of a seed are exactly equal. With more, the seed does not
                        determine how their operations interleave (default: 3)
          --mode        plain: no obstacles (the default)
                        overflow: in every other round, the program is stopped until the kernel's queue has overflowed
                        limit: in a user namespace with 20 inotify watches; the other directories are polled
                        poll: the rule sets 'backend: poll', or the option is '--backend poll'
                        slow: in every other round, the output of the program is not read while the processes work
                        unreadable: directories become unreadable and readable again; as user 65534 if root runs it
          --source      the command that reports the events: run, with a rule that logs them, or watch, for the library
                        FileObserving, which also reports existing files (default: run)
          --every       the number of operations between two comparisons (default: 1000)
          --without     excludes operations, by their words in the log (exchange, link, mmap, ...); the others do not
                        change
          --timeout     fails when the mirror differs and no event has arrived for this time (default: 60)
          --lose        excludes one event in N from the mirror, to test the comparison (default: 0, none)
          --alight      the program (default: the one in the directory of this program)
          --directory   the working directory, which must be empty or missing (default: a new one below /tmp). It is
                        kept if something differs

        A failed run prints the command that repeats it, and for each path that differs its state on the disk and in the
        mirror, its last events with their lines in DIRECTORY/alight.out, and the last operations on it, above it or
        below it. Repeat it first with one process, then several times as it was. To shorten it, lower --every, so that
        the comparison comes sooner after the error, and exclude operations.
        """

    /// Parses the command line, without the program name.
    init(_ words: [String]) throws(OptionValue.Invalid) {
        var words = words[...]
        while let word = words.popFirst() {
            guard let value = words.popFirst() else { throw OptionValue.Invalid(message: "'\(word)' requires a value") }
            switch word {
            case "--seed": seed = try OptionValue.number(word, value)
            case "--operations": operations = try OptionValue.number(word, value, atLeast: 1)
            case "--processes": processes = try OptionValue.number(word, value, atLeast: 1)
            case "--every": every = try OptionValue.number(word, value, atLeast: 1)
            case "--timeout": timeout = try OptionValue.number(word, value, atLeast: 1)
            case "--lose": losing = try OptionValue.number(word, value)
            case "--worker": worker = try OptionValue.number(word, value)
            case "--round": round = try OptionValue.number(word, value)
            case "--mode": mode = try OptionValue.choice(word, value)
            case "--source": source = try OptionValue.choice(word, value)
            case "--without": without = Set(value.split(separator: ",").map(String.init))
            case "--alight": alight = OptionValue.absolute(value)
            case "--directory": directory = OptionValue.absolute(value)
            default: throw OptionValue.Invalid(message: "unknown option '\(word)'")
            }
        }
    }

    /// A short title of the run.
    var title: String { "seed \(seed), \(mode.rawValue) of \(source.rawValue)" }

    /// The command that repeats the run.
    var command: String {
        var words = ["mirror-driver --seed \(seed) --operations \(operations) --processes \(processes)"]
        words.append("--mode \(mode.rawValue) --every \(every) --source \(source.rawValue)")
        if !without.isEmpty { words.append("--without \(without.sorted().joined(separator: ","))") }
        if losing > 0 { words.append("--lose \(losing)") }
        if let alight { words.append("--alight \(alight)") }
        return words.joined(separator: " ")
    }
}
