import ActionAPI
package import Rules
import System

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
