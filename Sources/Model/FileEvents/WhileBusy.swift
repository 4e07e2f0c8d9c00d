/// The handling of a change that has settled while an action runs for its path.
///
/// The raw values are the words in rules files.
package enum WhileBusy: String, Sendable, Hashable, CaseIterable {
    /// Each settled change is a separate event: the action runs for every event, one after another.
    case queue
    /// The path is compared when the action is finished: it runs once more, with the newest metadata.
    case coalesce
    /// The change counts as handled: the action does not run again.
    case drop
    /// The running action is stopped, and runs again with the newest metadata.
    case restart
}
