import Rules
import Storage
import System

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
    var plainLines: [String] {
        jobs.map { job in
            [
                job.id.description, job.stateWord, Display.text(job.rule), Display.path(job.path), job.event,
                "\(job.attempt)", job.time.description, Display.text(job.message ?? ""),
            ].joined(separator: "\t")
        }
    }

    // MARK: Columns

    private struct Column {
        var title: String
        var cells: [String]
        var width: Int
        /// Whether a cell that is too long shows its end instead of its start.
        var showsEnd = false

        init(_ title: String, _ cells: [String], atMost limit: Int = .max) {
            self.title = title
            self.cells = cells
            width = min(limit, cells.reduce(TerminalText.columns(title)) { max($0, TerminalText.columns($1)) })
        }

        func cell(_ text: String) -> String {
            TerminalText.padded(showsEnd ? TerminalText.end(text, width) : TerminalText.beginning(text, width), width)
        }
    }

    private static let gap = "  "
    /// The minimum widths at which paths and messages are still useful.
    private static let least = (path: 24, message: 16)

    /// Returns the table; nil if the terminal is too narrow for it.
    private func wide(_ width: Int) -> [String]? {
        var columns = [
            Column("ID", jobs.map(\.id.description)), Column("STATE", jobs.map(\.stateWord)),
            Column("RULE", jobs.map { Display.text($0.rule) }, atMost: 20),
            Column("PATH", jobs.map { Display.path($0.path) }), Column("EVENT", jobs.map(\.event)),
            Column("ATTEMPT", jobs.map { "\($0.attempt)" }),
            Column("WHEN", jobs.map { TimeText.short($0.time, now: now) }),
            Column("MESSAGE", jobs.map { Display.text($0.message ?? "") }),
        ]
        columns[3].showsEnd = true
        let others = columns.indices.filter { $0 != 3 && $0 != 7 }.reduce(0) { $0 + columns[$1].width }
        let room = width - others - (columns.count - 1) * Self.gap.count
        let (path, message) = (columns[3].width, columns[7].width)
        if path + message > room {
            let leastMessage = min(message, max(Self.least.message, room * 2 / 5))
            let leastPath = min(path, Self.least.path)
            guard leastPath + min(message, Self.least.message) <= room else { return nil }
            columns[3].width = min(path, max(leastPath, room - leastMessage))
            columns[7].width = min(message, room - columns[3].width)
        }
        let titles = columns.map { $0.cell($0.title) }.joined(separator: Self.gap)
        return [Self.trimmed(titles)]
            + jobs.indices.map { row in
                let cells = columns.enumerated().map { index, column in
                    index == 1
                        ? colored(column.cell(column.cells[row]), jobs[row].state) : column.cell(column.cells[row])
                }
                return Self.trimmed(cells.joined(separator: Self.gap))
            }
    }

    /// Returns the job on several lines, for narrow terminals.
    private func stacked(_ job: JobEntry, _ width: Int) -> [String] {
        let when = TimeText.short(job.time, now: now)
        let state = TerminalText.padded(job.stateWord, "succeeded".count)
        var first = "\(job.hasJob ? "\(job.id)\(Self.gap)" : "")\(colored(state, job.state))"
        if job.id.description.utf8.count + state.count + 2 * Self.gap.count + when.count <= width {
            first += Self.gap + when
        }
        let rule = TerminalText.beginning(Display.text(job.rule), min(20, max(8, width / 3)))
        let about = "\(Self.gap)\(rule): \(job.event) "
        let room = max(8, width - TerminalText.columns(about))
        var lines = [Self.trimmed(first), about + TerminalText.end(Display.path(job.path), room)]
        let message = Display.text(job.message ?? "")
        let attempt = job.attempt > 1 ? "attempt \(job.attempt)" : ""
        let last = [attempt, message].filter { !$0.isEmpty }.joined(separator: ": ")
        if !last.isEmpty { lines.append(TerminalText.beginning(Self.gap + last, width)) }
        return lines
    }

    private static func trimmed(_ line: String) -> String { String(line.reversed().drop { $0 == " " }.reversed()) }

    private func colored(_ text: String, _ state: JobState) -> String {
        hasColor ? Reporter.colored(text, state) : text
    }
}
