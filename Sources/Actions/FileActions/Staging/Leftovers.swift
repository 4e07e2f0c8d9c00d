import CAlightLinux
import Glibc
package import Rules
import System

/// The cleanup of files that a killed process has left: those with temporary names on which no process holds a lock.
///
/// An unfinished file is removed. A file that was renamed away to be removed gets its name back; whether it may be
/// removed is then determined again.
enum Leftovers {
    /// The minimum age of a link, which cannot be locked and has its temporary name only for microseconds.
    private static let linkAge: Duration = .seconds(10)

    /// Cleans a directory.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - now: The time of the system clock.
    static func clear(_ directory: DirectoryHandle, now: Timestamp) {
        guard let names = try? directory.names() else { return }
        for name in names {
            guard let kind = TemporaryName.kind(of: name), let there = try? directory.metadata(of: name)
            else { continue }
            switch there.type {
            case .symlink where now.since(there.changed) > linkAge: settle(name, kind, directory)
            case .file, .directory:
                guard let file = try? directory.open(name, CAL_OPEN_READING),
                    flock(file.descriptor, LOCK_EX | LOCK_NB) == 0
                else { continue }
                settle(name, kind, directory)
            default: continue
            }
        }
    }

    private static func settle(_ name: PathBytes, _ kind: TemporaryName.Kind, _ directory: DirectoryHandle) {
        switch kind {
        case .taken(let former): try? Removal.restore(name, former, from: directory, to: directory)
        case .staged:
            guard directory.unlink(name) == EISDIR else { return }
            _ = DirectoryRemoval.remove(name, in: directory) { false }
        }
    }
}

/// A search at startup for temporary files that a killed process has left.
///
/// An interrupted job cleans the directory that it works in when it runs again. This search is for jobs that are no
/// longer recorded. It covers the directories that rules name as destinations, those from which rules remove files, and
/// a limited number of their subdirectories.
package struct LeftoverSearch: Sendable {
    /// The maximum number of directories to search.
    private static let mostDirectories = 4096

    private let directories: [PathBytes]

    package init(_ rules: [Rule]) {
        var found: [PathBytes] = []
        for rule in rules {
            for action in rule.actions + rule.onFailure {
                guard case .use(let handler, let with) = action.work, handler.location == nil else { continue }
                if action.traits.contains(.setsInputAside) { found += rule.roots }
                guard case .object(let members) = with, case .text(let to)? = members["to"],
                    let head = to.literalHead(in: rule.baseDirectory)
                else { continue }
                found.append(head)
            }
        }
        var seen: Set<PathBytes> = []
        directories = found.filter { seen.insert($0).inserted }
    }

    /// Starts the search on a thread of its own, and does not wait for it.
    package func start() {
        guard !directories.isEmpty else { return }
        WorkerThread(name: "alight-clear", body: { clear() })?.detach()
    }

    /// Searches in the calling thread; links below the directories are not followed.
    package func clear() {
        var open = directories.compactMap { try? DirectoryHandle(opening: $0) }
        var count = 0
        let now = DiskProbe.now()
        while count < Self.mostDirectories, let directory = open.popLast() {
            count += 1
            Leftovers.clear(directory, now: now)
            // Only a limited number of directories is open at the same time.
            guard open.count < Self.mostOpen, let names = try? directory.names() else { continue }
            for name in names where open.count < Self.mostOpen {
                guard let metadata = try? directory.metadata(of: name), metadata.type == .directory else { continue }
                if let inner = directory.openDirectory(name) { open.append(inner) }
            }
        }
    }

    private static let mostOpen = 64
}
