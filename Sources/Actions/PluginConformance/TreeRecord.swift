import ActionAPI
import System

/// The contents of some directories: names, types, modes and file contents, but no times.
struct TreeRecord: Equatable {
    struct Entry: Equatable {
        var type: FileType
        var mode: UInt16
        var digest: [UInt8]
    }

    private(set) var entries: [PathBytes: Entry] = [:]

    /// - Parameters:
    ///   - directories: The directories to record, with everything below.
    ///   - ignored: Directories that are left out.
    init(_ directories: [PathBytes], without ignored: [PathBytes]) {
        var rest = directories
        while let path = rest.popLast() {
            if ignored.contains(path) { continue }
            guard case .present(let snapshot) = KernelFileSystem().stat(path) else { continue }
            var entry = Entry(type: snapshot.type, mode: UInt16(truncatingIfNeeded: snapshot.mode), digest: [])
            switch snapshot.type {
            case .directory: rest += ((try? KernelFileSystem().names(in: path)) ?? []).map { path.appending($0.bytes) }
            case .file:
                if case .digest(let digest) = ContentDigest.sha256(
                    of: path, below: path.parent, within: WorkLimit(StopSignal(), timeout: .seconds(600)))
                {
                    entry.digest = digest
                }
            case .symlink, .other: break
            }
            entries[path] = entry
        }
    }

    /// The directories in the record.
    var directories: [PathBytes] { entries.filter { $0.value.type == .directory }.keys.sorted() }

    /// Returns the paths that are missing in one of the records or differ, each with a verb.
    func differences(to later: TreeRecord) -> [(path: PathBytes, verb: Verb)] {
        Set(entries.keys).union(later.entries.keys).sorted().compactMap { path in
            switch (entries[path], later.entries[path]) {
            case (nil, .some): (path, .made)
            case (.some, nil): (path, .removed)
            case (let before?, let after?) where before != after: (path, .changed)
            default: nil
            }
        }
    }

    /// Returns whether a library created the path: what Python leaves next to a module, and the files from which ORC,
    /// used by libvips and GStreamer, maps its code.
    static func isCache(_ path: PathBytes) -> Bool {
        path.lastComponent.starts(with: "orcexec.".utf8)
            || path.andParents.contains { $0.lastComponent.elementsEqual("__pycache__".utf8) }
    }

    enum Verb: String {
        case made, removed, changed
    }
}
