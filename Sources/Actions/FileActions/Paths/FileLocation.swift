import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// A destination with its directory open, and the changes made to it.
///
/// Each step is one system call that fails if another process was faster. Therefore a file is lost only if it was to be
/// replaced, and a partial file is never visible.
final class FileLocation {
    let invocation: Invocation
    let directory: DirectoryHandle
    let name: PathBytes
    let conflict: Conflict
    private let trash: Trash
    let limit: WorkLimit
    /// The changes so far that can be reverted, without the directories that were created.
    private(set) var changes: [FileChange] = []

    /// Opens the directory that `to` names, and creates it if necessary.
    ///
    /// - Parameters:
    ///   - invocation: The invocation with `to`.
    ///   - name: The name in the directory; nil for the one in `to`.
    ///   - trash: The trash for files that `on_conflict: trash` replaces.
    ///   - making: Whether missing directories are created.
    ///   - directories: The directories that are open already.
    /// - Throws: A ``FileError`` if the path is invalid, or the directory cannot be opened.
    convenience init(
        _ invocation: Invocation, as name: PathBytes? = nil, trash: Trash, making: Bool = true,
        among directories: OpenDirectories = OpenDirectories()
    ) throws(FileError) {
        let path = try Destination.path(invocation)
        let directory = try directories.directory(
            path.parent, for: invocation.job.event, as: .target
        ) { () throws(FileError) in
            try Jail(invocation).open(path.parent, making: making)
        }
        self.init(invocation, directory, name ?? PathBytes(path.lastComponent), trash: trash)
    }

    init(_ invocation: Invocation, _ directory: DirectoryHandle, _ name: PathBytes, trash: Trash) {
        (self.invocation, self.directory, self.name, self.trash) = (invocation, directory, name, trash)
        conflict = Conflict(invocation)
        limit = invocation.limit
        if invocation.job.isInterrupted { Leftovers.clear(directory, now: DiskProbe.now()) }
    }

    var path: PathBytes { directory.path(of: name) }

    /// Whether this is the current name of the file, through any path to its directory.
    func isSame(as source: SourceFile, among directories: OpenDirectories = OpenDirectories()) -> Bool {
        name == source.name && directories.areSame(directory, source.directory)
    }

    // MARK: - Outcomes

    /// The outcome of `on_conflict: skip`.
    var skipped: Outcome { outcome(Outcome(.skipped, "'\(path)' exists", code: "exists")) }

    /// Returns the outcome together with the changes.
    func outcome(_ outcome: Outcome) -> Outcome {
        var outcome = outcome
        outcome.changes = changes
        return outcome
    }

    /// Returns the outcome of success, with the file of that name as its output.
    func succeeded(
        _ name: PathBytes, code: String? = nil, values: [String: JSONValue] = [:], _ message: (PathBytes) -> String
    ) -> Outcome {
        let path = directory.path(of: name)
        return outcome(Outcome(.succeeded, message(path), code: code, outputs: [path], values: values))
    }

    /// Returns the outcome for a file that an interrupted attempt left under that name.
    func finished(_ name: PathBytes, values: [String: JSONValue] = [:]) -> Outcome {
        succeeded(name, values: values) { "an earlier attempt created it at \($0)" }
    }

    /// Records the change that left a file with this name, if it exists.
    func record(_ name: PathBytes, _ kind: (PathBytes) -> FileChange.Kind) throws(FileError) {
        guard let metadata = try directory.metadata(of: name) else { return }
        changes.append(FileChange(kind(directory.path(of: name)), left: FileMark(metadata)))
    }

    /// Records a change that left a known file.
    func record(_ kind: FileChange.Kind, left file: Snapshot) {
        changes.append(FileChange(kind, left: FileMark(file)))
    }

    /// Removes the record of a change that has been reverted.
    func forget(_ kind: FileChange.Kind) { changes.removeAll { $0.kind == kind } }

    // MARK: - Earlier attempts

    /// Returns the name under which an interrupted attempt left the file itself; nil if there is none.
    ///
    /// - Throws: A ``FileError`` if a system call fails.
    func earlierMove() throws(FileError) -> PathBytes? {
        let file = invocation.job.event.snapshot.identity
        guard invocation.hasStartedBefore, file.birth != 0 else { return nil }
        return try firstName { (_, there) throws(FileError) in there.identity == file }
    }

    /// Returns the first candidate name for which `isWanted` is true; the search stops at a free name.
    ///
    /// - Parameters:
    ///   - numbered: The conflicts for which names with a number are candidates, too.
    ///   - isWanted: Called with each name and the metadata of its file.
    /// - Returns: The name; nil if there is none.
    /// - Throws: A ``FileError`` if a system call fails.
    func firstName(
        numbered: Set<Conflict> = [.rename, .deduplicate, .renameExisting],
        where isWanted: (PathBytes, Snapshot) throws(FileError) -> Bool
    ) throws(FileError) -> PathBytes? {
        for number in 0..<(numbered.contains(conflict) ? NumberedName.most : 1) {
            let name = NumberedName.numbered(name, number)
            guard let there = try directory.metadata(of: name) else { return nil }
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
        guard invocation.hasStartedBefore, conflict != .overwrite else { return nil }
        let wanted = try content?.metadata() ?? invocation.job.event.snapshot
        return try firstName { (name, there) throws(FileError) in
            guard there.type == .file, there.size == wanted.size, !hasTimes || there.modified == wanted.modified else {
                return false
            }
            guard let content else { return true }
            return try SameContent.holds(content, name, in: directory, within: limit)
        }
    }

    // MARK: - Naming

    enum Result {
        /// The file has this name.
        case placed(PathBytes)
        /// `on_conflict: skip`, and the name exists.
        case skipped
        /// `on_conflict: deduplicate`, and the file of this name has the same content.
        case duplicate(PathBytes)
    }

    /// The file that is to get the name.
    struct Candidate {
        /// Gives the file a name that does not exist; returns 0 or the errno.
        var put: (PathBytes) -> Int32
        /// Gives the file a name, and replaces a file that has it; returns 0 or the errno.
        var replace: (PathBytes) -> Int32
        /// The content for comparison; nil if there is none.
        var content: OpenFile?
    }

    /// Gives the file with a temporary name in the directory its final name, according to `on_conflict`.
    ///
    /// - Parameters:
    ///   - temporary: The temporary name.
    ///   - content: The file opened for reading, if it may be compared.
    /// - Returns: The result.
    /// - Throws: A ``FileError`` if the file does not get a name.
    func location(_ temporary: PathBytes, content: OpenFile? = nil) throws(FileError) -> Result {
        let directory = directory
        return try location(
            Candidate(
                put: { directory.rename(temporary, to: directory, $0, CAL_RENAME_NEW) },
                replace: { directory.rename(temporary, to: directory, $0, CAL_RENAME_REPLACING) }, content: content))
    }

    /// Gives a staged file its name.
    func location(_ staged: StagedFile, content: OpenFile? = nil) throws(FileError) -> Result {
        let result = try location(staged.name(), content: content)
        if case .placed = result { staged.keep() }
        return result
    }

    /// Gives any candidate its name.
    func location(_ candidate: Candidate) throws(FileError) -> Result {
        switch conflict {
        case .overwrite: try overwrite(candidate)
        case .renameExisting: try renameExisting(candidate)
        case .trash: try trashExisting(candidate)
        case .rename, .skip, .fail, .deduplicate: try number(candidate)
        }
    }

    /// Gives the candidate the name; returns false if the name exists.
    private func put(_ candidate: Candidate, _ name: PathBytes) throws(FileError) -> Bool {
        invocation.willWrite(directory.path(of: name))
        let error = candidate.put(name)
        guard error == 0 || error == EEXIST else { throw renameError(error, name) }
        return error == 0
    }

    private func renameError(_ error: Int32, _ name: PathBytes) -> FileError {
        FileError(error, "cannot rename to '\(directory.path(of: name))'")
    }

    private var tooManyNames: FileError {
        FileError(EEXIST, "there are \(NumberedName.most) files like '\(path)'")
    }

    private func number(_ candidate: Candidate) throws(FileError) -> Result {
        for number in 0..<NumberedName.most {
            let name = NumberedName.numbered(name, number)
            if try put(candidate, name) { return .placed(name) }
            if conflict == .skip { return .skipped }
            if conflict == .fail { throw FileError(EEXIST, "on_conflict is 'fail' and '\(directory.path(of: name))'") }
            if conflict == .deduplicate, let content = candidate.content,
                try SameContent.holds(content, name, in: directory, within: limit)
            {
                return .duplicate(name)
            }
        }
        throw tooManyNames
    }

    private func overwrite(_ candidate: Candidate) throws(FileError) -> Result {
        // If the name is free, no file is replaced, which matters to an undo.
        if try put(candidate, name) { return .placed(name) }
        invocation.willWrite(path)
        let error = candidate.replace(name)
        guard error == 0 else { throw renameError(error, name) }
        try record(name) { .overwritten($0) }
        return .placed(name)
    }

    /// Creates the new file beside the old one, and exchanges the two, so that the name exists at all times.
    private func renameExisting(_ candidate: Candidate) throws(FileError) -> Result {
        for number in 0..<NumberedName.most {
            let numbered = NumberedName.numbered(name, number)
            guard try put(candidate, numbered) else { continue }
            return .placed(number > 0 ? try exchange(numbered) : name)
        }
        throw tooManyNames
    }

    /// Gives the new file its name, and the old one a number; returns the name that the new file has.
    private func exchange(_ numbered: PathBytes) throws(FileError) -> PathBytes {
        var error = directory.rename(numbered, to: directory, name, CAL_RENAME_EXCHANGING)
        switch error {
        case 0:
            try recordRenamed(to: numbered)
            return name
        case EINVAL, ENOSYS:
            // A file system without an exchange: rename the old file, then give the new file its name.
            for number in 1..<NumberedName.most {
                let old = NumberedName.numbered(name, number)
                error = directory.rename(name, to: directory, old, CAL_RENAME_NEW)
                guard error != EEXIST else { continue }
                if error == 0 { try recordRenamed(to: old) }
                break
            }
            guard error == 0 || error == ENOENT else { return numbered }
        // The old file has been removed in the meantime.
        case ENOENT: break
        default: throw renameError(error, name)
        }
        // If another process has put a file there, the new file stays beside it, as with `rename`.
        return directory.rename(numbered, to: directory, name, CAL_RENAME_NEW) == 0 ? name : numbered
    }

    private func recordRenamed(to old: PathBytes) throws(FileError) {
        let path = path
        try record(old) { .moved(from: path, to: $0) }
    }

    private func trashExisting(_ candidate: Candidate) throws(FileError) -> Result {
        for _ in 0..<100 {
            if try put(candidate, name) { return .placed(name) }
            if let change = try trash.put(name, in: directory) { changes.append(change) }
        }
        throw FileError(EBUSY, "another process keeps creating '\(path)'")
    }
}
