import FileEvents
import Globbing
import Reconciling
import Settling
import Simulation
import System
import Watching

/// One rule's ledger beside a simulated disk, driven by a script.
///
/// It is the only file of these tests that calls the reconciler.
///
/// A script is a list of words, separated by commas. All paths are below the base directory of the world:
///
/// | | |
/// | --- | --- |
/// | `create a`, `write a`, `rename a b` … | another process changes files, see `Operation`; `!` before it: its hint is lost |
/// | `read` | the hints of the kernel arrive |
/// | `settle` | they do, and all paths settle |
/// | `hint a` | a hint arrives without a change |
/// | `take` | the due paths are leased; with a path, only that one |
/// | `lease` | all paths settle, then the same |
/// | `wait` | a minute passes |
/// | `refusing`, `accepting` | from now on `where` refuses all files, or accepts them |
/// | `step a`, `interrupt a` | a step of the action succeeds; its end is unknown |
/// | `output a` | the action says that it has written the file |
/// | `succeed a`, `retry a`, `give-up a`, `refuse a`, `gone a`, `overtake a` | the attempt ends |
/// | `take-back a`, `hold a`, `put-back a` | its lease is undone: the file is gone, it has to wait, or is the next again |
/// | `undo a`, `apply a`, `try-again a` | requests of the user; the last one for a job that was given up |
///
/// Words about a job need no path if there is only one.
struct LedgerScene: ~Copyable {
    /// The rule.
    struct Rule: Sendable {
        var mask = EventMask.differences
        /// Whether its roots are polled.
        var isPolled = false
        /// Whether its action is a program that may change the file.
        var isProgram = false
        /// Whether its action may remove the file.
        var removesInput = false
        var whileBusy = WhileBusy.coalesce
    }

    private static let rule = RuleID(1)
    private static let origin = ContinuousClock.now

    private let world: World
    private let clock: Clock
    private let store = MemoryStore()
    private let queue = HintQueue {}
    private let watcher: SimulatedWatcher
    private let settings: Rule
    private let condition: Condition
    private var reconciler: Reconciler
    /// The jobs that were given up, by path.
    private var givenUp: [PathBytes: Offer] = [:]
    /// The received and reported events that no one has taken.
    private var history: [String] = []

    /// Whether `where` refuses all files.
    private final class Condition { var refuses = false }

    init(_ rule: Rule) {
        let world = World()
        let condition = Condition()
        (self.world, self.condition, settings) = (world, condition, rule)
        var clock = Clock()
        clock.now = { Self.origin + world.elapsed }
        clock.time = { world.time }
        clock.fileTime = { world.time.advanced(by: .milliseconds(-2)) }
        self.clock = clock
        for directory in ["x/", "y/"] { world.apply(.mkdir(PathBytes(directory))) }
        guard let glob = try? Glob(world.base.appending("**").bytes) else { preconditionFailure("no glob") }
        var view = View(
            id: Self.rule, filter: PathFilter(globs: [glob]), types: [.file], mask: rule.mask,
            settle: SettlePolicy(quiet: .milliseconds(100)), initialScan: .ignore)
        (view.isPolled, view.mayChangeInput, view.whileBusy) = (rule.isPolled, rule.isProgram, rule.whileBusy)
        reconciler = Reconciler(
            views: [view], ledger: store, isPatient: true, on: Host(fileSystem: world, clock: clock),
            admits: { _, _ in !condition.refuses }, mayRefuse: { _ in true })
        let scope = WatchScope(
            roots: [WatchRoot(path: world.base, backend: rule.isPolled ? .poll : .auto)], reaches: { _ in true },
            takes: { _ in true })
        watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
        while watcher.list() {}
        receive()
    }

    // MARK: The ledger

    /// Sets rows, as in `a certain, b failed`: the rule has handled the files as they are now.
    ///
    /// Missing files are created, except for `a lost`: an uncertain row of a path whose file was never handled.
    mutating func give(_ rows: String) {
        for row in Self.words(of: rows) {
            let path = PathBytes(row[0])
            if row[1] != "lost" { world.apply(.create(path)) }
            store.set([Self.rule: [absolute(path): Self.row(row[1], world.snapshot(absolute(path)))]])
        }
        watcher.drainAll()
        if settings.isPolled { poll() }
        _ = queue.take()
    }

    private static func row(_ word: String, _ handled: Snapshot?) -> LedgerRow {
        switch word {
        case "certain": LedgerRow(handled)
        case "uncertain": LedgerRow(handled, .uncertain)
        case "lost": LedgerRow(nil, .uncertain)
        case "failed": LedgerRow(handled, .failed)
        case "refused": LedgerRow(handled, .refused)
        case "withheld": LedgerRow(handled, isSuppressed: true)
        default: preconditionFailure("no row: '\(word)'")
        }
    }

    /// The rows, as in `a certain, b uncertain`; `old` if the file is no longer as it was handled.
    var rows: String {
        var rows: [PathBytes: LedgerRow] = [:]
        reconciler.shared.ledger.visit(Self.rule, inside: world.base) { rows[$0] = $1 }
        return rows.sorted { $0.key < $1.key }.map { path, row in
            var words = [name(path), row.isSuppressed ? "withheld" : "\(row.trust)"]
            let now = world.snapshot(path)
            if row.handled == nil {
                words[1] = "lost"
            } else if now.map({ row.handled?.isUnchanged($0) != true }) ?? true {
                words.append("old")
            }
            return words.joined(separator: " ")
        }.joined(separator: ", ")
    }

    /// Takes what was received and reported since the last call.
    mutating func takeHistory() -> String {
        defer { history = [] }
        return history.joined(separator: ", ")
    }

    // MARK: Scripts

    mutating func run(_ script: String) {
        for words in Self.words(of: script) { perform(words) }
    }

    private mutating func perform(_ words: [String]) {
        let path: PathBytes? = words.count > 1 ? PathBytes(words[1]) : nil
        switch words[0] {
        case "read": receive()
        case "settle": settle()
        case "hint": queue.add([Hint(path: absolute(path), signs: .attributes)])
        case "take": take(only: path)
        case "lease":
            settle()
            take(only: path)
        case "wait": world.advance(by: .seconds(60))
        case "refusing": condition.refuses = true
        case "accepting": condition.refuses = false
        case "undo": undo(path)
        case "apply": apply(path)
        case "try-again":
            if let offer = givenUp.removeValue(forKey: absolute(path)) { change { $0.retry(offer, at: $1) } }
        case "output":
            guard let offer = runningOffer(nil) else { return history.append("nothing to output") }
            let output = absolute(path)
            change { view, _ in view.recordOwnWrite(output, of: offer.number) }
        default:
            if !end(words[0], path) {
                let text = words.joined(separator: " ")
                guard let operation = Operation(String(text.drop { $0 == "!" })),
                    world.apply(operation, isHintLost: text.hasPrefix("!"))
                else { return history.append("not possible: \(text)") }
            }
        }
        commit()
    }

    /// Ends an attempt, or a step of it.
    ///
    /// - Returns: False for another word.
    private mutating func end(_ word: String, _ path: PathBytes?) -> Bool {
        let termination: Reconciler.Termination?
        switch word {
        case "succeed": termination = .succeeded
        case "retry": termination = .retry(at: clock.now() + .seconds(1))
        case "give-up": termination = .gaveUp
        case "refuse": termination = .refused
        case "gone": termination = .gone
        case "overtake": termination = .overtaken
        case "step", "interrupt", "take-back", "hold", "put-back": termination = nil
        default: return false
        }
        // An outcome is recorded after a read of the kernel's queue.
        if termination != nil { receive() }
        guard let offer = runningOffer(path) else {
            history.append("nothing to \(word)")
            return true
        }
        if termination == .gaveUp { givenUp[offer.path] = offer }
        let isGone = world.snapshot(offer.path) == nil
        change { view, now in
            switch (word, termination) {
            case (_, let termination?): view.finish(offer.number, termination, at: now)
            case ("step", _): view.finishStep(offer.number, removedInput: isGone)
            case ("interrupt", _): view.update(offer.number) { $0.isInterrupted = true }
            case ("take-back", _): view.withdraw(offer.number, at: now)
            case ("put-back", _): view.putBack(offer.number, at: now)
            default: view.postpone(offer.number, for: Reconciler.Gate("test"), until: now + .seconds(1))
            }
        }
        return true
    }

    /// Lets all paths settle and leases the due ones, until nothing is due.
    mutating func rest() {
        for _ in 0..<4 {
            world.advance(by: .seconds(2))
            settle()
            take(only: nil)
        }
    }

    // MARK: The reconciler

    private func runningOffer(_ path: PathBytes?) -> Offer? {
        reconciler.views[0].sortedOffers.first { $0.isRunning && (path == nil || $0.path == absolute(path)) }
    }

    private mutating func change(_ body: (ViewReconciler, ContinuousClock.Instant) -> Void) {
        body(reconciler.views[0], clock.now())
    }

    private mutating func receive() {
        watcher.drainAll()
        while watcher.list() {}
        reconciler.receive(queue.take(), at: clock.now())
    }

    /// Compares all polled directories.
    private func poll() {
        watcher.poll()
        while watcher.list() {}
    }

    private mutating func settle() {
        if settings.isPolled { poll() }
        for _ in 0..<12 {
            receive()
            reconciler.settle(at: clock.now())
            watcher.hintAgain(reconciler.shared.takeDoubted())
            guard !reconciler.isSettled else { continue }
            let pause = reconciler.nextDeadline.map { $0 - clock.now() } ?? .zero
            world.advance(by: min(max(pause, .zero), .seconds(1)) + .milliseconds(1))
        }
    }

    /// Leases due paths; as in the engine, the kernel's queue is read before.
    private mutating func take(only path: PathBytes?) {
        receive()
        var others: [Reconciler.Candidate] = []
        while let candidate = reconciler.views[0].nextCandidate(at: clock.now()) {
            if path == nil || candidate.event.path == absolute(path) {
                record(candidate)
            } else {
                others.append(candidate)
            }
        }
        for candidate in others { reconciler.views[0].hold(candidate, for: Reconciler.Gate("others")) }
        reconciler.wake(Reconciler.Gate("others"))
        commit()
    }

    private mutating func record(_ candidate: Reconciler.Candidate) {
        recordEffects()
        let offer = reconciler.views[0].lease(candidate)
        let removesInput = settings.removesInput
        reconciler.views[0].update(offer.number) { $0.mayRemoveInput = removesInput }
        let from = offer.event.from.map { "\(name($0))>" } ?? ""
        var text = "\(offer.event.kind) \(from)\(name(offer.path))"
        if offer.hasRun { text += " again" }
        if offer.isRepeat || offer.isInterrupted || !offer.hasRun && offer.followsUnknownState {
            text += " interrupted"
        }
        history.append(text)
    }

    private mutating func undo(_ path: PathBytes?) {
        guard let path else { return }
        let world = self.world
        let isUndone = reconciler.views[0].undo(absolute(path)) { world.apply(.write(path)) }
        if !isUndone { history.append("no undo of \(path)") }
    }

    private mutating func apply(_ path: PathBytes?) {
        let path = absolute(path)
        guard let snapshot = world.snapshot(path) else { return }
        let event = FileEvent(
            kind: .modified, path: path, root: world.base, snapshot: snapshot, origin: .manual, time: world.time)
        change { view, _ in view.recordApplied(event) }
    }

    private mutating func recordEffects() {
        for effect in reconciler.shared.takeEffects() {
            switch effect {
            case .gone(_, let path, _): history.append("skipped \(name(path))")
            case .superseded(_, let offer): history.append("superseded \(name(offer.path))")
            default: break
            }
        }
    }

    private mutating func commit() {
        recordEffects()
        store.set(reconciler.shared.ledger.changes)
        reconciler.markCommitted()
        reconciler.closeDirectories()
    }

    // MARK: Names

    private func absolute(_ path: PathBytes?) -> PathBytes {
        guard let path else { preconditionFailure("a path is missing") }
        return world.base.appending(path.bytes)
    }

    private func name(_ path: PathBytes) -> String {
        path.relative(to: world.base).map { String(decoding: $0, as: UTF8.self) } ?? path.description
    }

    private static func words(of script: String) -> [[String]] {
        script.split(separator: ",").map { $0.split(separator: " ").map(String.init) }
    }
}
