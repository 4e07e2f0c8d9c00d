/// The rules of the core that a test can leave out, one at a time, to show that each is needed.
///
/// The program never leaves one out.
package enum CoreRule: String, Sendable, CaseIterable {
    /// A path that an unfinished or interrupted event names is uncertain.
    case certain
    /// The deletion of a path that the rule always refused is not reported.
    case suppressed
    /// A lease is undone if the file is gone when the action starts.
    case gone
    /// A missing path waits for the path that contains its file.
    case waitForMove = "wait-for-move"
    /// The paths of an event are compared again when its action is finished.
    case recheck
    /// A path that was hinted since it settled is not leased.
    case leaseCheck = "lease-check"
    /// The paths of a superseded attempt stay uncertain.
    case keepUncertain = "keep-uncertain"
    /// A path has one action at a time.
    case busy
    /// A path is certain only if its action can only have read what was offered.
    case readWhatWasOffered = "read-what-was-offered"
    /// All hints are received before an outcome is recorded.
    case drain
    /// All hints are received before an event is computed.
    case readFirst = "read-first"
    /// A path that has changed since it settled is not leased.
    case settledMetadata = "settled-metadata"
    /// A job whose finished step has removed the input is never superseded.
    case steps
    /// An interrupted step that may have removed the input runs again.
    case reenter
    /// The state that a failed attempt left at the path belongs to the same job.
    case leftBehind = "left-behind"
    /// A missing path waits for the end of the listing.
    case listing
    /// The other names of a changed file are compared.
    case names
    /// A move is leased before the content has settled.
    case moveAtOnce = "move-at-once"
    /// Due paths are stored if the comparison at the start does not find them.
    case dueRows = "due-rows"
    /// A failed job does not run again after a newer event of its paths.
    case overtaken
    /// A due path that is gone is reported.
    case skipped
    /// An undo supersedes the retry of its path.
    case ownLane = "own-lane"
    /// Events since the first attempt count for finished steps.
    case retainedSteps = "retained-steps"
    /// After a restart, the state that a remote job has read is unknown.
    case sent
}
