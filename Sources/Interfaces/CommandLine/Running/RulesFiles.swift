import Configuration
import FileObserving
import System

/// The rules files and the symbolic links that lead to them, as they are at one time.
///
/// All paths are without links before their last name. So the target of a link may be replaced at any place on the way
/// to a file, as Kubernetes, GNU Stow and NixOS do.
struct RulesFiles: Equatable {
    /// The existing files and links.
    private var states: [PathBytes: Snapshot] = [:]
    /// The globs below `/` of everything that can change the files; missing paths are included.
    private(set) var globs: Set<PathBytes> = []

    /// - Parameters:
    ///   - locations: Rules files, and directories of them.
    ///   - program: The environment for loading rules.
    init(at locations: [PathBytes], _ program: CommandContext) {
        for location in locations { add(program.path(location), isEntry: false) }
    }

    private mutating func add(_ path: PathBytes, isEntry: Bool) {
        var walk = PathWalk(path)
        while let (location, found) = walk.next() {
            if let snapshot = found.snapshot, snapshot.type == .symlink { add(location, snapshot) }
        }
        let snapshot = KernelFileSystem().stat(walk.end).snapshot
        let isDirectory = snapshot?.type == .directory
        // A missing path may become either.
        if !isDirectory { add(walk.end, snapshot) }
        guard !isEntry, isDirectory || snapshot == nil else { return }
        for suffix in RuleLoader.suffixes { insert(walk.end.escapedForGlob.appending("*" + suffix)) }
        for name in (try? KernelFileSystem().names(in: walk.end)) ?? [] where RuleLoader.isRulesFile(name.bytes) {
            add(walk.end.appending(name.bytes), isEntry: true)
        }
    }

    private mutating func add(_ path: PathBytes, _ snapshot: Snapshot?) {
        states[path] = snapshot
        insert(path.escapedForGlob)
    }

    private mutating func insert(_ glob: PathBytes) {
        if let relative = glob.relative(to: "/"), !relative.isEmpty { globs.insert(PathBytes(relative)) }
    }

    /// The number of watches that the globs need: one for each directory on the way.
    var watchCount: Int {
        var directories: Set<PathBytes> = []
        for glob in globs {
            var directory = PathBytes("/").appending(glob.bytes).parent
            while directories.insert(directory).inserted { directory = directory.parent }
        }
        return directories.count
    }
}
