import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// A destination with its directory open, and the changes made to it.
struct FilePlace {
    let invocation: Invocation
    let folder: DirectoryHandle
    let name: PathBytes
    let conflict: Conflict
    let trash: Trash
    let limit: WorkLimit
    /// The changes so far that can be reverted.
    var changes: [FileChange] = []

    /// Opens the directory that `to` names, and creates it if necessary.
    init(_ invocation: Invocation, trash: Trash) throws(FileError) {
        let destination = try Destination(invocation)
        var changes: [FileChange] = []
        let folder = try Jail(invocation).open(destination.path.parent, making: true, noting: &changes)
        self.init(invocation, folder, destination.name, destination.conflict, trash: trash)
        self.changes = changes
    }

    init(_ invocation: Invocation, _ folder: DirectoryHandle, _ name: PathBytes, _ conflict: Conflict, trash: Trash) {
        self.invocation = invocation
        self.folder = folder
        self.name = name
        self.conflict = conflict
        self.trash = trash
        limit = invocation.limit
        if invocation.job.isInterrupted { Leftovers.clear(folder, now: DiskProbe.now()) }
    }

    var path: PathBytes { folder.path(of: name) }

    var placing: Placing {
        var placing = Placing(in: folder, as: name, conflict, trash: trash, within: limit)
        placing.willWrite = invocation.willWrite
        return placing
    }

    /// Whether this is the current name of the file, through any path to its directory.
    func isSame(as source: SourceFile) -> Bool { name == source.name && folder.isSame(as: source.folder) }

    var skipped: Outcome { Outcome(.skipped, "'\(path)' exists", code: "exists") }

    /// Returns the outcome together with the changes.
    func outcome(_ outcome: Outcome) -> Outcome {
        var outcome = outcome
        outcome.changes = changes
        return outcome
    }

    /// Records the change that left a file with this name, if it exists.
    mutating func note(_ name: PathBytes, _ kind: (PathBytes) -> FileChange.Kind) throws(FileError) {
        guard let facts = try folder.look(at: name) else { return }
        changes.append(FileChange(kind(folder.path(of: name)), left: FileMark(facts)))
    }

    /// Returns the name under which an interrupted attempt left the file itself; nil if there is none.
    ///
    /// - Throws: A ``FileError`` if a system call fails.
    func earlierMove() throws(FileError) -> PathBytes? {
        let file = invocation.job.event.snapshot.identity
        guard invocation.hasBegunBefore, file.birth != 0 else { return nil }
        return try firstName { (_, there) throws(FileError) in there.identity == file }
    }

    /// Returns the first candidate name for which `isWanted` is true; the search stops at a free name.
    private func firstName(
        where isWanted: (PathBytes, Snapshot) throws(FileError) -> Bool
    ) throws(FileError) -> PathBytes? {
        let isNumbered = conflict == .rename || conflict == .deduplicate || conflict == .renameExisting
        for number in 0..<(isNumbered ? Destination.mostNumbers : 1) {
            let name = Destination.numbered(name, number)
            guard let there = try folder.look(at: name) else { return nil }
            if try isWanted(name, there) { return name }
        }
        return nil
    }

    /// Returns the name under which an interrupted attempt left the file, if it can be recognized.
    ///
    /// Otherwise a second attempt would leave a second, numbered copy, or conflict with its own copy. Size and time
    /// find the file. The content proves it, as long as there is a source to compare with.
    ///
    /// - Parameters:
    ///   - content: The source, opened for reading; nil if it no longer exists.
    ///   - hasTimes: Whether a copy has the modification time of its source.
    /// - Returns: The name; nil if there is none.
    /// - Throws: A ``FileError`` if a system call fails.
    func earlierResult(_ content: OpenFile?, hasTimes: Bool = true) throws(FileError) -> PathBytes? {
        guard invocation.hasBegunBefore, conflict != .overwrite else { return nil }
        let facts = try content?.facts() ?? invocation.job.event.snapshot
        return try firstName { (name, there) throws(FileError) in
            guard there.type == .file, there.size == facts.size, !hasTimes || there.modified == facts.modified else {
                return false
            }
            guard let content else { return true }
            return try SameContent.holds(content, name, in: folder, within: limit)
        }
    }
}
