/// The way a root is watched.
public enum Backend: String, Sendable, Hashable, CaseIterable {
    /// Inotify where it reports every change, otherwise polling: on network and FUSE file systems, and beyond the limit
    /// of watches.
    case auto
    /// Inotify on any file system; polling beyond the limit of watches.
    case inotify
    /// Polling.
    case poll
}

/// The behaviour when a root does not exist at the start.
public enum MissingRoot: String, Sendable, Hashable, CaseIterable {
    /// Wait until it appears; its contents are then `created`.
    case wait
    /// Fail at the start.
    case fail
    /// Create it, with the directories above it.
    case create
}

/// The reason why a directory is polled.
package enum PollingReason: Sendable, Hashable {
    /// The rule sets it.
    case asked
    /// The kernel does not report every change on this type of file system, such as `nfs`.
    case fileSystem(String)

    /// The type of the file system, if that is the reason.
    package var fileSystem: String? { if case .fileSystem(let name) = self { name } else { nil } }
}
