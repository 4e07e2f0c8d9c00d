import ArgumentParser
import Globbing
import JSON
import Records
import Rules
import Storage
import System

extension JobState: ExpressibleByArgument {}

/// `alight jobs`: lists the jobs of the journal.
struct JobsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "jobs", "List jobs: pending, running, finished and failed.",
        discussion: """
            The newest come first. On a terminal, prints a table that fits its width; otherwise one line per job: id, \
            state, rule, path, event, attempt, time and message, separated by tabs.

              alight jobs --state failed --since 1d
              alight jobs --state failed --rule scans | cut -f 1 | xargs alight retry
              alight jobs --path ~/Scans
            """)

    @Option(name: .customLong("state"), help: .value("state", "Only jobs in this state; may be repeated."))
    var states: [JobState] = []

    @Option(help: .value("name", "Only jobs of this rule."), completion: OfferedWords.rules)
    var rule: String?

    @Option(
        help: .value(
            "glob",
            "Only jobs for this file, for files below this directory, or for files that match this quoted glob."),
        completion: .file())
    var path: String?

    @Option(
        help: .value(
            "when", "Only jobs that finished since then, or were created since then and are unfinished.",
            discussion: "A duration such as 2h or 7d, a date such as 2026-11-20, or a time such as '2026-11-20 10:24'.")
    )
    var since: String?

    @Option(help: .value("n", "List at most N jobs; 0 for all."))
    var limit = 50

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup var journal: JournalOptions

    func validate() throws {
        _ = try query(now: DiskProbe.now())
        try journal.check()
    }

    func run() throws {
        Signals.useDefaultActions()
        let now = DiskProbe.now()
        let query = try query(now: now)
        let reader = try journal.open()
        let due = DueEntries.ofInstance(reader.path, query)
        let (rows, hasRows) = try reader.jobs(query)
        let all = rows.explained(by: due).adding(due)
        let jobs = Array(all.prefix(query.limit ?? .max))
        let hasMore = hasRows || jobs.count < all.count
        guard !jobs.isEmpty else {
            Output.error.write(Self.nothing(try reader.counts()))
            throw Exit(.done)
        }
        let table = JobTable(jobs: jobs, now: now, hasColor: Output.standard.hasColor)
        let lines =
            json ? jobs.map(\.object.line) : TerminalText.width().map { table.lines(width: $0) } ?? table.plainLines
        Output.standard.write(lines.joined(separator: "\n"))
        if hasMore { Output.error.write("only the \(jobs.count) newest are shown; see --limit") }
    }

    private func query(now: Timestamp) throws -> JournalQuery {
        guard limit >= 0 else { throw ValidationError("'--limit \(limit)' is negative; write 0 for all") }
        var query = JournalQuery(states: Set(states), rule: rule, limit: limit == 0 ? nil : limit)
        if let path { query.paths = try Self.paths(path) }
        if let since { query.since = try parsed("--since") { try TimeText.parse(since, now: now) } }
        return query
    }

    /// Parses the argument of `--path`: a file or directory, which may no longer exist, or a glob.
    private static func paths(_ text: String) throws -> JournalQuery.Paths {
        let given = RawArguments.paths([text])[0]
        guard !given.bytes.isEmpty else { throw ValidationError("'--path' is empty") }
        return try parsed("--path") { try JournalQuery.Paths(naming: given, in: PathBytes.current) }
    }

    /// Returns the message for an empty list: the number of jobs in each state.
    private static func nothing(_ counts: [JobState: Int]) -> String {
        let there = JobState.allCases.compactMap { state in counts[state].map { "\($0) \(state.rawValue)" } }
        if there.isEmpty { return "the journal has no jobs" }
        return "no job matches; the journal has \(there.joined(separator: ", "))"
    }
}

extension JournalQuery.Paths {
    /// Creates a filter from user input: a file or directory, which may no longer exist, or a glob.
    init(naming given: PathBytes, in current: PathBytes = "/") throws(GlobError) {
        let path = current.resolving(given.bytes).normalized
        if KernelFileSystem().identity(of: path) != nil || !given.bytes.contains(where: { "*?[{".utf8.contains($0) }) {
            self = .inside(path)
        } else {
            // The directory in front of a relative glob is not part of the pattern, so it is escaped.
            let pattern = PathBytes(Glob.escaped(current.bytes)).resolving(given.bytes)
            self = .matching(try Glob(pattern.bytes, options: Glob.Options(matchesHidden: true)))
        }
    }
}

extension JobEntry {
    /// The state, or whether the changes of the job were undone.
    var stateWord: String {
        switch undone {
        case .all: "undone"
        case .part: "partly undone"
        case nil: state.rawValue
        }
    }
}

/// The output of `alight jobs`, for a terminal or a pipe.
struct JobTable {
    let jobs: [JobEntry]
    let now: Timestamp
    let hasColor: Bool

    /// Returns the lines for a terminal of this width.
    ///
    /// If all columns fit, a job has one line below the titles; otherwise it has two or three lines of its own. Ids
    /// are never truncated, so that they can be copied.
    func lines(width: Int) -> [String] { wide(width) ?? jobs.flatMap { stacked($0, width) } }

    /// One line for each job, with tab-separated fields, for programs.
    var plainLines: [String] { jobs.map { Self.cells(of: $0, time: $0.time.description).joined(separator: "\t") } }

    private static func cells(of job: JobEntry, time: String) -> [String] {
        [
            job.id.description, job.stateWord, Display.text(job.rule), Display.path(job.path), job.event,
            "\(job.attempt)", time, Display.text(job.message ?? ""),
        ]
    }

    // MARK: Columns

    private static let titles = ["ID", "STATE", "RULE", "PATH", "EVENT", "ATTEMPT", "WHEN", "MESSAGE"]
    private static let gap = "  "
    /// The minimum widths at which paths and messages are still useful.
    private static let least = (path: 24, message: 16)

    /// Returns the table; nil if the terminal is too narrow for it.
    private func wide(_ width: Int) -> [String]? {
        let rows = [Self.titles] + jobs.map { Self.cells(of: $0, time: TimeText.short($0.time, now: now)) }
        var widths = Self.titles.indices.map { column in rows.map { TerminalText.columns($0[column]) }.max() ?? 0 }
        widths[2] = min(widths[2], 20)
        let (path, message) = (widths[3], widths[7])
        let others = widths.reduce(0, +) - path - message
        let available = width - others - (widths.count - 1) * Self.gap.count
        if path + message > available {
            let leastMessage = min(message, max(Self.least.message, available * 2 / 5))
            let leastPath = min(path, Self.least.path)
            guard leastPath + min(message, Self.least.message) <= available else { return nil }
            widths[3] = min(path, max(leastPath, available - leastMessage))
            widths[7] = min(message, available - widths[3])
        }
        return rows.enumerated().map { row, texts in
            let cells = zip(texts, widths).enumerated().map { column, cell in
                let (text, width) = cell
                // The end of a path says more than its start.
                let shown = column == 3 ? TerminalText.end(text, width) : TerminalText.beginning(text, width)
                let padded = TerminalText.padded(shown, width)
                return column == 1 && row > 0 ? Reporter.colored(padded, jobs[row - 1].state, hasColor) : padded
            }
            return TerminalText.trimmed(cells.joined(separator: Self.gap))
        }
    }

    /// Returns the job on several lines, for narrow terminals.
    private func stacked(_ job: JobEntry, _ width: Int) -> [String] {
        let when = TimeText.short(job.time, now: now)
        let state = TerminalText.padded(job.stateWord, "succeeded".count)
        var first = "\(job.hasJob ? "\(job.id)\(Self.gap)" : "")\(Reporter.colored(state, job.state, hasColor))"
        if job.id.description.utf8.count + state.count + 2 * Self.gap.count + when.count <= width {
            first += Self.gap + when
        }
        let rule = TerminalText.beginning(Display.text(job.rule), min(20, max(8, width / 3)))
        let about = "\(Self.gap)\(rule): \(job.event) "
        let available = max(8, width - TerminalText.columns(about))
        var lines = [TerminalText.trimmed(first), about + TerminalText.end(Display.path(job.path), available)]
        let message = Display.text(job.message ?? "")
        let attempt = job.attempt > 1 ? "attempt \(job.attempt)" : ""
        let last = [attempt, message].filter { !$0.isEmpty }.joined(separator: ": ")
        if !last.isEmpty { lines.append(TerminalText.beginning(Self.gap + last, width)) }
        return lines
    }
}
