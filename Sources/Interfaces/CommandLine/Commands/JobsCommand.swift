import ArgumentParser
import Glibc
import Globbing
import JSON
import Rules
import Storage
import System

extension JobState: ExpressibleByArgument {
    public static var allValueStrings: [String] { ["pending", "running", "succeeded", "skipped", "failed"] }
}

/// `alight jobs`: lists the jobs of the journal.
struct JobsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "jobs", abstract: "List jobs: pending, running, finished and failed.",
        discussion: """
            The newest come first. On a terminal, prints a table that fits its width; otherwise one line per job: id, \
            state, rule, path, event, attempt, time and message, separated by tabs.

              alight jobs --state failed --since 1d
              alight jobs --state failed --rule scans | cut -f 1 | xargs alight retry
              alight jobs --path ~/Scans

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(
        name: .customLong("state"), help: ArgumentHelp("Only jobs in this state; may be repeated.", valueName: "state"),
        completion: .list(JobState.allValueStrings))
    var states: [JobState] = []

    @Option(help: ArgumentHelp("Only jobs of this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @Option(
        help: ArgumentHelp(
            "Only jobs for this file, for files below this directory, or for files that match this quoted glob.",
            valueName: "glob"), completion: .file())
    var path: String?

    @Option(
        help: ArgumentHelp(
            "Only jobs that finished since then, or were created since then and are unfinished.",
            discussion: "A duration such as 2h or 7d, a date such as 2026-11-20, or a time such as '2026-11-20 10:24'.",
            valueName: "when"))
    var since: String?

    @Option(help: ArgumentHelp("List at most N jobs; 0 for all.", valueName: "n"))
    var limit = 50

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup var journal: JournalOptions

    func validate() throws {
        _ = try query(now: DiskProbe.now())
        try journal.check()
    }

    func run() throws {
        Signals.endUsually()
        let now = DiskProbe.now()
        let query = try query(now: now)
        let reader = try journal.open()
        let due = DueEntries.ofInstance(reader.path, query)
        let (rows, hasRows) = try reader.jobs(query)
        let all = rows.adding(due)
        let jobs = Array(all.prefix(query.limit ?? .max))
        let hasMore = hasRows || jobs.count < all.count
        guard !jobs.isEmpty else {
            Output.error.write(Self.nothing(try reader.counts(), isFiltered: query.asksForAnything))
            throw Exit(.done)
        }
        let table = JobTable(jobs: jobs, now: now, hasColor: Output.standard.hasColor)
        let lines: [String]
        if json {
            lines = jobs.map { $0.object.line }
        } else {
            lines = TerminalText.width.map { table.lines(width: $0) } ?? table.plainLines
        }
        Output.standard.write(lines.joined(separator: "\n"))
        if hasMore { Output.error.write("only the \(jobs.count) newest are shown; see --limit") }
    }

    private func query(now: Timestamp) throws -> JournalQuery {
        guard limit >= 0 else { throw ValidationError("'--limit \(limit)' is negative; write 0 for all") }
        var query = JournalQuery(states: Set(states), rule: rule, limit: limit == 0 ? nil : limit)
        if let path { query.paths = try Self.paths(path) }
        if let since {
            do throws(MomentProblem) {
                query.since = try TimeText.parse(since, now: now)
            } catch {
                throw ValidationError("--since: \(Display.text(error.message)); \(error.help)")
            }
        }
        return query
    }

    /// Parses the argument of `--path`: a file or directory, which may no longer exist, or a glob.
    private static func paths(_ text: String) throws -> JournalQuery.Paths {
        let given = RawArguments.paths([text])[0]
        guard !given.bytes.isEmpty else { throw ValidationError("'--path' is empty") }
        do throws(GlobError) {
            return try JournalQuery.Paths(naming: given, in: CommandContext.currentFolder)
        } catch {
            throw ValidationError("--path: \(Display.text(error.message)); \(error.help)")
        }
    }

    /// Returns the message for an empty list: the number of jobs in each state.
    private static func nothing(_ counts: [JobState: Int], isFiltered: Bool) -> String {
        let states: [JobState] = [.pending, .running, .succeeded, .skipped, .failed]
        let there = states.compactMap { state in counts[state].map { "\($0) \(state.rawValue)" } }
        if there.isEmpty { return "the journal has no jobs" }
        return "no job matches; the journal has \(there.joined(separator: ", "))"
    }
}

extension JournalQuery.Paths {
    /// Creates a filter from user input: a file or directory, which may no longer exist, or a glob.
    init(naming given: PathBytes, in current: PathBytes = "/") throws(GlobError) {
        let isAbsolute = given.bytes.first == .slash
        let path = current.resolving(given.bytes).normalized
        var status = stat()
        let isThere = path.withCString { lstat($0, &status) } == 0
        guard !isThere, given.bytes.contains(where: { "*?[{".utf8.contains($0) }) else {
            self = .inside(path)
            return
        }
        // The directory in front of a relative glob is not part of the pattern, so it is escaped.
        let pattern = isAbsolute ? given : PathBytes(Glob.escaped(current.bytes)).appending(given.bytes)
        self = .matching(try Glob(pattern.bytes, options: Glob.Options(matchesHidden: true)))
    }
}

extension JournalQuery {
    /// Whether the query filters jobs by state, rule, path or time.
    fileprivate var asksForAnything: Bool { !states.isEmpty || rule != nil || paths != nil || since != nil }
}
