package import FileEvents
package import System

extension Reconciler {
    /// The decisions that the owner of a reconciler makes, with the index of the view.
    package struct Callbacks {
        /// Whether a view admits an event, by its conditions.
        var admits: (Int, FileEvent) -> Bool
        /// Whether a view may refuse an event.
        var mayRefuse: (Int) -> Bool
        /// Whether the interrupted step of an offer finds its own output, whatever is at the path by now.
        var hasWork: (Int, Offer) -> Bool
        /// Returns the process that caused an event, as far as a view requests it.
        var writer: (Int, FileEvent) -> Writer
        var warn: (Warning) -> Void
    }

    /// A condition that users should know about.
    package enum Warning: Sendable, Hashable {
        /// A path cannot be inspected; its ledger row stays.
        case unreadable(PathBytes, errno: Int32)
        /// A file has been open for writing for the given time; the reconciler continues to wait for it.
        case stillWritten(PathBytes, for: Duration)
    }

    /// A requirement of a transition for the owner of the reconciler, see ``SharedState/takeEffects()``.
    ///
    /// Views are identified by their indexes, so effects are taken before the views change.
    package enum Effect: Sendable {
        /// A path has become due, as of now for this event.
        case due(view: Int, FileEvent)
        /// An event that no later one replaces: its row is committed together with the ledger, and the rows of a view
        /// run first in, first out.
        ///
        /// The owner calls ``ViewReconciler/endFrozen(_:_:at:)`` when the row of a difference is finished.
        case stored(view: Int, FileEvent, isUncertain: Bool)
        /// A due path is gone before an action received it.
        case gone(view: Int, PathBytes, wasHandled: Bool)
        /// An unfinished offer was dropped in favor of a newer event of its paths.
        case superseded(view: Int, Offer)
        /// The file of a running offer of a view with ``WhileBusy/restart`` has changed and settled.
        ///
        /// The owner stops the action, and ends the offer with ``Reconciler/Termination/overtaken``. Repeated while the
        /// file changes.
        case overtaken(view: Int, number: UInt64)
    }

    /// An event of a due path that may be leased, as far as the reconciler itself is concerned.
    package struct Candidate: Sendable {
        package let view: Int
        /// The due path.
        package let path: PathBytes
        package var event: FileEvent
        /// The offer that is retried.
        package let retried: Offer?
    }

    /// A condition for which due paths wait.
    package struct Gate: Sendable, Hashable {
        package let name: String
        package let path: PathBytes?
        /// Whether it may never be met, as for a set with a missing file; other paths do not wait for the outcome.
        package let mayNeverOpen: Bool

        package init(_ name: String, _ path: PathBytes? = nil, mayNeverOpen: Bool = false) {
            (self.name, self.path, self.mayNeverOpen) = (name, path, mayNeverOpen)
        }
    }

    /// The reason why a due path waits.
    package struct Reason: Sendable {
        /// A one-line message for the user.
        package let text: String
        /// Whether the wait ends after a short time by itself.
        package let passesSoon: Bool
        /// The time at which the wait ends, if known.
        package let end: Timestamp?

        package init(_ text: String, passesSoon: Bool, end: Timestamp? = nil) {
            (self.text, self.passesSoon, self.end) = (text, passesSoon, end)
        }
    }

    /// The result of an attempt.
    package enum Termination: Sendable, Hashable {
        case succeeded
        /// It failed and is retried at the time; `counts` is whether the attempt counts.
        case retry(at: ContinuousClock.Instant, counts: Bool = true)
        /// It was stopped because its file has changed; this does not count as an attempt.
        case overtaken
        /// It failed and is not retried.
        case gaveUp
        /// It found neither its input nor its own output.
        case gone
        /// The rule does not match the event because of the content of the file.
        case refused
    }
}

extension Reconciler.Candidate {
    /// Creates a candidate for a path that need not be due.
    package init(view: Int, event: FileEvent) { self.init(view: view, path: event.path, event: event, retried: nil) }
}
