import FileEvents
import Glibc
import PluginProtocol
package import Rules
import System

/// Why a file's work came to its end: a system call that failed, or an outcome that there is nothing to add to.
package struct FileFault: Error {
    package var errno: Int32
    /// What was tried, as `cannot create '/x/y'`.
    package var what: String
    private var ending: Outcome?

    package init(_ errno: Int32, _ what: String) {
        self.errno = errno
        self.what = what
    }

    /// Ends the work with the outcome as it is.
    package init(_ outcome: Outcome) {
        errno = 0
        what = outcome.message
        ending = outcome
    }

    /// The file is not the one that had settled, or is being changed.
    static let changed = FileFault(Outcome(.notReady, "it changed meanwhile", code: "changed"))
    static let gone = FileFault(Outcome(.skipped, "it is gone", code: "gone"))

    /// Whether the file is not at its path, or no longer the one that settled.
    var isOfAnotherFile: Bool { outcome.code == "gone" || outcome.code == "changed" }

    /// A symbolic link on the path that root does not follow, since another user could replace it; nil if there is none.
    init?(untrustedLinkOn path: PathBytes) {
        guard let link = OwnershipCheck.untrustedLink(on: path) else { return nil }
        self.init(
            Outcome(
                .failed,
                "root does not follow the symbolic link '\(link.path)', which \(link.others) could replace; "
                    + "use the path of the directory that it leads to, in a directory that only root can change",
                code: "outside"))
    }

    /// Whether there were no descriptors left, as there may be for one file where there are none for many.
    var isOfCrowd: Bool { errno == EMFILE || errno == ENFILE }

    /// What becomes of the job: full or busy may pass, a wrong place won't.
    ///
    /// A folder that was there a moment ago and is not now (`ENOENT`) is made again by the next attempt.
    package var outcome: Outcome {
        if let ending { return ending }
        let message = "\(what): \(String(cString: strerror(errno)))"
        switch errno {
        case ENOSPC, EDQUOT, EIO, EBUSY, ETXTBSY, EAGAIN, ESTALE, EMFILE, ENFILE, ENOMEM, EINTR, ENODEV, ENXIO,
            ETIMEDOUT, EHOSTDOWN, ENOTCONN, ENOENT:
            return Outcome(.retry, message, code: "file-error")
        default:
            return Outcome(.failed, message, code: "file-error")
        }
    }
}

extension Outcome {
    /// Runs the work of a built-in handler, whose faults are outcomes too.
    static func of(_ body: () throws(FileFault) -> Outcome) -> Outcome {
        do throws(FileFault) {
            return try body()
        } catch {
            return error.outcome
        }
    }
}
