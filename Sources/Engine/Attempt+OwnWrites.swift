import FileEvents
import Glibc
import Globbing
import Handling
import PluginProtocol
import Reconciling
package import Rules
import Settling

// What an action leaves behind, so that it is not taken for somebody else's work.
extension Attempt {
    /// The names under which the rule would see an output: its own, and the one below the root that links lead to.
    private func names(of output: PathBytes) -> Set<PathBytes> {
        var names: Set<PathBytes> = [output]
        if let folder = host.fileSystem.resolve(output.parent) {
            for root in Set(rule.globs.map { PathBytes($0.root) }) {
                guard let realRoot = host.fileSystem.resolve(root), let relative = folder.relative(to: realRoot) else {
                    continue
                }
                let seen = relative.isEmpty ? root : root.appending(relative)
                names.insert(seen.appending(output.lastComponent))
            }
        }
        return names.filter { rule.root(taking: $0) != nil }
    }

    /// Notes what the action left behind, so that it does not come back to this rule as an event.
    ///
    /// Outputs are taken as they are now, those that are gone as well: a plugin
    /// that changes or removes its input names it among them. Any other removal
    /// of the input is reported, unless a built-in action has done it. Another
    /// change of the input while a program ran is either its own or somebody
    /// else's, and the second must not be lost. It comes back once; if the
    /// program then changes the file again, that is what it does, and the change
    /// is taken for its own. A job that will be tried again sees the changed file
    /// anyway.
    ///
    /// A rule that wants to be told of its own writes, or that follows the file,
    /// has only its outputs taken as known. So has one that queues every event, or
    /// whose attempt was ended for a newer one: what is there now may be what that
    /// one tells of. Where such events are dropped, it is known whoever wrote it.
    func noteOwnWrites(_ outcome: Outcome, _ part: inout Part, _ files: WatchedPaths) {
        let job = part.job
        for output in Set(job.steps.flatMap(\.outputs) + outcome.outputs).flatMap(names) {
            switch look(at: output, for: job.event, files) {
            case .present(let snapshot) where rule.types.contains(snapshot.type):
                part.ownWrites.append(LedgerEntry(view: rule.name, path: output, snapshot: snapshot))
            case .absent: part.ownWrites.append(LedgerEntry(view: rule.name, path: output, snapshot: nil))
            default: break
            }
        }
        let isDropping = rule.whileBusy == .drop
        let acted = rule.actions + (part.aftermath.isEmpty ? [] : rule.onFailure)
        let outcomes = Array(zip(rule.actions, job.steps)) + zip(rule.onFailure, part.aftermath)
        let done = outcomes.filter { $1.ending == .succeeded }.map(\.0)
        // A rule that is not told of removals has a new file of that name told as created, however soon it comes.
        let asksRemoval = !rule.events.isDisjoint(with: [.deleted, .moved])
        let hasRemoved = done.contains { asksRemoval ? $0.removesInput : $0.mayRemoveInput }
        guard rule.ownWrites == .ignore || isDropping, rule.tail == nil, job.event.kind.isOfPresentPath else { return }
        guard !(rule.whileBusy == .restart && outcome.isInterrupted) else { return }
        switch look(at: job.event.path, for: job.event, files) {
        case .absent where isDropping || hasRemoved:
            part.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: nil))
        case .present(let snapshot) where isDropping && !snapshot.isSameSight(as: job.event.snapshot):
            part.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: snapshot))
            part.job.event.snapshot = snapshot
        case .present(let snapshot)
        where acted.contains(where: \.isProgram) && !snapshot.isSameSight(as: job.event.snapshot):
            // While somebody has it open for writing the change is not finished, and comes by itself.
            guard snapshot.type != .file || files.writers(of: job.event.path) != .somebody else { break }
            let comesAgain = outcome.ending == .retry || outcome.ending == .notReady
            guard !job.isAlone else { break }
            let isSame = snapshot.hasSameContent(as: job.event.snapshot) && snapshot.hasSameTree(as: job.event.snapshot)
            if comesAgain || isSame || repeated.contains(job.id) {
                part.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: snapshot))
                part.job.event.snapshot = snapshot
            } else {
                part.change = snapshot
            }
        default: break
        }
    }

    /// What is at the path now, with all that the rule's view compares.
    ///
    /// The content of the event's own file is looked at again only if it can be another.
    private func look(at path: PathBytes, for event: FileEvent, _ files: WatchedPaths) -> DiskProbe.Sight {
        let readsExtended = !rule.events.isDisjoint(with: [.attributes, .xattr])
        let sight = files.look(at: path, reading: readsExtended ? .extended : [])
        guard case .present(var snapshot) = sight else { return sight }
        if rule.settle.isTree, snapshot.type == .directory,
            let place = try? files.place(of: path),
            case .resting(let facts) = files.fileSystem.tree(at: place, askingWriters: false)
        {
            snapshot.digest = facts.fingerprint
        }
        // A file that is followed from now on has nothing of its own text told.
        if rule.tail != nil { snapshot.delivered = snapshot.size }
        if rule.sameContent == .ignore, snapshot.type == .file {
            if path == event.path, snapshot.hasSameContent(as: event.snapshot) {
                snapshot.digest = event.snapshot.digest
            } else if case .digest(let digest) = ContentDigest.sha256(
                of: path, below: rule.root(taking: path) ?? event.root, within: limit)
            {
                snapshot.digest = digest
            }
        }
        return .present(snapshot)
    }
}

extension EventKind {
    /// Whether the ledger knows the path by an event of this kind, and that something is there.
    fileprivate var isOfPresentPath: Bool {
        switch self {
        case .created, .modified, .moved, .attributes: true
        default: false
        }
    }
}

extension Snapshot {
    /// Whether both are the same but for what only one of them has looked at.
    fileprivate func isSameSight(as other: Snapshot) -> Bool {
        var mine = self
        var other = other
        if mine.extended == nil || other.extended == nil { (mine.extended, other.extended) = (nil, nil) }
        if mine.digest == nil || other.digest == nil { (mine.digest, other.digest) = (nil, nil) }
        (mine.delivered, other.delivered) = (nil, nil)
        (mine.standing, other.standing) = (.unknown, .unknown)
        return mine == other
    }

    /// Whether what is below a folder is the same, as far as both have looked.
    fileprivate func hasSameTree(as other: Snapshot) -> Bool {
        guard type == .directory, let mine = digest, let theirs = other.digest else { return true }
        return mine == theirs
    }
}

extension Rule {
    /// Whether an attempt may take long, or run a program, and needs a slot therefore.
    package var takesSlot: Bool { ready?.command != nil || !(actions + onFailure).allSatisfy(\.isBrief) }
}

extension Action {
    /// Whether the file may be gone afterwards because of it.
    package var mayRemoveInput: Bool { isProgram || removesInput }

    /// Whether it is a built-in action after whose success the file is gone.
    package var removesInput: Bool { !isProgram && Self.removingHandlers.contains(name) }

    private static let removingHandlers: Set = ["delete", "move", "rename", "trash"]

    /// Whether it is done in a moment for a small file, and for several files like for one after the other.
    package var isBrief: Bool { !isProgram && Self.briefHandlers.contains(name) }

    private static let briefHandlers: Set = [
        "log", "copy", "index", "link", "move", "rename", "set-permissions", "tag", "touch", "trash",
    ]

    /// Whether a program outside Alight does the work.
    package var isProgram: Bool {
        switch work {
        case .use(let reference, _): reference.location != nil
        case .exec, .shell: true
        }
    }
}
