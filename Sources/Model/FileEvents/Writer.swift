package import System

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
