import Configuration
import Foundation
import Programs
import Storage
import System

/// The journal of a run: a file, or in memory.
struct OpenJournal {
    let journal: DiskStore
    /// The path of the file; nil for a journal in memory.
    let file: PathBytes?

    /// Opens the journal, or creates it.
    ///
    /// - Parameters:
    ///   - place: The location of the journal.
    ///   - retention: The limits for finished jobs.
    ///   - isDry: Whether to use a copy in memory, and only read the file.
    /// - Throws: A `JournalError` when it cannot be used.
    init(_ place: JournalPlace, keeping retention: JournalRetention, isDry: Bool = false) throws(JournalError) {
        switch place {
        case .memory:
            if !isDry { CommandContext.scratchFolders.removeAbandoned() }
            journal = try DiskStore(inMemory: nil, now: DiskProbe.now())
            file = nil
        case .file(let path):
            journal =
                try isDry ? DiskStore(inMemory: path, now: DiskProbe.now()) : Self.file(at: path, keeping: retention)
            // Its other files are beside the file itself, not beside a symbolic link to it.
            file = DiskProbe.resolve(path) ?? path
        }
    }

    /// Opens a file, or creates it, and removes the scratch directories of interrupted actions.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - isBrief: Whether it is closed again at once, so that other commands wait for that.
    ///   - retention: The limits for finished jobs.
    /// - Returns: The journal, which this process owns until it is closed.
    /// - Throws: A `JournalError` when it cannot be used.
    static func file(
        at path: PathBytes, isBrief: Bool = false, keeping retention: JournalRetention = .unlimited
    ) throws(JournalError) -> DiskStore {
        if !isBrief { CommandContext.scratchFolders.removeAbandoned() }
        return try DiskStore(at: path, now: DiskProbe.now(), isBrief: isBrief, keeping: retention)
    }

    /// Returns the paths under which rules with these roots would see the file.
    ///
    /// - Parameter roots: The watched directories.
    /// - Returns: The path itself, and the paths through roots that are symbolic links.
    func names(below roots: [PathBytes]) -> [PathBytes] {
        guard let file else { return [] }
        var names = [file]
        guard let folder = DiskProbe.resolve(file.parent) else { return names }
        for root in roots {
            // A root may be a symbolic link to a directory above the journal.
            guard let real = DiskProbe.resolve(root), let relative = folder.relative(to: real) else { continue }
            let seen = relative.isEmpty ? root : root.appending(relative)
            names.append(seen.appending(file.lastComponent))
        }
        return names
    }
}
