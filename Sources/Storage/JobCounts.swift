/// The numbers of jobs by state since the store was opened.
package struct JobCounts: Sendable, Hashable {
    package var pending = 0
    package var running = 0
    package var succeeded = 0
    package var skipped = 0
    package var failed = 0

    package init() {}

    /// The number of unfinished jobs.
    package var open: Int { pending + running }
}
