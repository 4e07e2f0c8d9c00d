package import System

/// The process that did something to a file, as it was when it did.
package struct WritingProcess: Sendable, Hashable {
    package var pid: Int32
    /// The program's name, of which the kernel keeps 15 bytes; nil when the process had ended before it could be read.
    package var name: PathBytes?
    /// The path of the program's file; nil also where Alight may not see it.
    package var executable: PathBytes?
    /// Its effective user.
    package var uid: UInt32?

    package init(pid: Int32, name: PathBytes? = nil, executable: PathBytes? = nil, uid: UInt32? = nil) {
        self.pid = pid
        self.name = name
        self.executable = executable
        self.uid = uid
    }
}

/// Who did what an event tells of.
package enum Author: Sendable, Hashable {
    /// Nobody wanted to know, or it is not a thing that somebody did.
    case notAsked
    indirect case process(WritingProcess)
    case unknown(UnknownAuthor)

    /// The process, where it is known.
    package var process: WritingProcess? {
        guard case .process(let process) = self else { return nil }
        return process
    }
}

/// Why it is not known who did something.
///
/// The raw values are words of the journal.
package enum UnknownAuthor: String, Sendable, Hashable, CaseIterable {
    /// The kernel does not tell this program.
    case denied
    /// The kernel told of no process, as of what was there when Alight began to look.
    case unseen
    /// The kernel had more to tell than it keeps.
    case overflow
}
