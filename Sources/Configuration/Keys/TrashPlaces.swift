import Globbing
import JSON
import Rules
import System

/// The directories of the desktop's trash below the roots of a rule.
enum TrashPlaces {
    /// Returns the globs of the trash, relative to the roots.
    static func globs(below roots: [PathBytes], _ environment: RuleLoader.Environment) -> [Glob] {
        var patterns: Set<[UInt8]> = [Array("**/.Trash-[0-9]*".utf8), Array("**/.Trash/[0-9]*".utf8)]
        let data = environment.environment("XDG_DATA_HOME").flatMap { $0.hasPrefix("/") ? PathBytes($0) : nil }
        let home = (data ?? environment.home.map { PathBytes($0).appending(".local/share") })?.appending("Trash")
        for trash in home.map(forms) ?? [] {
            for root in roots.flatMap(forms) {
                if root.isInside(trash) {
                    patterns.insert(Array("**".utf8))
                } else if let relative = trash.relative(to: root), !relative.isEmpty {
                    patterns.insert(Glob.escaped(Array(relative)))
                }
            }
        }
        return patterns.sorted { $0.lexicographicallyPrecedes($1) }
            .compactMap { try? Glob($0, options: Glob.Options(matchesHidden: true)) }
    }

    /// Returns the path as written, and with links resolved.
    private static func forms(of path: PathBytes) -> [PathBytes] { [path] + [resolved(path)].compactMap(\.self) }

    /// Returns the path with the links in its deepest existing directory resolved.
    private static func resolved(_ path: PathBytes) -> PathBytes? {
        for directory in path.andParents {
            if let real = KernelFileSystem().resolve(directory), let rest = path.relative(to: directory) {
                return rest.isEmpty ? real : real.appending(rest)
            }
        }
        return nil
    }
}

extension DecodedRule {
    /// Whether an action may move files to the trash.
    private var usesTrash: Bool {
        (steps + onFailure).contains { step in
            guard case .use(let reference, let with) = step.action.work, reference.location == nil else { return false }
            if reference.name == "trash" { return true }
            guard case .object(let members) = with, let conflict = members["on_conflict"] else { return false }
            return conflict.constant.map { $0 == "trash" } ?? true
        }
    }

    /// Excludes the trash, in which the action would otherwise find what it has put there.
    mutating func excludeTrash(_ environment: RuleLoader.Environment) {
        guard usesTrash else { return }
        let globs = TrashPlaces.globs(below: rule.roots, environment)
        rule.filter.outputs = GlobSet(rule.filter.outputs.globs + globs)
    }
}
