package import FileEvents
package import Globbing
package import Settling

/// What one rule, or one observer, wants to be told: which paths, what about them, and when.
package struct View: Sendable {
    /// Unique among the views of a reconciler; the ledger knows it by this name.
    package var name: String
    package var filter: PathFilter
    package var types: Set<FileType>
    package var mask: EventMask
    package var settle: SettlePolicy
    /// Whether what the first listing finds is told, instead of being known in silence.
    package var tellsExisting: Bool
    /// Most bytes of one delivery to a view that follows the growth of files; nil for all others.
    package var tailBytes: Int?

    package init(
        name: String, filter: PathFilter, types: Set<FileType> = [.file], mask: EventMask,
        settle: SettlePolicy = SettlePolicy(), tellsExisting: Bool = false, tailBytes: Int? = nil
    ) {
        self.name = name
        self.filter = filter
        self.types = types
        self.mask = mask
        self.settle = settle
        self.tellsExisting = tellsExisting
        self.tailBytes = tailBytes
    }

    /// Whether extended attributes have to be read, which costs a system call or two for each path.
    var readsExtended: Bool { !mask.isDisjoint(with: [.attributes, .xattr]) }

    var roots: [PathBytes] { filter.roots.map { PathBytes($0) } }
}
