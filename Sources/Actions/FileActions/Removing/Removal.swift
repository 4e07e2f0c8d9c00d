import CAlightLinux
import FileEvents
import Glibc
import System

/// Takes a name away if it is still the file's that it was.
///
/// Even between a look and a removal somebody could put a new file there. So the
/// name is taken away first, looked at then, and given back to what is another one.
enum Removal {
    /// What becomes of what has the name.
    enum Ending: Equatable {
        case removed
        /// Somebody else took it away.
        case gone
        /// Another file or another content stood there; it stands there again.
        case changed
        /// What was to stay went with it, so both names are one: by another mount of the same folder, or on a file
        /// system that doesn't tell names apart by their case. It stands there again.
        case isTwin
    }

    /// What has to stand when a name has been taken away, because it is why that may go.
    struct Twin {
        var folder: OpenFolder
        var name: PathBytes

        /// Whether it can still be opened; a look alone could be answered from what is remembered of a file system.
        var stands: Bool {
            switch folder.open(name, CAL_OPEN_READING) {
            case .success: true
            case .failure(let error): error.errno != ENOENT && error.errno != ESTALE
            }
        }
    }

    /// Removes a file that is known to stand elsewhere, or that is to go.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - folder: The folder that it is in.
    ///   - facts: What it was when it was copied.
    ///   - twin: What has to stand without it; nil when it is to go in any case.
    ///   - remove: Removes what has the given name; 0, or the errno.
    /// - Returns: What became of it.
    /// - Throws: What failed; the name is there again then.
    static func remove(
        _ name: PathBytes, in folder: OpenFolder, if facts: Snapshot, besides twin: Twin? = nil,
        remove: ((PathBytes) -> Int32)? = nil
    ) throws(FileFault) -> Ending {
        let remove = remove ?? { folder.unlink($0) }
        // One that leaves no room for more would not get its whole name back: it is looked at where it is.
        guard name.bytes.count <= TemporaryName.longestName else {
            return try removeInPlace(name, in: folder, if: facts, twin, remove)
        }
        let taken = TemporaryName.taken(name)
        // The lock keeps a cleaner from what is taken away: a folder can be locked, too.
        let locked = try? folder.open(name, CAL_OPEN_READING).get()
        if let locked { TemporaryName.lock(locked.descriptor) }
        switch folder.rename(name, to: folder, taken, CAL_RENAME_NEW) {
        case 0: break
        case ENOENT: return .gone
        case let error: throw FileFault(error, "cannot remove '\(folder.path(of: name))'")
        }
        guard let there = try folder.look(at: taken) else { return .gone }
        // The rename has changed nothing but the time of the change of the attributes.
        let isSame = there.type == .directory ? there.identity == facts.identity : there.hasSameContent(as: facts)
        if isSame, let twin, !twin.stands {
            try giveBack(taken, name, in: folder)
            return .isTwin
        }
        if isSame {
            let error = remove(taken)
            if error == 0 || error == ENOENT { return .removed }
            try giveBack(taken, name, in: folder)
            throw FileFault(error, "cannot remove '\(folder.path(of: name))'")
        }
        try giveBack(taken, name, in: folder)
        return .changed
    }

    private static func removeInPlace(
        _ name: PathBytes, in folder: OpenFolder, if facts: Snapshot, _ twin: Twin?, _ remove: (PathBytes) -> Int32
    ) throws(FileFault) -> Ending {
        guard let there = try folder.look(at: name) else { return .gone }
        let isSame = there.type == .directory ? there.identity == facts.identity : there.hasSameContent(as: facts)
        guard isSame else { return .changed }
        if let twin {
            // A name that is short enough shows whether the other one goes with this one.
            let short = TemporaryName.taken("long")
            guard folder.rename(name, to: folder, short, CAL_RENAME_NEW) == 0 else { return .gone }
            let stands = twin.stands
            try giveBack(short, name, in: folder)
            guard stands else { return .isTwin }
        }
        let error = remove(name)
        guard error == 0 || error == ENOENT else { throw FileFault(error, "cannot remove '\(folder.path(of: name))'") }
        return .removed
    }

    /// Gives a taken name back, or one beside it if there is yet another file.
    static func giveBack(_ taken: PathBytes, _ name: PathBytes, in folder: OpenFolder) throws(FileFault) {
        try giveBack(taken, name, from: folder, to: folder)
    }

    /// The same for what has come into another folder.
    static func giveBack(
        _ taken: PathBytes, _ name: PathBytes, from: OpenFolder, to folder: OpenFolder
    ) throws(FileFault) {
        for number in 0..<Destination.mostNumbers {
            switch from.rename(taken, to: folder, Destination.numbered(name, number), CAL_RENAME_NEW) {
            case 0, ENOENT: return
            case EEXIST: continue
            case let error:
                throw FileFault(error, "cannot give '\(from.path(of: taken))' its name '\(name)' back")
            }
        }
    }
}
