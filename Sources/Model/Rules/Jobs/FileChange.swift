package import System

/// One change that a handler made to a name in the file system, with the data to undo it.
///
/// A handler lists its changes in the order in which it made them, and they are undone in reverse order. So resolving a
/// conflict is a change of its own, before the change that it enables: `rename_existing` records a `moved` of the old
/// file, `trash` a `trashed`, `overwrite` an `overwritten`.
package struct FileChange: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// A move by a rename, or between file systems by a copy and the removal of the source.
        case moved(from: PathBytes, to: PathBytes)
        /// A new name: a copy or a link.
        ///
        /// `source` is the file that was copied or linked. A copy is removed only while its source still has the same
        /// content, because it may be the last copy.
        case made(PathBytes, source: PathBytes)
        /// A directory that was created as the parent of another file; it is removed if it is empty.
        case madeDirectory(PathBytes)
        /// A new directory with the contents of an archive, `source`.
        ///
        /// Its contents are unchanged as long as every status change time, by the file system's clock, is at most
        /// `sealed`. It is removed only while the archive still has the same content.
        case unpacked(PathBytes, source: PathBytes, sealed: Timestamp)
        /// A move from `from` to `to` in a trash, with its entry in the file `info`.
        case trashed(from: PathBytes, to: PathBytes, info: PathBytes)
        /// The previous file at this path was replaced and cannot be restored.
        case overwritten(PathBytes)
        /// The file at this path was removed because `twin` has the same content.
        case removed(PathBytes, twin: PathBytes)
    }

    package var kind: Kind
    /// The file that the change left at ``path``.
    package var left: FileMark

    /// - Parameters:
    ///   - kind: The change.
    ///   - left: The file at ``path`` after the change, read without following links: by the descriptor of the written
    ///     or moved file if there is one, and otherwise at once.
    package init(_ kind: Kind, left: FileMark) { (self.kind, self.left) = (kind, left) }

    /// All paths that undoing the change could modify.
    package var paths: [PathBytes] {
        let paths = kind.paths
        return [.moved, .trashed].contains(kind.word) ? Array(paths.dropFirst()) + [paths[0]] : [paths[0]]
    }

    /// The path of the file that the change left: the new name, or the twin of a removed file.
    package var path: PathBytes { if case .removed(_, let twin) = kind { twin } else { paths[0] } }
}

extension FileChange {
    /// The kinds, with their names in the journal and in all JSON.
    package enum Word: String, Sendable, Hashable {
        case moved, made, unpacked, trashed, overwritten, removed
        case madeDirectory = "made_directory"

        /// The names of its paths.
        package var pathNames: [String] {
            switch self {
            case .moved: ["from", "to"]
            case .made, .unpacked: ["path", "source"]
            case .madeDirectory, .overwritten: ["path"]
            case .trashed: ["from", "to", "info"]
            case .removed: ["path", "twin"]
            }
        }
    }
}

extension FileChange.Kind {
    package var word: FileChange.Word { parts.word }

    /// The paths, in the order of ``FileChange/Word/pathNames``.
    package var paths: [PathBytes] { parts.paths }

    /// The time of an unpacked archive; the start of 1970 for other kinds.
    package var sealed: Timestamp {
        if case .unpacked(_, _, let sealed) = self { sealed } else { Snapshot.unseen.changed }
    }

    private var parts: (word: FileChange.Word, paths: [PathBytes]) {
        switch self {
        case .moved(let from, let to): (.moved, [from, to])
        case .made(let path, let source): (.made, [path, source])
        case .madeDirectory(let path): (.madeDirectory, [path])
        case .unpacked(let path, let source, _): (.unpacked, [path, source])
        case .trashed(let from, let to, let info): (.trashed, [from, to, info])
        case .overwritten(let path): (.overwritten, [path])
        case .removed(let path, let twin): (.removed, [path, twin])
        }
    }

    /// - Parameters:
    ///   - word: The kind.
    ///   - paths: One path for each of the kind's names.
    ///   - sealed: The time of an unpacked archive.
    package init(_ word: FileChange.Word, _ paths: [PathBytes], sealed: Timestamp) {
        switch word {
        case .moved: self = .moved(from: paths[0], to: paths[1])
        case .made: self = .made(paths[0], source: paths[1])
        case .madeDirectory: self = .madeDirectory(paths[0])
        case .unpacked: self = .unpacked(paths[0], source: paths[1], sealed: sealed)
        case .trashed: self = .trashed(from: paths[0], to: paths[1], info: paths[2])
        case .overwritten: self = .overwritten(paths[0])
        case .removed: self = .removed(paths[0], twin: paths[1])
        }
    }
}

/// The values that identify a file and show whether it is unchanged.
package struct FileMark: Sendable, Hashable {
    package var identity: FileIdentity
    package var type: FileType
    package var size: UInt64
    package var modified: Timestamp

    package init(identity: FileIdentity, type: FileType, size: UInt64, modified: Timestamp) {
        (self.identity, self.type, self.size, self.modified) = (identity, type, size, modified)
    }

    package init(_ snapshot: Snapshot) {
        self.init(identity: snapshot.identity, type: snapshot.type, size: snapshot.size, modified: snapshot.modified)
    }

    /// Whether this is the file that was left: the same file, with the same content as far as size and time show.
    ///
    /// A directory is the same even if its contents have changed.
    package func fits(_ snapshot: Snapshot) -> Bool {
        guard identity == snapshot.identity, type == snapshot.type else { return false }
        return type == .directory || (size == snapshot.size && modified == snapshot.modified)
    }
}
