import ArgumentParser
import FileEvents
import Foundation
import Glibc

/// Where the journal is, for all commands that need it.
struct JournalOptions: ParsableArguments {
    @Option(
        name: .customLong("journal"),
        help: ArgumentHelp(
            "The journal's file.",
            discussion: """
                Default: $XDG_STATE_HOME/alight/journal.db, by default in ~/.local/state; as root \
                /var/lib/alight/journal.db.
                """,
            valueName: "file"),
        completion: .file())
    var journal: String?

    /// Where a journal is kept.
    enum Place: Sendable, Hashable {
        /// `:memory:`: nowhere, it ends with the program.
        case memory
        /// The absolute path of the file.
        case file(PathBytes)
    }

    /// The place that was named, or the usual one.
    ///
    /// - Throws: `ValidationError` when nothing is named and nothing usual, or the name is no path.
    func place() throws -> Place {
        guard let journal else {
            guard let file = Self.usualFile else {
                throw ValidationError("there is no place for the journal: set HOME, or name a file with --journal")
            }
            return .file(file)
        }
        if journal == ":memory:" { return .memory }
        let path = RawArguments.paths([journal])[0]
        if path.bytes.isEmpty { throw ValidationError("'--journal' is empty; name a file") }
        if path.bytes.last == .slash {
            throw ValidationError("'--journal \(Display.path(path))' is a folder; name a file")
        }
        let isAbsolute = path.bytes.first == .slash
        return .file((isAbsolute ? path : ProgramSurroundings.currentFolder.appending(path.bytes)).normalized)
    }

    /// The file that was named, or the usual one, for commands that look at a journal.
    ///
    /// - Throws: `ValidationError` as ``place()``, and for a journal that is no file.
    func file() throws -> PathBytes {
        guard case .file(let file) = try place() else {
            throw ValidationError("'--journal :memory:' is only for 'alight run': nothing is left of it to look at")
        }
        return file
    }

    /// The file that is used when none is named; nil if nothing says where a user's files are.
    private static var usualFile: PathBytes? {
        let variables = ProcessInfo.processInfo.environment
        let state = variables["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = variables["HOME"].flatMap { $0.hasPrefix("/") ? "\($0)/.local/state" : nil }
        let folder = state ?? (geteuid() == 0 ? "/var/lib" : home)
        return folder.map { PathBytes("\($0)/alight/journal.db").normalized }
    }
}
