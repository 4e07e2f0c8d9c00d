import FileEvents
import Settling

/// Finds out which paths lead through a symbolic link.
///
/// A folder may have given way to a link before what happened in it is looked at.
/// The kernel follows the link then, and shows a file that has another path.
final class LinkSearch {
    /// The last folder that was found to be free of links, and the root from which it is.
    private var plain: (folder: PathBytes, root: PathBytes)?

    /// Forgets what was found: a folder may be a link by now.
    ///
    /// What follows the exchange of a folder for a link is told after it, so
    /// within one turn the answers may be old.
    func forget() { plain = nil }

    /// Whether a folder between the root and the path is a symbolic link; the root itself may be one.
    func isBehindLink(_ path: PathBytes, root: PathBytes) -> Bool {
        let parent = path.parent
        guard parent != root else { return false }
        if let plain, plain.folder == parent, plain.root == root { return false }
        var folder = parent
        while folder != root, folder.isInside(root) {
            if case .present(let snapshot) = DiskProbe.look(at: folder), snapshot.type == .symlink { return true }
            folder = folder.parent
        }
        plain = (parent, root)
        return false
    }
}
