import FileEvents
import Glibc
import Globbing
import Reconciling
public import System
import Watching

/// The configuration derived from the roots and the options of an observer.
struct ObservationPlan: Sendable {
    /// The rule under which the observer's paths are stored in its ledger.
    static let rule = RuleID(0)

    let options: ObservationOptions
    let filter: PathFilter
    let roots: [PathBytes]

    /// Parses the patterns.
    ///
    /// - Throws: An error for the first invalid pattern.
    init(roots: [PathBytes], options: ObservationOptions) throws(ObservationError) {
        guard !roots.isEmpty, !options.globs.isEmpty else { throw .noRoots }
        var globs: [Glob] = []
        for pattern in options.globs {
            let relative = try Self.glob(pattern, hidden: options.hidden)
            for root in roots {
                let directory = PathBytes.current.resolving(root.bytes).normalized.bytes
                let prefix = Glob.escaped(directory) + (directory == [.slash] ? [] : [.slash])
                globs.append(try Self.glob(PathBytes(prefix + relative.pattern), hidden: options.hidden, isWhole: true))
            }
        }
        var excludes: [Glob] = []
        for pattern in options.excludes { excludes.append(try Self.glob(pattern, hidden: true)) }
        filter = PathFilter(
            globs: globs, exclude: GlobSet(excludes), depth: options.depth.map { max(0, $0) }, isTree: options.isTree)
        self.roots = filter.roots.map { PathBytes($0) }
        self.options = options
    }

    fileprivate static func glob(
        _ pattern: PathBytes, hidden: Bool, isWhole: Bool = false
    ) throws(ObservationError) -> Glob {
        if !isWhole, pattern.bytes.first == .slash {
            throw .invalidGlob(
                pattern, offset: 0, reason: "glob '\(pattern)' is absolute", help: "write it relative to the root")
        }
        do throws(GlobError) {
            return try Glob(pattern.bytes, options: Glob.Options(matchesHidden: hidden))
        } catch {
            throw .invalidGlob(pattern, offset: error.offset, reason: error.message, help: error.help)
        }
    }

    /// Checks the roots, and creates missing ones if the options ask for it.
    ///
    /// - Throws: When a root can't be used.
    func prepareRoots() throws(ObservationError) {
        for root in roots {
            var status = stat()
            if root.withCString({ stat($0, &status) }) == 0 {
                guard status.st_mode & S_IFMT == S_IFDIR else { throw .notDirectory(root) }
                continue
            }
            let error = errno
            guard error == ENOENT || error == ENOTDIR else { throw .refused(root, errno: error) }
            switch options.missing {
            case .wait: continue
            case .fail: throw .missingRoot(root)
            case .create:
                let error = KernelFileSystem().makeDirectory(root)
                guard error == 0 else { throw .refused(root, errno: error) }
            }
        }
    }

    /// The root by which a path is observed; nil when it is not.
    func root(of path: PathBytes) -> PathBytes? { filter.root(matching: path.bytes).map { PathBytes($0) } }

    /// The scope for the watcher.
    var scope: WatchScope {
        let interval = max(options.pollInterval, .milliseconds(10))
        var scope = WatchScope(
            roots: roots.map { WatchRoot(path: $0, backend: options.backend, interval: interval) },
            isRaw: !options.events.isDisjoint(with: .raw),
            hintsFoundDirectories: options.types.contains(.directory),
            reaches: { [filter] in filter.reaches(below: $0.bytes) },
            takes: { [filter] in filter.root(matching: $0.bytes) != nil || !filter.trees(holding: $0.bytes).isEmpty },
            canMatch: { [filter] in filter.canMatch(in: $0.bytes) })
        scope.rest = options.rest
        if options.resuming == nil { scope.readsExtended = view.readsExtended }
        return scope
    }

    /// The view of the observer: its files and events.
    var view: View {
        var view = View(
            id: Self.rule, filter: filter, types: options.types, mask: options.events,
            settle: SettlePolicy(
                quiet: options.settle.map { max($0, .zero) },
                stable: options.stable.map {
                    StableRounds(every: max($0.every, .milliseconds(1)), rounds: max($0.rounds, 1))
                },
                writers: options.waitsForWriters ? .wait : .ignore, locks: options.waitsForLocks ? .wait : .ignore,
                partial: .ignore, maximumWait: options.maximumWait.map { max($0, .milliseconds(1)) },
                isTree: options.isTree),
            initialScan: options.resuming != nil ? .compare(since: nil) : options.existing ? .report : .ignore)
        view.receivesAtOnce = true
        return view
    }
}

extension ObservationOptions {
    /// Validates a pattern, relative or absolute.
    ///
    /// An observer does the same with all of its patterns. This function is for a pattern
    /// that a user wrote and that becomes part of another one, so that errors quote the
    /// original.
    ///
    /// - Parameter pattern: The pattern as the user wrote it.
    /// - Throws: ``ObservationError/invalidGlob(_:offset:reason:help:)`` when it is invalid.
    public static func check(_ pattern: PathBytes) throws(ObservationError) {
        _ = try ObservationPlan.glob(pattern, hidden: false, isWhole: true)
    }
}

extension PathBytes {
    /// The pattern that matches exactly this path, for ``ObservationOptions/globs`` and `excludes`.
    public var escapedForGlob: PathBytes { PathBytes(Glob.escaped(bytes)) }
}
