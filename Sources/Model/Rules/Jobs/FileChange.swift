import FileEvents
package import System

/// One thing that a handler did to a name in the file system, with what is needed to take it back.
///
/// A handler lists its changes in the order in which it made them; they are taken
/// back from the last to the first. So what a conflict asks for is a change of
/// its own before the one that it makes room for: with `rename_existing` a
/// `moved` of the old file, with `trash` a `trashed` one, with `overwrite` an
/// `overwritten`.
package struct FileChange: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// What was at `from` is at `to`: by a rename, or between file systems by a copy after which the source went.
        case moved(from: PathBytes, to: PathBytes)
        /// There is a new name: of a copy, or of a link.
        ///
        /// `source` is what was copied or linked. A copy is taken back only while
        /// its source still has the same content, since it may be the last one.
        case made(PathBytes, source: PathBytes)
        /// A folder was made, to have something put into it; it goes again if it is empty.
        case madeFolder(PathBytes)
        /// There is a new directory with what an archive, `source`, held.
        ///
        /// Whatever is in it has not been changed as long as its status was changed last, by the file system's clock, at
        /// `sealed` or before. It is taken back only while the archive still has the same content.
        case unpacked(PathBytes, source: PathBytes, sealed: Timestamp)
        /// What was at `from` lies in a trash at `to`, and the file `info` says so.
        case trashed(from: PathBytes, to: PathBytes, info: PathBytes)
        /// What stood at this path before is gone for good, since it was replaced.
        case overwritten(PathBytes)
        /// The file at this path was removed, since `twin` has the same content.
        case removed(PathBytes, twin: PathBytes)
    }

    package var kind: Kind
    /// What the change left at ``path``.
    package var left: FileMark

    /// - Parameters:
    ///   - kind: What was done.
    ///   - left: What stands at ``path`` after it, looked at without following links: by the descriptor of the file that
    ///     was written or moved where there is one, and otherwise at once.
    package init(_ kind: Kind, left: FileMark) {
        self.kind = kind
        self.left = left
    }

    /// All names that taking it back could touch.
    package var paths: [PathBytes] {
        switch kind {
        case .moved(let from, let to): [to, from]
        case .trashed(let from, let to, let info): [to, info, from]
        case .removed(let path, _): [path]
        case .made, .unpacked, .madeFolder, .overwritten: [path]
        }
    }

    /// Where the thing is that the change left: the new name, the twin of what was removed.
    package var path: PathBytes {
        switch kind {
        case .moved(_, let to), .trashed(_, let to, _): to
        case .made(let path, _), .unpacked(let path, _, _), .madeFolder(let path), .overwritten(let path): path
        case .removed(_, let twin): twin
        }
    }
}

extension FileChange {
    /// The kinds, as the journal and all JSON name them.
    package enum Word: String, Sendable, Hashable {
        case moved, made, unpacked, trashed, overwritten, removed
        case madeFolder = "made_folder"

        /// The names of the paths that belong to it.
        package var pathNames: [String] {
            switch self {
            case .moved: ["from", "to"]
            case .made, .unpacked: ["path", "source"]
            case .madeFolder, .overwritten: ["path"]
            case .trashed: ["from", "to", "info"]
            case .removed: ["path", "twin"]
            }
        }
    }
}

extension FileChange.Kind {
    package var word: FileChange.Word { parts.word }

    /// In the order of ``FileChange/Word/pathNames``.
    package var paths: [PathBytes] { parts.paths }

    /// Of what was unpacked; else the beginning of 1970.
    package var sealed: Timestamp {
        guard case .unpacked(_, _, let sealed) = self else { return Snapshot.unseen.changed }
        return sealed
    }

    private var parts: (word: FileChange.Word, paths: [PathBytes]) {
        switch self {
        case .moved(let from, let to): (.moved, [from, to])
        case .made(let path, let source): (.made, [path, source])
        case .madeFolder(let path): (.madeFolder, [path])
        case .unpacked(let path, let source, _): (.unpacked, [path, source])
        case .trashed(let from, let to, let info): (.trashed, [from, to, info])
        case .overwritten(let path): (.overwritten, [path])
        case .removed(let path, let twin): (.removed, [path, twin])
        }
    }

    /// - Parameters:
    ///   - word: Which kind.
    ///   - paths: One for each of its names.
    ///   - sealed: Of what was unpacked.
    package init(_ word: FileChange.Word, _ paths: [PathBytes], sealed: Timestamp) {
        switch word {
        case .moved: self = .moved(from: paths[0], to: paths[1])
        case .made: self = .made(paths[0], source: paths[1])
        case .madeFolder: self = .madeFolder(paths[0])
        case .unpacked: self = .unpacked(paths[0], source: paths[1], sealed: sealed)
        case .trashed: self = .trashed(from: paths[0], to: paths[1], info: paths[2])
        case .overwritten: self = .overwritten(paths[0])
        case .removed: self = .removed(paths[0], twin: paths[1])
        }
    }
}

/// By what a file is known again, and whether it is still as it was.
package struct FileMark: Sendable, Hashable {
    package var identity: FileIdentity
    package var type: FileType
    package var size: UInt64
    package var modified: Timestamp

    package init(identity: FileIdentity, type: FileType, size: UInt64, modified: Timestamp) {
        self.identity = identity
        self.type = type
        self.size = size
        self.modified = modified
    }

    package init(_ snapshot: Snapshot) {
        self.init(
            identity: snapshot.identity, type: snapshot.type, size: snapshot.size, modified: snapshot.modified)
    }

    /// Whether this is what was left there: the same file, with the same content as far as size and time can tell.
    ///
    /// A folder is the same whatever has been put into it since.
    package func fits(_ snapshot: Snapshot) -> Bool {
        guard identity == snapshot.identity, type == snapshot.type else { return false }
        return type == .directory || (size == snapshot.size && modified == snapshot.modified)
    }
}
