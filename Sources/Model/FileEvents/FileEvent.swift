public import System

/// The kind of an event: a change to a path, reported once after it has settled, or a change to the watching.
///
/// The raw values are the words in rules files and in all JSON.
public enum EventKind: String, Sendable, Hashable, CaseIterable {
    /// A name appeared and its content is complete.
    case created
    /// The content of a known path changed, or another file replaced it.
    case modified
    /// A known path is gone.
    case deleted
    /// A known file has a new name.
    case moved
    /// Mode, owner, link count, times or extended attributes changed, not the content.
    case attributes
    /// A name appeared, and its content may be incomplete: reported at once.
    case arriving
    /// The scan of a root starts; the path is the root, as for all following kinds up to `rootBack`.
    case scanStarted = "scan_begin"
    /// All results of the scan have been reported, except for files that are still being written.
    case scanEnded = "scan_end"
    /// The kernel's queue was full; the following scan finds the missing changes.
    case overflow
    /// A file system in a root, or the root's own, was unmounted: its files are out of sight, not deleted.
    ///
    /// The path is the mount point, which may be above the root.
    case unmounted
    /// A root does not exist any more: its files are out of sight, not deleted.
    case rootGone = "root_gone"
    /// A root that was missing exists now.
    case rootBack = "root_back"
    /// A file was opened.
    ///
    /// Reported as by the kernel, neither settled nor compared.
    case opened
    /// A file was read.
    ///
    /// Reported like `opened`.
    case accessed
    /// A file that was open only for reading was closed.
    ///
    /// Reported like `opened`.
    case closed

    /// Whether the event is about the watching of a root, not about a path in it.
    public var isLifecycle: Bool { EventMask.lifecycle.contains(EventMask(self)) }

    /// Whether the event passes on the report of the kernel, without checking the disk.
    public var isRaw: Bool { EventMask.raw.contains(EventMask(self)) }

    /// Whether the event reports a difference between the disk and what the action last received.
    package var isDifference: Bool { EventMask.differences.contains(EventMask(self)) }
}

/// The reason why Alight checked the path.
public enum EventOrigin: String, Sendable, Hashable {
    /// The kernel reported it.
    case live
    /// The initial scan found it.
    case scan
    /// A comparison after an overflow, or on demand, found it.
    case rescan
    /// Polling found it.
    case poll
    /// A user specified it.
    case manual
}

/// A difference between the last accepted metadata of a path and the disk.
public struct FileEvent: Hashable, Sendable {
    public var kind: EventKind
    public var path: PathBytes
    /// The watched directory, above the first wildcard of the glob.
    public var root: PathBytes
    /// The former path of a moved file.
    public var from: PathBytes?
    /// The paths of the event, the former path of a moved file first.
    package var paths: [PathBytes] { [from, path].compactMap(\.self) }
    /// The current metadata, or the last known metadata of a path that does not exist any more.
    ///
    /// For a root that has never been seen, it is ``Snapshot/unseen``.
    public var snapshot: Snapshot
    /// The metadata accepted before; nil for an unknown path.
    public var before: Snapshot? {
        get { former?.value }
        set { former = newValue.map(Box.init) }
    }
    /// The storage of ``before``, separate because most events have none and very many events may wait.
    package var former: Box<Snapshot>?
    /// The differences: `extended`, `truncated`, `overwritten`; `mode`, `uid`, `gid`, `nlink`, `mtime`, `xattr:NAME`.
    public var changed: [String]
    /// Whether another file replaced the one at the path.
    public var isReplaced: Bool
    /// Whether a rename moved the file from or to a place that is not watched.
    public var isByMove: Bool
    /// The other known names of the file, for a hard link.
    public var sameAs: [PathBytes]
    /// The maximum number of other names; a file can have very many.
    package static let maximumOtherNames = 16
    /// The number of entries of a directory; nil for other types, and if it cannot be listed.
    public var children: Int?
    /// The appended text, for rules that follow a file.
    public var tail: TailText? {
        get { addition?.value }
        set { addition = newValue.map(Box.init) }
    }
    /// The storage of ``tail``.
    package var addition: Box<TailText>?
    public var origin: EventOrigin
    /// The time at which the difference was found.
    public var time: Timestamp
    /// The writer, for rules that request it.
    package var writer = Writer.notAsked

    public init(
        kind: EventKind, path: PathBytes, root: PathBytes, from: PathBytes? = nil, snapshot: Snapshot,
        before: Snapshot? = nil, changed: [String] = [], isReplaced: Bool = false, isByMove: Bool = false,
        sameAs: [PathBytes] = [], children: Int? = nil, tail: TailText? = nil, origin: EventOrigin = .live,
        time: Timestamp
    ) {
        (self.kind, self.path, self.root, self.from, self.snapshot) = (kind, path, root, from, snapshot)
        (self.changed, self.isReplaced, self.isByMove, self.sameAs) = (changed, isReplaced, isByMove, sameAs)
        (self.children, self.origin, self.time) = (children, origin, time)
        (former, addition) = (before.map(Box.init), tail.map(Box.init))
    }
}

/// The text appended to a followed file.
public struct TailText: Hashable, Sendable {
    /// The offset of the text in the file, in bytes.
    public var offset: UInt64
    /// Whole characters, if the file is UTF-8: an incomplete character at the end waits for its other bytes.
    public var bytes: [UInt8]
    /// Whether the file was truncated or replaced, so that the text does not continue the previous text.
    public var isReset: Bool
    /// The number of bytes behind the text that exist already, and follow with the next event.
    public var remaining: UInt64

    public init(offset: UInt64, bytes: [UInt8], isReset: Bool = false, remaining: UInt64 = 0) {
        (self.offset, self.bytes, self.isReset, self.remaining) = (offset, bytes, isReset, remaining)
    }
}

/// The process that changed a file, as of the time of the change.
package struct WritingProcess: Sendable, Hashable {
    package var pid: Int32
    /// The program's name, cut at 15 bytes by the kernel; nil if the process exited before its name was read.
    package var name: PathBytes?
    /// The path of the program's file; nil also if Alight has no permission to read it.
    package var executable: PathBytes?
    /// The effective user id.
    package var uid: UInt32?

    package init(pid: Int32, name: PathBytes? = nil, executable: PathBytes? = nil, uid: UInt32? = nil) {
        (self.pid, self.name, self.executable, self.uid) = (pid, name, executable, uid)
    }
}

/// The writer that caused an event.
package enum Writer: Sendable, Hashable {
    /// No rule requested the writer, or the event has none.
    case notAsked
    indirect case process(WritingProcess)
    case unknown(UnknownWriter)

    /// The process, if it is known.
    package var process: WritingProcess? { if case .process(let process) = self { process } else { nil } }
}

/// The reason why a writer is unknown.
///
/// The raw values are stored in the journal.
package enum UnknownWriter: String, Sendable, Hashable, CaseIterable {
    /// The kernel does not report writers to this program.
    case denied
    /// The kernel reported no process, for example for a file that existed before Alight started to watch.
    case unseen
    /// The kernel's queue overflowed.
    case overflow
}
