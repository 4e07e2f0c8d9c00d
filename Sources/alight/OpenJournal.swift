import FileEvents
import Foundation
import Handling
import Journaling
import RuleLoading
import Rules
import Settling

/// The journal of a run: a file, or nothing that outlives it.
struct OpenJournal {
    let journal: any Journal
    /// The file; nil for a journal in memory.
    let file: PathBytes?
    private let disk: DiskJournal?

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
            journal = MemoryJournal()
            file = nil
            disk = nil
        case .file(let path):
            let disk =
                try isDry ? DiskJournal(copyOf: path, now: DiskProbe.now()) : Self.file(at: path, keeping: retention)
            journal = disk
            // Its other files lie beside the file itself, wherever a link to it is.
            file = DiskProbe.resolve(path) ?? path
            self.disk = disk
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
    ) throws(JournalError) -> DiskJournal {
        if !isBrief { ProgramSurroundings.scratchFolders.removeAbandoned() }
        return try DiskJournal(at: path, now: DiskProbe.now(), isBrief: isBrief, keeping: retention)
    }

    /// How many jobs were running when the run before was cut off.
    var interrupted: Int { disk?.interrupted ?? 0 }

    /// The jobs that are neither done nor given up.
    var open: [JobEntry] { disk?.openJobs() ?? [] }

    /// The jobs that could not be read, and are dead letters since.
    var unreadable: [JobID] { disk?.unreadable ?? [] }

    /// Why there is no log ahead of the file; nil where there is one, or no file.
    var aheadError: JournalError? { disk?.aheadError }

    /// Whether what the run before noted last did not fit to the file.
    var hasUnfitLog: Bool { disk?.hasUnfitLog ?? false }

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

    /// Names the control socket to commands that look for the instance that has the journal; nil for none.
    func note(control socket: PathBytes?) { disk?.note(control: socket) }

    /// Keeps what is left, and lets others have the file; a fault if it can't be kept.
    func close() -> JournalFault? { disk?.close(at: DiskProbe.now()) }
}
