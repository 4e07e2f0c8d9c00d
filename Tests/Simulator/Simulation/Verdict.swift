import FileEvents
import Monitoring
import Reconciling
import Rules
import Storage
import System

extension SimulatedRun {
    /// Checks a run that has settled.
    ///
    /// - Returns: The error; nil if the actions and the ledger know the current state of all files.
    func verdict() -> String? {
        let queue = program?.queue ?? EngineStatus.Queue()
        guard queue.count == waitingForSets else {
            return "jobs at rest: \(queue.pending) pending, \(queue.running) running"
        }
        if rules[0].steps == [.take, .note], record.mirrors[0].texts.hasBirth, record.hasLostStep {
            return "a file was taken, and is not noted"
        }
        for index in rules.indices {
            if let failure = verdict(of: index) {
                return rules.count == 1 ? failure : "\(rules[index].name): \(failure)"
            }
        }
        return nil
    }

    /// The number of jobs that wait for a missing file of their group.
    private var waitingForSets: Int {
        rules.indices.filter { !rules[$0].group.isEmpty }.reduce(0) { sum, index in
            let present = files(of: loaded[index])
            let wanted = wanted(present, index)
            return sum
                + present.keys.count { path in
                    !(wanted.contains(path) && rules[index].isComplete(path, among: wanted))
                        && program?.hasPending(rules[index].name, path) == true
                }
                + gone(present, index).count
        }
    }

    /// Returns the missing paths that wait for the move of their file, which waits for its group.
    private func gone(_ present: [PathBytes: Snapshot], _ index: Int) -> Set<PathBytes> {
        guard !rules[index].group.isEmpty else { return [] }
        var gone: Set<PathBytes> = []
        program?.visit(rules[index].name, inside: world.base) { path, row in
            if row.handled != nil, present[path] == nil, program?.hasPending(rules[index].name, path) == true {
                gone.insert(path)
            }
        }
        return gone
    }

    private func treeVerdict(of index: Int) -> String? {
        // A mount below a directory is reported as an event of the root.
        guard world.mountedOnce.isEmpty, loaded[index].events.isSuperset(of: .differences) else { return nil }
        let mirror = record.mirrors[index]
        guard !mirror.isForgiven else { return nil }
        let present = world.entries(of: world.base).map { world.base.appending($0.bytes) }.filter {
            world.snapshot($0)?.type == .directory && loaded[index].root(matching: $0) != nil
        }
        for path in Set(present).union(mirror.trees.keys).sorted() where !mirror.untracked.contains(path) {
            if (present.contains(path) ? world.tree(path) : [:]) != mirror.trees[path] ?? [:] {
                return "\(world.name(of: path)): the mirror has another tree than the disk"
            }
        }
        return nil
    }

    /// Returns the files that a rule receives: its `where` accepts them, and no earlier rule stops them.
    private func wanted(_ present: [PathBytes: Snapshot], _ index: Int) -> Set<PathBytes> {
        Set(
            present.filter { path, snapshot in
                let isTaken =
                    index > 0 && rules[0].stops && loaded[0].root(matching: path) != nil && rules[0].wants(snapshot)
                return rules[index].wants(snapshot) && !isTaken
            }.keys)
    }

    /// Returns the files that a rule matches.
    func files(of rule: Rule) -> [PathBytes: Snapshot] {
        world.files(below: world.base).filter { path, snapshot in
            rule.types.contains(snapshot.type) && rule.root(matching: path) != nil
        }
    }

    private func verdict(of index: Int) -> String? {
        let rule = loaded[index]
        if rules[index].isTree { return treeVerdict(of: index) }
        let mirror = record.mirrors[index]
        let present = files(of: rule)
        let wanted = wanted(present, index)
        for (path, snapshot) in present.sorted(by: { $0.key < $1.key }) {
            let names = present.values.count { $0.identity == snapshot.identity }
            if let failure = verdict(of: index, path, snapshot, names: names, wanted: wanted) { return failure }
        }
        var ghosts: [PathBytes] = []
        var uncertain: [PathBytes] = []
        program?.visit(rule.name, inside: world.base) { path, row in
            if row.handled != nil, present[path] == nil { ghosts.append(path) }
            if row.trust == .uncertain { uncertain.append(path) }
        }
        uncertain.removeAll { path in
            isOutOfSight(path) || program?.hasPending(rule.name, path) == true
        }
        if let path = uncertain.min() { return "\(world.name(of: path)) is uncertain at rest" }
        // Files that a mount hides or an unmount has removed are not visible and remain known.
        ghosts.removeAll { path in world.mountedOnce.contains { path.isInside($0) } }
        ghosts.removeAll(where: gone(present, index).contains)
        if let ghost = ghosts.min() { return "\(world.name(of: ghost)) is in the ledger, and is gone" }
        guard rule.events.contains(.deleted), !mirror.isForgiven else { return nil }
        let unknown = mirror.contents.keys.filter { path in
            present[path] == nil && !gone(present, index).contains(path)
                && !(index > 0 && rules[0].stops && loaded[0].root(matching: path) != nil)
                && !mirror.untracked.contains(path)
                && !world.mountedOnce.contains { path.isInside($0) }
        }
        return unknown.min().map { "\(world.name(of: $0)) is in the mirror, and is gone" }
    }

    /// Checks one file that a rule matches.
    private func verdict(
        of index: Int, _ path: PathBytes, _ snapshot: Snapshot, names: Int, wanted: Set<PathBytes>
    ) -> String? {
        let (rule, mirror) = (loaded[index], record.mirrors[index])
        let name = world.name(of: path)
        // A file of an incomplete group waits.
        if rules[index].wants(snapshot), !rules[index].isComplete(path, among: wanted) { return nil }
        guard let known = program?.handled(rule.name, path) else {
            return "\(name) is not in the ledger"
        }
        // No hint reports a write through a name that the rule does not match.
        if snapshot.links > 1, names < snapshot.links { return nil }
        guard known.hasSameContent(as: snapshot) else { return "\(name) is not in the ledger as it is" }
        guard !mirror.isForgiven, !mirror.untracked.contains(path), rules[index].wants(snapshot) else { return nil }
        if rules[index].steps.contains(.take) {
            // Without other events, a move is not noticed, nor one that brings a file.
            if rule.events.contains(.attributes) { return "\(name) was not taken" }
            return nil
        }
        guard rule.events.isSuperset(of: [.created, .modified]) else { return nil }
        // Files that an earlier rule stops, and files of incomplete groups, are skipped.
        if index > 0, rules[0].stops, loaded[0].root(matching: path) != nil, rules[0].wants(snapshot) { return nil }
        guard rules[index].isComplete(path, among: wanted) else { return nil }
        if rules[index].follows {
            let text = mirror.texts.texts[snapshot.identity] ?? []
            let isDoubtful = !mirror.texts.hasBirth || mirror.texts.lost.contains(snapshot.identity)
            if !isDoubtful, text != world.text(path) ?? [] {
                return "\(name): the mirror has another text than the disk"
            }
            return nil
        }
        let content = mirror.contents[path]
        if content != world.content(path) {
            return "\(name): the mirror has \(content.map(String.init) ?? "nothing"), "
                + "the disk \(world.content(path).map(String.init) ?? "nothing")"
        }
        if rule.events.contains(.attributes), let mode = mirror.modes[path], mode != snapshot.mode {
            return "\(name): the mirror has another mode than the disk"
        }
        return nil
    }
}
