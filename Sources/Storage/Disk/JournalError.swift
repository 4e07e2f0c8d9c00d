import Glibc
import GRDB
import Records
package import System

/// A reason why a journal can't be opened.
///
/// The journal is unchanged. `description` is the message and `help` the remedy.
package enum JournalError: Error, Sendable, Hashable {
    /// Another instance has it open; `pid` is nil if the process id can't be read.
    case held(PathBytes, pid: Int32?)
    /// The directory can't be created.
    case noDirectory(PathBytes, errno: Int32)
    /// The file or its lock file can't be created or opened.
    case noAccess(PathBytes, errno: Int32)
    /// The file can't even be read.
    case unreadable(PathBytes, errno: Int32)
    case isDirectory(PathBytes)
    /// The file is not an SQLite file.
    case notJournal(PathBytes)
    /// The file is an SQLite file of another program.
    case foreign(PathBytes)
    case damaged(PathBytes, String)
    /// A file next to it belongs to another user, or is not a regular file with one link.
    case untrusted(PathBytes)
    case newer(PathBytes, version: Int, known: Int)
    case full(PathBytes)
    case busy(PathBytes)
    /// Another error of SQLite.
    case failed(PathBytes, String)

    init(_ error: any Error, at path: PathBytes) {
        let detail = StorageError.detail(of: error)
        self =
            switch (error as? DatabaseError)?.resultCode {
            case nil: error as? JournalError ?? .damaged(path, detail)
            case .SQLITE_CORRUPT: .damaged(path, detail)
            case .SQLITE_NOTADB: .notJournal(path)
            case .SQLITE_FULL: .full(path)
            case .SQLITE_BUSY, .SQLITE_LOCKED: .busy(path)
            case .SQLITE_IOERR where path.isOnFullDisk: .full(path)
            case .SQLITE_READONLY: .noAccess(path, errno: EROFS)
            case .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH: .noAccess(path, errno: EACCES)
            default: .failed(path, detail)
            }
    }
}

extension JournalError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .held(let path, let pid):
            let who = pid.map { "process \($0)" } ?? "another process"
            return "the journal '\(path)' is in use by another instance (\(who))"
        case .noDirectory(let path, let errno):
            return "cannot create the directory '\(path)': \(SystemError(errno: errno))"
        case .noAccess(let path, let errno):
            return "the journal '\(path)' can't be written: \(SystemError(errno: errno))"
        case .unreadable(let path, let errno):
            return "the journal '\(path)' can't be read: \(SystemError(errno: errno))"
        case .isDirectory(let path): return "the journal '\(path)' is a directory"
        case .notJournal(let path): return "'\(path)' is not an SQLite file, so it is not a journal"
        case .foreign(let path): return "'\(path)' is an SQLite file of another program, not a journal"
        case .damaged(let path, let detail): return "the journal '\(path)' is damaged: \(detail)"
        case .untrusted(let path):
            return "'\(path)' beside the journal belongs to another user, or is not a regular file with one name"
        case .newer(let path, let version, let known):
            return "the journal '\(path)' has version \(version), of a newer release; this one supports up to \(known)"
        case .full(let path): return "the journal '\(path)' can't be written: the disk is full"
        case .busy(let path):
            return "the journal '\(path)' is locked by \(WriteLock.holder(of: path) ?? "another program")"
        case .failed(let path, let detail): return "the journal '\(path)' can't be opened: \(detail)"
        }
    }

    package var help: String {
        switch self {
        case .held: "stop that one first, or name another file with '--journal'"
        case .unreadable: "run it as the user that Alight runs as, or as root"
        case .noDirectory, .noAccess, .isDirectory, .notJournal, .foreign:
            "name a file with '--journal' that this user may write, or ':memory:' to store nothing"
        case .damaged:
            "nothing was changed; recover its contents with sqlite3, as docs/journal.md describes, or name "
                + "another file with '--journal'"
        case .untrusted: "remove it, or name a file with '--journal' in a directory that only this user may write to"
        case .newer: "run the newer release, or name another file with '--journal'"
        case .full: "free space on the disk, or name a file on another one with '--journal'"
        case .busy: "stop the program that has it open, or name another file with '--journal'"
        case .failed: "name another file with '--journal'"
        }
    }
}

extension StorageError {
    /// Creates the error for a reader of the journal: with the message of a run, and possibly another remedy.
    package init(_ error: JournalError, help: String? = nil) { self.init(error.description, help: help ?? error.help) }

    /// Creates the error for data of the journal that could not be written or read.
    init(_ error: any Error, at path: PathBytes, isReading: Bool = false) {
        var code = (error as? DatabaseError)?.resultCode
        if code == .SQLITE_IOERR, !isReading, path.isOnFullDisk { code = .SQLITE_FULL }
        let isDamaged = code == nil || code == .SQLITE_CORRUPT || code == .SQLITE_NOTADB
        let mayPass = !isDamaged && !isReading && code != .SQLITE_CONSTRAINT && code != .SQLITE_MISUSE
        let detail =
            switch code {
            case .SQLITE_FULL: "the disk is full"
            case .SQLITE_BUSY: "it is locked by \(WriteLock.holder(of: path) ?? "another program")"
            default: Self.detail(of: error)
            }
        let help =
            switch code {
            case .SQLITE_FULL: "free space on the disk; no action starts until it can be written again"
            case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
                "make the file and its directory writable; no action starts until then"
            case .SQLITE_BUSY, .SQLITE_LOCKED: "stop the program that has it locked; no action starts until then"
            case _ where isDamaged:
                "recover its contents with sqlite3, as docs/journal.md describes, or name another file with '--journal'"
            default: "check the disk that contains it" + (mayPass ? "; no action starts until it can be written" : "")
            }
        let failure = isDamaged ? "is damaged" : "can't be \(isReading ? "read" : "written")"
        self.init("the journal '\(path)' \(failure): \(detail)", help: help, mayPass: mayPass)
    }

    /// Returns the error as text on one line.
    static func detail(of error: any Error) -> String {
        switch error {
        case let error as DatabaseError:
            let text = error.message ?? "SQLite error"
            return
                "\(text.split(separator: "\n").joined(separator: "; ")) (SQLite \(error.extendedResultCode.rawValue))"
        case let error as UnreadableRow: return "a row of the table '\(error.table)' is invalid"
        default: return "\(error)"
        }
    }
}

extension PathBytes {
    /// Whether the disk is full, which SQLite does not always report.
    fileprivate var isOnFullDisk: Bool {
        var status = statvfs()
        return withCString { statvfs($0, &status) } == 0 && status.f_bavail < 16
    }
}
