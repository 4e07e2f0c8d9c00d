package import Rules
package import Storage
package import System

extension Ruleset {
    /// The rules as stored in the journal.
    package var records: [RuleRecord] {
        rules.map { RuleRecord(name: $0.name, formerly: $0.formerly, selection: $0.selection) }
    }
}

extension MountRecord {
    /// Returns the mount points through which files of the roots are visible, or may be.
    package static func present(for roots: [PathBytes], in fileSystem: any FileSystem) -> [MountRecord] {
        let points = fileSystem.mountPoints
        var wanted: Set<PathBytes> = []
        for root in roots {
            // A root may be a link, or may not exist yet.
            var real = root
            while fileSystem.resolve(real) == nil, real.parent != real { real = real.parent }
            guard let real = fileSystem.resolve(real) else { continue }
            wanted.formUnion(points.filter { $0.isInside(real) })
            if let holder = points.filter({ real.isInside($0) }).max(by: { $0.bytes.count < $1.bytes.count }) {
                wanted.insert(holder)
            }
        }
        return wanted.sorted().compactMap { point in
            guard case .present(let snapshot) = fileSystem.stat(point) else { return nil }
            return MountRecord(point: point, identity: snapshot.identity)
        }
    }

    /// Whether the recorded file system is not currently mounted there.
    package func isAway(in fileSystem: any FileSystem) -> Bool {
        // The root file system is always mounted, even if it differs in each container.
        guard point != "/" else { return false }
        guard fileSystem.mountPoints.contains(point), case .present(let snapshot) = fileSystem.stat(point) else {
            return true
        }
        // The device number may differ after a boot.
        return snapshot.identity.inode != identity.inode || snapshot.identity.birth != identity.birth
    }
}
