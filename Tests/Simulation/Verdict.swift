import FileEvents
import Journaling
import Rules
import Settling

extension SimulatedRun {
    /// Judges a run that has come to rest.
    ///
    /// - Returns: What is wrong; nil if the actions know all files as they are, and the ledger too.
    func verdict() -> String? {
        let counts = journal.counts
        guard counts.open == 0 else { return "jobs at rest: \(counts.pending) pending, \(counts.running) running" }
        if rules[0].steps == [.take, .note], record.hasLostStep { return "a file was taken, and is not noted" }
        for index in rules.indices {
            if let fault = verdict(of: index) { return rules.count == 1 ? fault : "\(rules[index].name): \(fault)" }
        }
        return nil
    }

    /// The files that a rule is for.
    func files(of rule: Rule) -> [PathBytes: Snapshot] {
        world.files(below: world.base).filter { path, snapshot in
            rule.types.contains(snapshot.type) && rule.root(taking: path) != nil
        }
    }

    private func verdict(of index: Int) -> String? {
        let rule = loaded[index]
        // What is below a directory is not compared with what its action knows.
        guard !rules[index].isTree else { return nil }
        let mirror = record.mirrors[index]
        let present = files(of: rule)
        for (path, snapshot) in present.sorted(by: { $0.key < $1.key }) {
            let name = world.name(of: path)
            guard let known = journal.snapshot(view: rule.name, path: path) else {
                return "\(name) is not in the ledger"
            }
            guard known.hasSameContent(as: snapshot) else { return "\(name) is not in the ledger as it is" }
            guard !mirror.isForgiven, !mirror.untracked.contains(path), rules[index].wants(snapshot) else { continue }
            if rules[index].steps.contains(.take) {
                // Without other events a move is not seen, nor one by which a file comes.
                if rule.events.contains(.attributes) { return "\(name) was not taken" }
                continue
            }
            guard rule.events.isSuperset(of: [.created, .modified]) else { continue }
            let content = mirror.contents[path]
            if content != world.content(path) {
                return "\(name): the mirror has \(content.map(String.init) ?? "nothing"), "
                    + "the disk \(world.content(path).map(String.init) ?? "nothing")"
            }
            if rule.events.contains(.attributes), let mode = mirror.modes[path], mode != snapshot.mode {
                return "\(name): the mirror has another mode than the disk"
            }
        }
        var ghosts: [PathBytes] = []
        journal.visit(view: rule.name, inside: world.base) { path, _ in if present[path] == nil { ghosts.append(path) }
        }
        // What a mount hides, or has taken along, is out of sight, and stays known.
        ghosts.removeAll { path in world.mountedOnce.contains { path.isInside($0) } }
        if let ghost = ghosts.min() { return "\(world.name(of: ghost)) is in the ledger, and is gone" }
        guard rule.events.contains(.deleted), !mirror.isForgiven else { return nil }
        let unknown = mirror.contents.keys.filter { path in
            present[path] == nil && !mirror.untracked.contains(path)
                && !world.mountedOnce.contains { path.isInside($0) }
        }
        return unknown.min().map { "\(world.name(of: $0)) is in the mirror, and is gone" }
    }
}
