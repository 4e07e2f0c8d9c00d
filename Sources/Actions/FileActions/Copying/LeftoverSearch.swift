import CAlightLinux
import FileEvents
import Glibc
package import Rules
import System

/// Looks for what a killed Alight has left, when another one starts.
///
/// A job that was cut off clears the folder that it works in when it runs again. This
/// is for jobs that nobody remembers: the folders that rules name as destinations, and
/// those from which they take files away, are looked through, with a bounded number of
/// those below them.
package struct LeftoverSearch: Sendable {
    /// Folders that are looked into at most.
    private static let mostFolders = 4096

    private let folders: [PathBytes]
    /// The handlers that take a file away from its name before it goes.
    private static let takers: Set<String> = ["move", "rename", "delete"]

    package init(_ rules: [Rule]) {
        var found: [PathBytes] = []
        for rule in rules {
            for action in rule.actions + rule.onFailure {
                guard case .use(let handler, let with) = action.work, handler.location == nil else { continue }
                if Self.takers.contains(handler.name) { found += rule.roots }
                guard case .object(let members) = with, case .text(let to)? = members["to"],
                    let head = to.literalHead(in: rule.folder)
                else { continue }
                found.append(head)
            }
        }
        var seen: Set<PathBytes> = []
        folders = found.filter { seen.insert($0).inserted }
    }

    /// Looks on a thread of its own, and doesn't wait for it.
    package func begin() {
        guard !folders.isEmpty else { return }
        WorkerThread(name: "alight-clear", body: { clear() })?.detach()
    }

    /// Looks at once; links below the folders are not followed.
    package func clear() {
        var open = folders.compactMap { try? OpenFolder.opened($0).get() }
        var count = 0
        let now = DiskProbe.now()
        while count < Self.mostFolders, let folder = open.popLast() {
            count += 1
            Leftovers.clear(folder, now: now)
            // Only as many are held open as can be looked into.
            guard open.count < Self.mostOpen, let names = try? folder.names() else { continue }
            for name in names where open.count < Self.mostOpen {
                guard let facts = try? folder.look(at: name), facts.type == .directory,
                    case .success(let file) = folder.open(name, CAL_OPEN_FOLDER)
                else { continue }
                open.append(OpenFolder(dup(file.descriptor), folder.path(of: name)))
            }
        }
    }

    private static let mostOpen = 64
}
