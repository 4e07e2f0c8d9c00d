package import System

/// A path that waits for its action, and has no job until the action starts.
package struct DuePath: Sendable, Hashable {
    /// The name of the rule, once it is known.
    package var rule = ""
    package var path: PathBytes
    /// The kind of the event that it would have now.
    package var event: EventKind
    /// The time at which it last settled.
    package var since: Timestamp
    /// The reason why it waits; nil if it only waits for a slot.
    package var reason: String?
    /// The time until which it waits, if known.
    package var until: Timestamp?

    package init(path: PathBytes, event: EventKind, since: Timestamp) {
        (self.path, self.event, self.since) = (path, event, since)
    }
}
