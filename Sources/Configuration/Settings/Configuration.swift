import FileEvents
package import System

/// What is set that is no rule: nil for what nobody says.
///
/// What holds without anything else is put into it first, then what the file says, the environment, and the options of
/// a command; what comes later replaces what was there.
package struct Configuration: Sendable {
    package var journal: Setting<JournalPlace>?
    /// How long finished jobs are kept.
    package var retentionPeriod: Setting<Duration>?
    /// How many finished jobs are kept at most.
    package var retentionJobs: Setting<Int>?
    /// How many bytes the texts of finished jobs may have.
    package var retentionSize: Setting<Int>?
    /// `HOST:PORT` where the control interface listens besides; nil in it for nowhere.
    package var listen: Setting<String?>?
    /// Where a proxy in front of it is reached: `https://alight.example.org`, as a page there names its origin.
    package var externalURLs: Setting<[String]>?
    /// The path of the control socket; nil in it for none.
    package var control: Setting<PathBytes?>?
    /// The number of slots: actions that may run programs at once, over all rules.
    package var jobs: Setting<Int>?
    /// The number of slots beyond that, for rules that have waited for one; nil for as many.
    package var extraJobs: Setting<Int>?
    package var logFormat: Setting<LogFormat>?
    package var logLevel: Setting<LogLevel>?
    /// Folders of plugins that are searched before the usual ones.
    package var plugins: Setting<[PathBytes]>?
    /// Rules files, and folders of them, for commands that name none.
    package var rules: Setting<[PathBytes]>?

    package static let jobsRange = 1...256
    package static let extraJobsRange = 0...256
    package static let retentionJobsRange = 0...100_000_000
    /// The least that ``retentionSize`` may be.
    package static let leastRetentionSize = 1 << 20
    /// The most that ``retentionPeriod`` may be.
    package static let longestRetentionDays: Int64 = 36_500

    package init() {}
}
