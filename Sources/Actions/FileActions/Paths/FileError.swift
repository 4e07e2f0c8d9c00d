package import ActionAPI
import Glibc
import PluginProtocol
package import Rules
import System

/// A failure of an operation on a file: a system call that failed, or an outcome that is used as it is.
package struct FileError: Error {
    var errno: Int32
    /// The operation that failed, such as `cannot create '/x/y'`.
    var what: String
    private var result: Outcome?

    init(_ errno: Int32, _ what: String) {
        self.errno = errno
        self.what = what
    }

    /// Creates a failure with the outcome as it is.
    init(_ outcome: Outcome) {
        errno = 0
        what = outcome.message
        result = outcome
    }

    /// Returns a failure that a further attempt would not change.
    static func failed(_ message: String, code: String? = nil) -> FileError {
        FileError(Outcome(.failed, message, code: code))
    }

    /// The file is not the one that had settled, or is being changed.
    static let changed = FileError(Outcome(.notReady, "it changed meanwhile", code: "changed"))
    static let gone = FileError(Outcome(.skipped, "it is gone", code: "gone"))

    /// Whether the file is not at its path.
    var isGone: Bool { result?.code == "gone" }

    /// Whether the file is not at its path, or is no longer the one that settled.
    var isOfAnotherFile: Bool { isGone || result?.code == "changed" }

    /// Creates the failure for a link on the path that root does not follow, since another user could replace it; nil
    /// if none.
    init?(untrustedLinkOn path: PathBytes) {
        guard let refusal = LinkTrust.refusal(on: path) else { return nil }
        self = .failed(
            "\(refusal); use the path of the directory that it leads to, in a directory that only root can change",
            code: "outside")
    }

    /// Whether no descriptors were left; there may still be enough for one file when there are none for many.
    var hasNoDescriptors: Bool { errno == EMFILE || errno == ENFILE }

    /// The outcome of the attempt: a full disk, a busy file or missing permissions may pass, an invalid path will not.
    ///
    /// A directory that was there shortly before and is now missing (`ENOENT`) is created again by the next attempt.
    var outcome: Outcome {
        if let result { return result }
        let mayPass = Self.passing.contains(errno)
        return Outcome(mayPass ? .retry : .failed, "\(what): \(SystemError(errno: errno))", code: "file-error")
    }

    private static let passing: Set<Int32> = [
        EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EIO, EBUSY, ETXTBSY, EAGAIN, ESTALE, EMFILE, ENFILE, ENOMEM, EINTR,
        ENODEV, ENXIO, ETIMEDOUT, EHOSTDOWN, ENOTCONN, ENOENT,
    ]
}

extension Outcome {
    /// Runs the work of a built-in handler, and converts a failure to its outcome.
    static func of(_ body: () throws(FileError) -> Outcome) -> Outcome {
        do throws(FileError) {
            return try body()
        } catch {
            return error.outcome
        }
    }
}

extension WorkLimit {
    /// Throws when the work has to end now.
    func check(_ work: String) throws(FileError) { if let outcome = outcome(work) { throw FileError(outcome) } }
}

/// A handler whose work ends with an outcome, or with an error of an operation on a file.
package protocol FileHandler: BlockingHandler {
    /// Does the work of one action.
    func handle(_ invocation: Invocation) throws(FileError) -> Outcome
}

extension FileHandler {
    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in try handle(invocation) }
    }
}

extension Invocation {
    /// Whether an earlier attempt may have done part of the work.
    var hasStartedBefore: Bool { job.attempt > 1 || job.isInterrupted || job.mayHaveRunBefore }
}
