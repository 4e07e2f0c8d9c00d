import ActionAPI
import Glibc
import Rules
import System

/// The files to which a rule is applied by hand.
struct AppliedFiles {
    /// The files in the order in which they were named, sorted by name within directories, without duplicates.
    private(set) var paths: [PathBytes] = []
    /// The errors about the named paths.
    private(set) var problems: [(message: String, help: String)] = []
    /// The files that the rule's conditions exclude, with the reason.
    private(set) var left: [(path: PathBytes, reason: String)] = []
    private var seen: Set<PathBytes> = []
    private let rule: Rule

    /// Collects the files.
    ///
    /// - Parameters:
    ///   - named: Absolute, normalized paths.
    ///   - rule: The rule.
    ///   - isForced: Whether the rule need not match paths that are named themselves.
    init(_ named: [PathBytes], rule: Rule, isForced: Bool) {
        self.rule = rule
        for path in named {
            let known = PathExplanation.alias(of: path, below: rule.roots) ?? path
            switch DiskProbe.look(at: path) {
            case .absent: problems.append(("'\(Display.path(path))' does not exist", "check the spelling of the path"))
            case .unreadable(let errno):
                problems.append(
                    (
                        "cannot access '\(Display.path(path))': \(String(cString: strerror(errno)))",
                        "run it as the user that Alight runs as, or as root"
                    ))
            case .present(let snapshot):
                let isTaken = rule.root(taking: known) != nil && rule.types.contains(snapshot.type)
                if isTaken, isForced {
                    add(known)
                } else if isTaken {
                    addIfAdmitted(known, snapshot)
                } else if snapshot.type == .directory, !isForced || !rule.types.contains(.directory) {
                    addAll(below: known)
                } else if isForced {
                    add(known)
                } else {
                    problems.append(
                        (
                            "the rule '\(Display.text(rule.name))' does not match '\(Display.path(path))'",
                            "'alight explain' shows why; --force runs it anyway"
                        ))
                }
            }
        }
    }

    /// Adds a file unless the rule's conditions exclude it.
    ///
    /// May read the file's content, which can take long.
    private mutating func addIfAdmitted(_ path: PathBytes, _ snapshot: Snapshot) {
        guard let condition = rule.condition, let root = rule.root(taking: path) else { return add(path) }
        switch condition.answerNow(path, root: root, snapshot: snapshot) {
        case .fails(let reason), .untold(let reason): if seen.insert(path).inserted { left.append((path, reason)) }
        case .holds, .needsContent: add(path)
        }
    }

    private mutating func add(_ path: PathBytes) { if seen.insert(path).inserted { paths.append(path) } }

    /// Adds the files below a directory that the rule matches, without following symbolic links.
    private mutating func addAll(below folder: PathBytes) {
        let files = WatchedPaths(roots: rule.roots)
        var rest = [folder]
        while let folder = rest.popLast() {
            var folders: [PathBytes] = []
            for name in names(in: folder, files).sorted() {
                let path = folder.appending(name.bytes)
                guard case .present(let snapshot) = files.look(at: path) else { continue }
                if rule.types.contains(snapshot.type), rule.root(taking: path) != nil {
                    addIfAdmitted(path, snapshot)
                }
                // A directory above the rule's root may contain it.
                if snapshot.type == .directory,
                    rule.reaches(below: path) || rule.roots.contains(where: { $0.isInside(path) })
                {
                    folders.append(path)
                }
            }
            rest += folders.reversed()
        }
    }

    private mutating func names(in folder: PathBytes, _ files: WatchedPaths) -> [PathBytes] {
        do throws(SystemError) {
            return try files.names(in: folder)
        } catch {
            problems.append(
                (
                    "cannot list '\(Display.path(folder))': \(String(cString: strerror(error.errno)))",
                    "run it as the user that Alight runs as, or as root"
                ))
            return []
        }
    }
}
