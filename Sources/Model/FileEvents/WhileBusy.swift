/// The handling of a change that has settled while an action runs for its path.
///
/// The raw values are the words in rules files.
package enum WhileBusy: String, Sendable, Hashable, CaseIterable {
    /// The path is compared when the action is finished: it runs once more, with the newest metadata.
    case coalesce
    /// The running action is stopped, and runs again with the newest metadata.
    case restart
}
