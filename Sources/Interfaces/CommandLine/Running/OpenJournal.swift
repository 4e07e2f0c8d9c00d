import FileEvents
import Foundation
import Handling
import RuleLoading
import Rules
import Storage
import System

/// The journal of a run: a file, or nothing that outlives it.
struct OpenJournal {
    let journal: DiskStore
    /// The file; nil for a journal in memory.
    let file: PathBytes?

    /// Opens it, or makes it.
    ///
    /// - Parameters:
    ///   - place: Where it is kept.
    ///   - retention: How much is kept of jobs that have ended.
    ///   - isDry: Whether a copy in memory is used, and the file only read.
    /// - Throws: When it can't be used.
    init(_ place: JournalPlace, keeping retention: JournalRetention, isDry: Bool = false) throws(JournalError) {
        switch place {
        case .memory:
            if !isDry { ProgramSurroundings.scratchFolders.removeAbandoned() }
            journal = try DiskStore(inMemory: nil, now: DiskProbe.now())
            file = nil
        case .file(let path):
            journal =
                try isDry ? DiskStore(inMemory: path, now: DiskProbe.now()) : Self.file(at: path, keeping: retention)
            // Its other files lie beside the file itself, wherever a link to it is.
            file = DiskProbe.resolve(path) ?? path
        }
    }

    /// Opens a file, or makes it, and removes the folders of actions that were cut off.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - isBrief: Whether it is closed again at once, so that others wait for that.
    ///   - retention: How much is kept of jobs that have ended.
    /// - Returns: The journal, which is this program's own until it is closed.
    /// - Throws: When it can't be used.
    static func file(
        at path: PathBytes, isBrief: Bool = false, keeping retention: JournalRetention = .unlimited
    ) throws(JournalError) -> DiskStore {
        if !isBrief { ProgramSurroundings.scratchFolders.removeAbandoned() }
        return try DiskStore(at: path, now: DiskProbe.now(), isBrief: isBrief, keeping: retention)
    }

    /// The names under which rules with these roots would see the file.
    ///
    /// - Parameter roots: The folders that are watched.
    /// - Returns: Its own name, and those through roots that are links.
    func names(below roots: [PathBytes]) -> [PathBytes] {
        guard let file else { return [] }
        var names = [file]
        guard let folder = DiskProbe.resolve(file.parent) else { return names }
        for root in roots {
            // A root may be a link to a folder above the journal.
            guard let real = DiskProbe.resolve(root), let relative = folder.relative(to: real) else { continue }
            let seen = relative.isEmpty ? root : root.appending(relative)
            names.append(seen.appending(file.lastComponent))
        }
        return names
    }
}
