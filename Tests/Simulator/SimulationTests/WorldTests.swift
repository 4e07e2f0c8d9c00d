import FileEvents
import Glibc
import Simulation
import System
import Testing
import TestKit
import Watching

/// Random operations, some of which are not possible.
struct Draw {
    var dice: SeededGenerator
    static let files = ["a", "b", "c", "x/a", "x/b", "y/a", "y/b", "x/z/a", "y/z/b"].map { PathBytes($0) }
    static let directories = ["x/", "y/", "x/z/", "y/z/", "z/"].map { PathBytes($0) }

    init(seed: UInt64) { dice = SeededGenerator(seed: seed) }

    private mutating func pick(_ paths: [PathBytes]) -> PathBytes {
        paths[Int.random(in: 0..<paths.count, using: &dice)]
    }

    mutating func operation() -> Simulation.Operation {
        let (one, two) = (pick(Self.files), pick(Self.files))
        let (directory, other) = (pick(Self.directories), pick(Self.directories))
        return switch Int.random(in: 0..<25, using: &dice) {
        case 0...3: .create(one)
        case 4: .write(one)
        case 5: .append(one)
        case 6: .replace(one)
        case 7, 8: .rename(one, two)
        case 9: .delete(one)
        case 10: .chmod(one)
        case 11: .touch(one)
        case 12, 13: .link(one, two)
        case 14: .swap(one, two)
        case 15: .swap(directory, other)
        case 16, 17: .directory(directory, other)
        case 18, 19: .mkdir(directory)
        case 20: Int.random(in: 0..<3, using: &dice) == 0 ? .rmdir(directory) : .mkdir(directory)
        case 21: .symlink(one, "a")
        case 22: .read(one)
        case 23: Bool.random(using: &dice) ? .open(one) : .close(one)
        default: .chmod(directory)
        }
    }
}

@Suite struct WorldTests {
    @Test(arguments: [
        "create a", "write a", "append a", "replace a", "rename a b", "delete a", "chmod a", "touch a", "link a b",
        "swap a b",
        "directory x/ y/", "open a", "close a", "symlink a target", "mkdir x/", "rmdir x/", "mount x/", "umount x/",
        "hide x/", "show x/", "read a",
    ])
    func `an operation is printed as it is parsed`(_ text: String) {
        #expect(Simulation.Operation(text)?.description == text)
    }

    @Test func `invalid notation is refused`() {
        for text in ["", "create", "rename a", "create a b", "make a", "create  a"] {
            #expect(Simulation.Operation(text) == nil, "\(text)")
        }
    }

    @Test func `the same seed gives the same world`() {
        func run() -> [String] {
            let world = World(seed: 3, delays: true)
            var draw = Draw(seed: 4)
            var results: [String] = []
            for _ in 0..<2000 {
                let operation = draw.operation()
                results.append("\(operation) \(world.apply(operation)) \(world.time)")
            }
            return results + world.files(below: "/w").sorted { $0.key < $1.key }.map { "\($0)" }
        }
        #expect(run() == run())
    }

    /// The metadata of one path, to be compared with that in the other world.
    struct Metadata: Equatable {
        var type: FileType
        var links: UInt32
        /// The first path of the same file.
        var same: PathBytes
        /// Whether it is the same file as before at the path, and what has changed.
        var isSameFile: Bool
        var isModified: Bool
        var isChanged: Bool
    }

    private func metadata(_ now: [PathBytes: Snapshot], _ was: [PathBytes: Snapshot]) -> [PathBytes: Metadata] {
        var first: [FileIdentity: PathBytes] = [:]
        for (path, snapshot) in now.sorted(by: { $0.key < $1.key }) where first[snapshot.identity] == nil {
            first[snapshot.identity] = path
        }
        let old = Dictionary(was.map { ($0.value.identity, $0.value) }) { one, _ in one }
        var metadata: [PathBytes: Metadata] = [:]
        for (path, snapshot) in now {
            let before = old[snapshot.identity]
            metadata[path] = Metadata(
                type: snapshot.type, links: snapshot.links, same: first[snapshot.identity] ?? path,
                isSameFile: was[path]?.identity == snapshot.identity,
                isModified: before.map { $0.modified != snapshot.modified } ?? true,
                isChanged: before.map { $0.changed != snapshot.changed } ?? true)
        }
        return metadata
    }

    private func tree(_ system: some FileSystem, _ base: PathBytes) -> [PathBytes: Snapshot] {
        var found: [PathBytes: Snapshot] = [:]
        var rest = [base]
        while let directory = rest.popLast() {
            for name in (try? system.names(in: DiskProbe.Location(directory))) ?? [] {
                let path = directory.appending(name.bytes)
                guard case .present(let snapshot) = system.stat(path) else { continue }
                found[PathBytes(path.relative(to: base) ?? [])] = snapshot
                if snapshot.type == .directory { rest.append(path) }
            }
        }
        return found
    }

    /// The clock of real files advances in ticks of some milliseconds, so the test lets these pass.
    @Test(arguments: 1...4) func `files change as in the kernel`(_ seed: UInt64) throws {
        withTempTree { temporary in
            let base = temporary.path("w")
            TestFile.makeDirectory(base)
            let world = World(seed: seed)
            var real = RealFiles(base: base)
            var draw = Draw(seed: seed)
            var (before, realBefore) = (tree(world, "/w"), tree(.kernel, base))
            var done = 0
            for _ in 0..<1200 {
                let operation = draw.operation()
                guard world.apply(operation) else { continue }
                usleep(5_000)
                guard real.apply(operation) else {
                    Issue.record("\(done) \(operation) can't be done, errno \(errno)")
                    return
                }
                done += 1
                let (now, realNow) = (tree(world, "/w"), tree(.kernel, base))
                let (simulated, kernels) = (metadata(now, before), metadata(realNow, realBefore))
                for path in Set(simulated.keys).union(kernels.keys).sorted() where simulated[path] != kernels[path] {
                    Issue.record(
                        "\(done) \(operation): \(path): \(simulated[path] as Any), real \(kernels[path] as Any)")
                }
                (before, realBefore) = (now, realNow)
            }
            #expect(done > 300)
            print("files: seed \(seed), \(done) operations compared")
        }
    }

    @Test func `file systems are mounted and unmounted`() throws {
        let world = World()
        world.apply(.mkdir("x/"))
        world.apply(.create("x/a"))
        let below = world.snapshot("/w/x/a")
        let queue = HintQueue(wake: {})
        let scope = WatchScope(roots: [WatchRoot(path: "/w")], reaches: { _ in true }, takes: { _ in true })
        let watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
        while watcher.list() {}
        #expect(queue.take().reports.last == .ready(directories: 2))
        #expect(world.apply(.mount("x/")) && !world.apply(.mount("x/")))
        #expect(world.snapshot("/w/x/a") == nil && world.apply(.create("x/a")))
        let (first, mount) = (world.snapshot("/w/x/a"), world.snapshot("/w/x/a")?.mount ?? 0)
        while watcher.hasWork { _ = (watcher.read(), watcher.list()) }
        #expect(queue.take().reports == [.mounted("/w/x")])
        #expect(world.isMounted(mount) && world.apply(.umount("x/")) && !world.isMounted(mount))
        #expect(world.snapshot("/w/x/a") == below && world.apply(.mount("x/")))
        #expect(world.snapshot("/w/x/a")?.identity == first?.identity && world.snapshot("/w/x/a")?.mount != mount)
    }

    @Test func `unreadable directories and links lead nowhere`() throws {
        let world = World()
        for text in ["mkdir x/", "create x/a", "symlink l x", "hide x/"] {
            #expect(Simulation.Operation(text).map { world.apply($0) } == true)
        }
        #expect(world.stat("/w/x/a") == .unreadable(errno: EACCES))
        #expect(throws: SystemError.self) { try world.names(in: DiskProbe.Location("/w/x")) }
        let paths = WatchedPaths(roots: ["/w"], in: world)
        #expect(paths.inspect(at: "/w/l/a") == .absent && paths.isBehindLink("/w/l/a", root: "/w"))
        world.apply(.show("x/"))
        #expect(world.resolve("/w/l/a") == "/w/x/a" && world.children(of: DiskProbe.Location("/w/x")) == 1)
        #expect(world.foldCase(in: "x") && world.stat("/w/x/A") == world.stat("/w/x/a"))
        #expect(world.apply(.rename("x/a", "x/A")) && world.entries(of: "/w/x") == ["A"])
    }

    @Test func `events after an overflow are lost`() {
        let world = World()
        let queue = HintQueue(wake: {})
        let scope = WatchScope(roots: [WatchRoot(path: "/w")], reaches: { _ in true }, takes: { _ in true })
        let watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
        while watcher.list() {}
        _ = queue.take()
        world.apply(.create("a"))
        world.apply(.create("b"), isHintLost: true)
        world.apply(.create("c"))
        watcher.drain()
        let batch = queue.take()
        #expect(batch.hints.map(\.path) == ["/w/a", "/w"] && batch.reports == [.overflow])
        while watcher.list() {}
        #expect(Set(queue.take().hints.map(\.path)) == ["/w/a", "/w/b", "/w/c"])
    }

    @Test func `polling hints at differences`() {
        let world = World()
        let queue = HintQueue(wake: {})
        let scope = WatchScope(
            roots: [WatchRoot(path: "/w", backend: .poll)], reaches: { _ in true }, takes: { _ in true })
        world.apply(.create("a"))
        world.apply(.create("b"))
        let watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
        while watcher.list() {}
        _ = queue.take()
        world.apply(.write("a"))
        world.apply(.delete("b"))
        world.apply(.create("c"))
        #expect(!watcher.read())
        watcher.poll()
        while watcher.list() {}
        #expect(
            gathered(queue, below: "/w") == [
                "a": [.polled, .written], "b": [.polled, .vanished], "c": [.polled, .appeared, .listed],
            ])
    }

    private func gathered(_ queue: HintQueue, below base: PathBytes) -> [PathBytes: Hint.Signs] {
        var signs: [PathBytes: Hint.Signs] = [:]
        for hint in queue.take().hints {
            signs[PathBytes(hint.path.relative(to: base) ?? []), default: []].formUnion(hint.signs)
        }
        return signs
    }

    @Test(arguments: [(1, false), (2, true), (3, false)] as [(UInt64, Bool)])
    func `the hints are those of the real watcher`(_ seed: UInt64, _ isRaw: Bool) throws {
        try withTempTree { temporary in
            let base = temporary.path("w")
            TestFile.makeDirectory(base)
            let world = World(seed: seed)
            var real = RealFiles(base: base)
            let (queue, realQueue) = (HintQueue(wake: {}), HintQueue(wake: {}))
            func scope(_ root: PathBytes) -> WatchScope {
                WatchScope(
                    roots: [WatchRoot(path: root)], isRaw: isRaw, reaches: { _ in true }, takes: { _ in true })
            }
            let simulated = SimulatedWatcher(world: world, scope: scope("/w"), queue: queue)
            let watcher = try Watcher(scope: scope(base), queue: realQueue)
            defer { watcher.stop() }
            _ = Deadline.wait { realQueue.take().reports.contains { if case .ready = $0 { true } else { false } } }
            var draw = Draw(seed: seed)
            var (done, differing) = (0, 0)
            func settle() {
                while simulated.hasWork {
                    simulated.drainAll()
                    simulated.list()
                }
            }
            settle()
            _ = queue.take()
            for _ in 0..<600 {
                let operation = draw.operation()
                guard world.apply(operation) else { continue }
                guard real.apply(operation) else {
                    Issue.record("\(done) \(operation) can't be done, errno \(errno)")
                    return
                }
                settle()
                done += 1
                let simulatedHints = gathered(queue, below: "/w")
                var kernels: [PathBytes: Hint.Signs] = [:]
                _ = Deadline.wait(within: .seconds(20)) {
                    kernels.merge(gathered(realQueue, below: base)) { $0.union($1) }
                    return kernels == simulatedHints
                }
                for path in Set(simulatedHints.keys).union(kernels.keys).sorted()
                where simulatedHints[path] != kernels[path] {
                    differing += 1
                    let (one, two) = (simulatedHints[path]?.rawValue ?? 0, kernels[path]?.rawValue ?? 0)
                    Issue.record(
                        "\(done) \(operation): \(path): \(String(one, radix: 2)), real \(String(two, radix: 2))")
                }
            }
            print("hints: seed \(seed), raw \(isRaw), \(done) operations compared, \(differing) differ")
        }
    }
}
