import CAlightLinux
import Glibc
package import Rules
import Synchronization
package import System

/// Creates the empty directory that each attempt works in, and removes it with everything that is left there.
///
/// The directories are located in one of this Alight process alone, so that the next process can detect abandoned ones.
package final class ScratchDirectories: Sendable {
    private struct State {
        /// The directory of this process, once it has been created.
        var current: InstanceDirectory?
        /// Earlier ones that still exist.
        var earlier: [InstanceDirectory] = []
        /// Empty directories in the current one that no attempt uses.
        var spare: [PathBytes] = []
    }

    private let directories: RuntimeDirectories
    private let journal: PathBytes?
    private let state = Mutex(State())
    /// The number of scratch directories that were created.
    private let count = Atomic(0)
    private static let mostSpare = 16
    /// How often the directory of this process is created again for one attempt.
    private static let mostRenewals = 8

    /// - Parameters:
    ///   - directories: The directories that may contain them. The first one in which that is possible is used; it is
    ///     created when it is first needed, with mode 0700.
    ///   - journal: The journal of the jobs; nil if it is in memory.
    package init(in directories: RuntimeDirectories, journal: PathBytes? = nil) {
        (self.directories, self.journal) = (directories, journal)
    }

    deinit { removeInstanceDirectory() }

    /// The directory that would be used first.
    package var base: PathBytes {
        let usable = directories.forScratch.first { $0.problem == nil } ?? directories.forScratch.first { _ in true }
        return usable?.path ?? "/"
    }

    /// The directory that would be the best one, and cannot be used.
    package var passedOver: RuntimeDirectories.Candidate? {
        directories.forScratch.first { _ in true }.flatMap { $0.problem == nil ? nil : $0 }
    }

    /// The error if no scratch directory can be created; nothing is created.
    package var problem: ScratchFailure? {
        do throws(ScratchFailure) {
            return try directories.first { _ in nil }
        } catch {
            return error
        }
    }

    /// Returns an empty directory with mode 0700, which no other attempt gets until ``takeBack(_:)`` or ``remove(_:)``.
    ///
    /// It belongs to the user, who can then also traverse the directory that contains it, but not read that. Its name
    /// ends with the id of the job, for ``removeAbandoned(_:)``.
    package func make(user: ProgramUser? = nil, for job: JobID? = nil) throws(ScratchFailure) -> PathBytes {
        let directory = try makeNew(mode: user == nil ? 0o700 : 0o711, job.map { "-\($0)" } ?? "")
        if let user, directory.withCString({ lchown($0, user.uid, user.gid) }) != 0 {
            throw ScratchFailure(errno, "give '\(user.text)'", directory)
        }
        return directory
    }

    private func makeNew(mode: mode_t, _ suffix: String) throws(ScratchFailure) -> PathBytes {
        var renewals = 0
        while true {
            let parent = try parent(mode: mode)
            // Each has another name: a process left from an earlier attempt finds nothing by the old one.
            let directory = parent.appending("\(count.add(1, ordering: .relaxed).newValue)\(suffix)")
            if mode == 0o700, renameSpare(to: directory, in: parent) { return directory }
            if directory.withCString({ mkdir($0, 0o700) }) == 0 { return directory }
            switch errno {
            // A program may have created directories next to its own.
            case EEXIST: continue
            // The directory of this process has been removed, as happens to `$XDG_RUNTIME_DIR` at logout, or cannot be
            // written to any more.
            case _ where renewals < Self.mostRenewals:
                renewals += 1
                leave(parent)
            case let error: throw ScratchFailure(error, "create", directory)
            }
        }
    }

    /// Returns the directory of this process, which the first call creates; others can traverse it if the mode allows
    /// that.
    private func parent(mode: mode_t) throws(ScratchFailure) -> PathBytes {
        try state.withLock { state throws(ScratchFailure) in
            var directory =
                if let current = state.current {
                    current
                } else {
                    try directories.first { base throws(ScratchFailure) in
                        try InstanceDirectory.make(in: base, for: journal, mode: mode)
                    }
                }
            if mode == 0o711 { directory.openToOthers() }
            state.current = directory
            return directory.path
        }
    }

    /// Leaves the directory of this process, so that another is created; has no effect if that has already happened.
    private func leave(_ path: PathBytes) {
        state.withLock { state in
            guard let left = state.current, left.path == path else { return }
            (state.current, state.spare) = (nil, [])
            if path.withCString({ access($0, F_OK) }) == 0 { state.earlier.append(left) }
        }
    }

    /// Renames a spare directory; returns false if there is none.
    private func renameSpare(to directory: PathBytes, in parent: PathBytes) -> Bool {
        let spare = state.withLock { $0.current?.path == parent ? $0.spare.popLast() : nil }
        guard let spare else { return false }
        let error = spare.withCString { from in
            directory.withCString { cal_rename(AT_FDCWD, from, AT_FDCWD, $0, CAL_RENAME_NEW) }
        }
        if error != 0 { _ = DirectoryRemoval.removeEmpty(spare) }
        return error == 0
    }

    /// Takes an empty directory back, to remove it or to give it to another attempt under another name: on some file
    /// systems, that costs a tenth.
    ///
    /// - Returns: False if it is not empty, and stays.
    package func takeBack(_ directory: PathBytes) -> Bool {
        let mayKeep = state.withLock { $0.spare.count < Self.mostSpare && $0.current?.path == directory.parent }
        guard mayKeep, DirectoryRemoval.isUnchanged(directory) else { return DirectoryRemoval.removeEmpty(directory) }
        state.withLock { $0.spare.append(directory) }
        return true
    }

    /// Removes the directory of this process with everything that programs have left in it, when nothing is run any
    /// more.
    package func removeInstanceDirectory() {
        state.withLock { state in
            for made in state.earlier + [state.current].compactMap(\.self) { try? Self.remove(made.path) }
            // This releases the locks.
            state = State()
        }
    }

    /// Removes the directories of processes that were killed.
    ///
    /// Those that contain files of jobs of another journal are left to the next process that opens it. The directory
    /// that would be used first is created if it does not exist, so that no other user can take its name later.
    ///
    /// - Parameter rescue: Called for each directory of a job of this journal that contains regular files, with the id of
    ///   the job; returns whether it may be removed.
    package func removeAbandoned(_ rescue: (JobID, PathBytes) -> Bool = { _, _ in true }) {
        _ = try? directories.first { base throws(ScratchFailure) in try InstanceDirectory.prepare(base) }
        for candidate in directories.forScratch where UserDirectory.isOwn(candidate.path, user: geteuid()) {
            for name in (try? KernelFileSystem().names(following: candidate.path)) ?? []
            where InstanceDirectory.isOne(name) {
                let directory = candidate.path.appending(name.bytes)
                guard let lock = try? InstanceDirectory.lock(directory) else { continue }
                withExtendedLifetime(lock) { if mayRemove(directory, rescue) { try? Self.remove(directory) } }
            }
        }
    }

    private func mayRemove(_ directory: PathBytes, _ rescue: (JobID, PathBytes) -> Bool) -> Bool {
        let system = KernelFileSystem()
        guard let owner = InstanceDirectory.journal(of: directory).flatMap({ system.resolve($0) }) else { return true }
        let left = ((try? system.names(following: directory)) ?? []).compactMap { name -> (JobID, PathBytes)? in
            let words = name.bytes.split(separator: UInt8(ascii: "-"))
            let scratch = directory.appending(name.bytes)
            guard words.count == 2, !KeptFiles.regularFiles(in: scratch).isEmpty else { return nil }
            return (JobID(String(decoding: words[1], as: UTF8.self)), scratch)
        }
        guard !left.isEmpty, owner == journal.flatMap({ system.resolve($0) }) else { return left.isEmpty }
        return left.filter { !rescue($0.0, $0.1) }.isEmpty
    }

    /// The directory of this process, nil before it is created.
    ///
    /// When it has been removed, another one replaces it.
    package var instance: PathBytes? { state.withLock { $0.current?.path } }

    /// The path of a directory such as an attempt would get.
    package var example: PathBytes { (instance ?? base).appending("1") }

    /// Removes a scratch directory, or a directory with scratch directories.
    ///
    /// Links are removed, not followed. A mounted file system stays, and with it the directory.
    ///
    /// - Throws: The reason why it stays; all that could be removed of it is gone.
    package static func remove(_ directory: PathBytes) throws(ScratchFailure) {
        let (error, mount) = DirectoryRemoval.removeOwn(directory)
        if let mount { throw ScratchFailure(mounted: mount, in: directory) }
        if error != 0 { throw ScratchFailure(error, "remove", directory) }
    }
}

/// The error for a scratch directory that could not be created or removed.
package struct ScratchFailure: Error {
    package var message: String
    package var help = "set TMPDIR to a directory that only the user of Alight can change"

    init(_ error: Int32, _ verb: String, _ directory: PathBytes) {
        message = "cannot \(verb) the scratch directory '\(directory)': \(SystemError(errno: error))"
    }

    /// Creates the error for directories none of which can be used.
    init(_ reasons: [String]) {
        message = "no scratch directory can be created: \(reasons.joined(separator: "; "))"
    }

    /// Creates the error for a directory in which, or at which, a file system is mounted.
    init(mounted location: PathBytes, in directory: PathBytes) {
        message =
            "the scratch directory '\(directory)' is left in place, because something is mounted at '\(location)'; "
            + "unmount it: the directory is removed when Alight stops or starts again"
    }
}
