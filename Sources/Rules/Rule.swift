package import FileEvents
package import Globbing
package import Settling

/// What to do for which files: one entry of a rules file, complete and checked.
package struct Rule: Sendable {
    /// Unique in the ruleset.
    package var name: String
    /// Where the entry begins.
    package var place: SourcePlace
    /// The absolute folder of the rules file, against which relative paths are meant.
    package var folder: PathBytes
    package var summary: String?
    /// Absolute patterns, of which one has to match.
    package var globs: [Glob]
    /// Patterns relative to the root; an excluded folder excludes everything below it.
    package var exclude: GlobSet
    /// The built-in ignores, empty with `ignore_defaults: false`; likewise relative to the root.
    package var ignores: GlobSet
    package var types: Set<FileType>
    /// Folder levels below the root that are entered; nil for all.
    package var depth: Int?
    package var events: EventMask
    package var settle: SettlePolicy
    /// Run in order; the list stops at the first that does not succeed.
    package var actions: [Action]
    package var timeout: Duration
    /// Most jobs of this rule at once.
    package var concurrency: Int
    package var retry: RetryPolicy

    package init(
        name: String, place: SourcePlace, folder: PathBytes = "/", summary: String? = nil, globs: [Glob],
        exclude: GlobSet = GlobSet([]),
        ignores: GlobSet = GlobSet([]), types: Set<FileType> = [.file], depth: Int? = nil,
        events: EventMask = [.created, .modified], settle: SettlePolicy = SettlePolicy(), actions: [Action],
        timeout: Duration = .seconds(600), concurrency: Int = 1, retry: RetryPolicy = RetryPolicy()
    ) {
        self.name = name
        self.place = place
        self.folder = folder
        self.summary = summary
        self.globs = globs
        self.exclude = exclude
        self.ignores = ignores
        self.types = types
        self.depth = depth
        self.events = events
        self.settle = settle
        self.actions = actions
        self.timeout = timeout
        self.concurrency = concurrency
        self.retry = retry
    }

    /// The root of the first glob that takes the path by name; nil when the rule leaves it.
    ///
    /// Only the name is looked at. Types and events come with the disk.
    package func root(taking path: PathBytes) -> PathBytes? {
        for glob in globs where glob.matches(path.bytes) {
            let root = PathBytes(glob.root)
            guard let relative = path.relative(to: root) else { continue }
            if let depth, relative.count(where: { $0 == .slash }) > depth { continue }
            if exclude.covers(relative) || ignores.covers(relative) { continue }
            return root
        }
        return nil
    }

    /// Whether a path strictly below this folder could be taken.
    package func reaches(below folder: PathBytes) -> Bool {
        for glob in globs where glob.canMatch(below: folder.bytes) {
            let root = PathBytes(glob.root)
            guard let relative = folder.relative(to: root) else { return true }
            if relative.isEmpty { return true }
            if let depth, relative.count(where: { $0 == .slash }) >= depth { continue }
            if exclude.covers(relative) || ignores.covers(relative) { continue }
            return true
        }
        return false
    }
}
