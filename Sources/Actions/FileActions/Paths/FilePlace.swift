import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// A destination with its folder open, and what is done to it.
struct FilePlace {
    let invocation: Invocation
    let folder: OpenFolder
    let name: PathBytes
    let conflict: Conflict
    let trash: Trash
    let limit: WorkLimit
    /// What was done so far that can be taken back.
    var changes: [FileChange] = []

    /// Opens the folder that `to` names, and makes it if need be.
    init(_ invocation: Invocation, trash: Trash) throws(FileFault) {
        let destination = try Destination(invocation)
        var changes: [FileChange] = []
        let folder = try Jail(invocation).open(destination.path.parent, making: true, noting: &changes)
        self.init(invocation, folder, destination.name, destination.conflict, trash: trash)
        self.changes = changes
    }

    init(_ invocation: Invocation, _ folder: OpenFolder, _ name: PathBytes, _ conflict: Conflict, trash: Trash) {
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

    /// Whether it is the name that the file has, by whatever way to its folder.
    func isSame(as source: SourceFile) -> Bool { name == source.name && folder.isSame(as: source.folder) }

    var skipped: Outcome { Outcome(.skipped, "'\(path)' exists", code: "exists") }

    /// How it ended, with what was done.
    func outcome(_ outcome: Outcome) -> Outcome {
        var outcome = outcome
        outcome.changes = changes
        return outcome
    }

    /// Notes that there is something new, and tells how that ended.
    mutating func note(_ name: PathBytes, _ kind: (PathBytes) -> FileChange.Kind) throws(FileFault) {
        guard let facts = try folder.look(at: name) else { return }
        changes.append(FileChange(kind(folder.path(of: name)), left: FileMark(facts)))
    }

    /// The name under which the file itself is there, as an interrupted attempt has left it; nil if it is not.
    ///
    /// - Throws: What failed.
    func earlierMove() throws(FileFault) -> PathBytes? {
        let file = invocation.job.event.snapshot.identity
        guard invocation.hasBegunBefore, file.birth != 0 else { return nil }
        return try firstName { (_, there) throws(FileFault) in there.identity == file }
    }

    /// The first of the names that the file may get for which `isWanted` holds; there is none after a free one.
    private func firstName(
        where isWanted: (PathBytes, Snapshot) throws(FileFault) -> Bool
    ) throws(FileFault) -> PathBytes? {
        let isNumbered = conflict == .rename || conflict == .deduplicate || conflict == .renameExisting
        for number in 0..<(isNumbered ? Destination.mostNumbers : 1) {
            let name = Destination.numbered(name, number)
            guard let there = try folder.look(at: name) else { return nil }
            if try isWanted(name, there) { return name }
        }
        return nil
    }

    /// The name under which an attempt that was cut off has left the file, when it can be recognised.
    ///
    /// Otherwise a second attempt would leave a second, numbered copy, or find its own copy in the way. Size and
    /// time find it; the content proves it, as long as there is a source to compare with.
    ///
    /// - Parameters:
    ///   - content: The source, opened for reading; nil when there is none any more.
    ///   - hasTimes: Whether a copy has the time of the original.
    /// - Returns: The name; nil when there is none.
    /// - Throws: What failed.
    func earlierResult(_ content: OpenFile?, hasTimes: Bool = true) throws(FileFault) -> PathBytes? {
        guard invocation.hasBegunBefore, conflict != .overwrite else { return nil }
        let facts = try content?.facts() ?? invocation.job.event.snapshot
        return try firstName { (name, there) throws(FileFault) in
            guard there.type == .file, there.size == facts.size, !hasTimes || there.modified == facts.modified else {
                return false
            }
            guard let content else { return true }
            return try SameContent.holds(content, name, in: folder, within: limit)
        }
    }
}
