package import FileEvents
package import Globbing
package import Settling

/// What a view takes for news at its first listing.
package enum Beginning: Sendable, Hashable {
    /// Nothing: what is there is known from then on.
    case silent
    /// All that is there.
    case told
    /// What differs from what the ledger knows of an earlier run.
    ///
    /// With a time, a path that is unknown is news only if something has happened
    /// to it since: it was there before, and the view did not look at it then. What has happened
    /// in the same tick of the kernel's clock counts as since.
    case compared(since: Timestamp?)
    /// Nothing, whatever the ledger knows: what is there takes the place of that.
    ///
    /// With a time, what has happened up to then is news all the same: somebody
    /// looked, and did not come to tell it.
    case renewed(since: Timestamp?)
}

/// What one rule, or one observer, wants to be told: which paths, what about them, and when.
package struct View: Sendable {
    /// Unique among the views of a reconciler; the ledger knows it by this name.
    package var name: String
    package var filter: PathFilter
    package var types: Set<FileType>
    package var mask: EventMask
    package var settle: SettlePolicy
    package var beginning: Beginning
    /// Most bytes of one delivery to a view that follows the growth of files; nil for all others.
    package var tailBytes: Int?

    package init(
        name: String, filter: PathFilter, types: Set<FileType> = [.file], mask: EventMask,
        settle: SettlePolicy = SettlePolicy(), beginning: Beginning = .silent, tailBytes: Int? = nil
    ) {
        self.name = name
        self.filter = filter
        self.types = types
        self.mask = mask
        self.settle = settle
        self.beginning = beginning
        self.tailBytes = tailBytes
    }

    /// Whether extended attributes have to be read, which costs a system call or two for each path.
    var readsExtended: Bool { !mask.isDisjoint(with: [.attributes, .xattr]) }

    /// Whether what the first listing finds is worth more than being known in silence.
    var tellsExisting: Bool {
        switch beginning {
        case .told, .compared: true
        case .silent, .renewed: false
        }
    }

    /// Whether what became of a known path is to be known in silence.
    func renews(_ snapshot: Snapshot?) -> Bool {
        guard case .renewed(let since) = beginning else { return false }
        guard let since, let snapshot else { return true }
        return since < snapshot.changed
    }

    /// Whether the ledger may know something of an earlier run, with which the first listing has to be compared.
    var hasPast: Bool {
        switch beginning {
        case .compared, .renewed: true
        case .silent, .told: false
        }
    }

    /// Whether a path that the first listing finds, and that is unknown, is news.
    func tellsFound(_ snapshot: Snapshot) -> Bool {
        switch beginning {
        case .silent: false
        case .told: true
        case .renewed: !renews(snapshot)
        case .compared(let since): since.map { $0 <= snapshot.changed } ?? true
        }
    }

    var roots: [PathBytes] { filter.roots.map { PathBytes($0) } }
}
