package import FileEvents
import Settling
package import System

/// The ledger: the rows of a store, overlaid with those that have changed since the last commit.
package struct Ledger: ~Copyable {
    package let store: any LedgerStore
    /// The changed rows; an empty one deletes the stored row.
    package private(set) var changes: [RuleID: [PathBytes: LedgerRow]] = [:]
    /// The paths of changed rows by their files; some may have other rows by now.
    private var paths: [RuleID: FileIndex] = [:]

    package init(_ store: any LedgerStore) { self.store = store }

    /// Returns the row of a path; an empty one if there is none.
    package func row(of rule: RuleID, at path: PathBytes) -> LedgerRow {
        changes[rule]?[path] ?? store.row(of: rule, at: path) ?? LedgerRow()
    }

    package mutating func set(_ row: LedgerRow, of rule: RuleID, at path: PathBytes) {
        changes[rule, default: [:]][path] = row
        guard let identity = row.handled?.identity else { return }
        paths[rule, default: FileIndex()].insert(path, identity.withoutBirth)
    }

    /// Returns the paths at which the rule has handled the file, sorted.
    package func paths(of rule: RuleID, handling identity: FileIdentity) -> [PathBytes] {
        var found = store.paths(of: rule, handling: identity, limit: .max).filter { changes[rule]?[$0] == nil }
        for path in paths[rule]?.paths(of: identity.withoutBirth) ?? [] {
            if let handled = changes[rule]?[path]?.handled, identity.includes(handled.identity) { found.append(path) }
        }
        return found.sorted()
    }

    /// Whether the rule has handled the file at any path.
    package func handles(_ identity: FileIdentity, _ rule: RuleID) -> Bool {
        let changed = paths[rule]?.any(of: identity.withoutBirth) { path in
            changes[rule]?[path]?.handled.map { identity.includes($0.identity) } ?? false
        }
        if changed != nil { return true }
        guard let stored = store.paths(of: rule, handling: identity, limit: 1).first else { return false }
        guard let changes = changes[rule], changes[stored] != nil else { return true }
        // At most the changed rows are no longer as stored.
        let others = store.paths(of: rule, handling: identity, limit: changes.count + 1)
        return others.contains { changes[$0] == nil }
    }

    /// Calls the closure for each row of a directory and everything below it that is not empty, in no particular
    /// order.
    package func visit(_ rule: RuleID, inside directory: PathBytes, _ body: (PathBytes, LedgerRow) -> Void) {
        var last: PathBytes?
        while true {
            let page = store.rows(of: rule, below: directory, after: last)
            guard let end = page.last?.0 else { break }
            for (path, row) in page where changes[rule]?[path] == nil { body(path, row) }
            last = end
        }
        for (path, row) in changes[rule] ?? [:] where path != directory && path.isInside(directory) && !row.isEmpty {
            body(path, row)
        }
        let row = row(of: rule, at: directory)
        if !row.isEmpty { body(directory, row) }
    }

    /// Discards the changes, once they are committed.
    package mutating func markCommitted() {
        changes.removeAll(keepingCapacity: true)
        paths.removeAll(keepingCapacity: true)
    }
}

extension Snapshot {
    /// Whether a followed file has text that was not read yet.
    func hasMoreText(_ later: Snapshot) -> Bool { delivered.map { $0 < later.size } ?? false }

    /// Whether both are the same file with the same content, as far as size and times show, and attributes.
    ///
    /// The entries of a directory are its content only if it is handled as one unit, and has a digest.
    func isSameState(as other: Snapshot) -> Bool {
        guard mode == other.mode, uid == other.uid, gid == other.gid else { return false }
        guard type == .directory else { return hasSameContent(as: other) && links == other.links }
        if digest == nil, other.digest == nil { return identity == other.identity && type == other.type }
        guard hasSameContent(as: other) else { return false }
        guard let digest, let others = other.digest else { return true }
        return TreeFingerprint.content(digest) == TreeFingerprint.content(others)
    }
}
