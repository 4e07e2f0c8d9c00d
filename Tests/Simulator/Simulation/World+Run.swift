import FileEvents
import System

extension World {
    private static let origin = ContinuousClock.now

    /// Creates the directories of a run.
    func prepare(hasBirth: Bool, foldsCase: Bool) {
        for directory in ["x/", "y/", "o/"] { apply(.mkdir(PathBytes(directory))) }
        if foldsCase { foldCase(in: "") }
        if !hasBirth { dropBirthTimes(in: "") }
    }

    /// The disk and the clocks of a program that runs in the world.
    var host: Host {
        var clock = Clock()
        clock.now = { Self.origin + self.elapsed }
        clock.time = { self.time }
        clock.fileTime = { self.time.advanced(by: .milliseconds(-2)) }
        return Host(fileSystem: self, clock: clock, random: { 0.5 })
    }

    /// Closes all files that are open for writing, and makes all directories readable.
    func releaseAll() {
        for (path, _) in files(below: base).sorted(by: { $0.key < $1.key }) {
            while isBeingWritten(path) { apply(.close(name(of: path))) }
        }
        for directory in ["x/", "y/", "z/", "o/"] { apply(.show(PathBytes(directory))) }
    }
}

/// The files with several names that were changed, each with the name used.
struct ChangedNames {
    private var changes: [(file: FileIdentity, path: PathBytes)] = []

    func contains(_ file: FileIdentity) -> Bool { changes.contains { $0.file == file } }

    /// Records that another process changes files.
    mutating func record(_ paths: [PathBytes], in world: World) {
        for path in paths {
            if let file = world.snapshot(path), file.links > 1 { changes.append((file.identity, path)) }
        }
    }

    /// Returns the hints with which the program notices the changes through names that have been removed.
    func hints(in world: World) -> [Hint] {
        let gone = Set(changes.filter { world.snapshot($0.path)?.identity != $0.file }.map(\.file))
        return world.files(below: world.base).filter { gone.contains($0.value.identity) }.keys.sorted().map {
            Hint(path: $0, signs: .attributes)
        }
    }
}
