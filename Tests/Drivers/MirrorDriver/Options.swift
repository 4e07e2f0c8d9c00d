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
    var patience = 60
    /// Every Nth event is not applied to the mirror; 0 for none.
    var losing = 0
    var alight: PathBytes?
    var folder: PathBytes?
    /// The words of operations to leave out, as they appear in the log.
    var without: Set<String> = []
    /// Set in a process that the driver started as a worker: its number and its round.
    var worker: Int?
    var round = 0

    static let help = """
        usage: mirror-driver [--seed N] [--operations M] [--processes P] [--mode MODE] [--every K]
                             [--source SOURCE] [--without WORD,...] [--patience SECONDS]
                             [--lose N] [--alight PATH] [--folder PATH]

        Works on files at random in P processes while alight runs, keeps a mirror of the tree from its events alone,
        and compares the two after every K operations, when all is quiet. Exit status: 0 when they were always equal,
        1 when not, 2 for a wrong command line.

          --seed        what the operations follow from; 1
          --operations  how many, of all processes together; 10000
          --processes   with 1 the same seed does exactly the same again; 3
          --mode        plain, overflow, limit, poll, slow or unreadable; plain
          --source      what tells the events: run, with a rule that logs them, or watch; run
          --every       operations between two comparisons; 1000
          --without     leaves out operations, by the words of the log (exchange, link, mmap, ...)
          --patience    how long no event may come while the mirror is not equal; 60
          --lose        leaves one event in N out of the mirror, to see that it is noticed; 0, none
          --alight      the program; the one beside this one
          --folder      a folder that does not exist yet, to work in; one below /tmp. It stays when something differs
        """

    typealias Wrong = OptionValue.Wrong

    /// Parses the command line, without the program name.
    init(_ words: [String]) throws(Wrong) {
        var words = words[...]
        while let word = words.popFirst() {
            guard let value = words.popFirst() else { throw Wrong(message: "'\(word)' needs a value") }
            switch word {
            case "--seed": seed = try OptionValue.number(word, value)
            case "--operations": operations = try OptionValue.number(word, value, atLeast: 1)
            case "--processes": processes = try OptionValue.number(word, value, atLeast: 1)
            case "--every": every = try OptionValue.number(word, value, atLeast: 1)
            case "--patience": patience = try OptionValue.number(word, value, atLeast: 1)
            case "--lose": losing = try OptionValue.number(word, value)
            case "--worker": worker = try OptionValue.number(word, value)
            case "--round": round = try OptionValue.number(word, value)
            case "--mode": mode = try OptionValue.choice(word, value)
            case "--source": source = try OptionValue.choice(word, value)
            case "--without": without = Set(value.split(separator: ",").map(String.init))
            case "--alight": alight = OptionValue.absolute(value)
            case "--folder": folder = OptionValue.absolute(value)
            default: throw Wrong(message: "unknown option '\(word)'")
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
