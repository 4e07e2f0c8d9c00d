import FileEvents
import FileObserving
import Glibc
import System
import Testing
import TestKit

/// Observers with a fake source and a manual clock: which events are delivered, when and to which consumer.
struct ObserverTests {
    /// An observer that a test drives.
    struct Driven {
        let root: PathBytes
        let source = ManualSource()
        let clock = ManualClock()
        let observer: FileObserver

        init(
            _ root: PathBytes, below directories: [PathBytes] = [],
            _ change: (inout ObservationOptions) -> Void = { _ in }
        ) throws {
            self.root = root
            let roots = directories.isEmpty ? [root] : directories.map { root.appending($0.bytes) }
            var options = ObservationOptions()
            options.source = source
            options.clock = .manual(clock)
            options.settle = .seconds(1)
            options.waitsForWriters = false
            options.events = .differences
            change(&options)
            observer = try FileObserver(roots: roots, options: options)
        }

        /// Lets every hinted path settle.
        func settle() async {
            await observer.catchUp()
            clock.advance(by: .seconds(1))
            await observer.catchUp()
        }

        func write(_ name: String, _ text: String) {
            TestFile.write(root.appending(name), text)
            source.hint(root.appending(name), [.appeared, .written, .closed])
        }

        func move(_ from: String, _ to: String) {
            _ = root.appending(from).withCString { from in root.appending(to).withCString { rename(from, $0) } }
            source.report(
                .hint(Hint(path: root.appending(from), signs: [.vanished, .moved])),
                .hint(Hint(path: root.appending(to), signs: [.appeared, .moved])))
        }
    }

    static func text(_ event: FileEvent) -> String {
        "\(event.kind.rawValue) \(PathBytes(event.path.lastComponent)) \(event.snapshot.size)"
    }

    @Test func `an event is delivered when its settle time is over, and not before`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root)
            driven.source.list()
            var events = driven.observer.events.makeAsyncIterator()
            driven.write("a", "1")
            await driven.observer.catchUp()
            driven.clock.advance(by: .milliseconds(900))
            await driven.observer.catchUp()
            driven.write("a", "12")
            await driven.observer.catchUp()
            driven.clock.advance(by: .milliseconds(900))
            // If it had been reported already, it would have 2 bytes, and a later change would be another event.
            await driven.observer.catchUp()
            driven.write("a", "123")
            await driven.settle()
            let event = try #require(try await events.next())
            #expect(Self.text(event) == "created a 3")
            #expect(event.root == root && event.origin == .live)
            driven.write("b", "")
            await driven.settle()
            #expect(try await events.next().map(Self.text) == "created b 0")
            await driven.observer.stop()
            #expect(try await events.next() == nil)
            #expect(driven.source.isStopped)
        }
    }

    @Test func `a slow consumer receives each path once, in order, with its current state`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root)
            driven.source.list()
            var batches = driven.observer.batches.makeAsyncIterator()
            for round in 1...5 {
                for name in ["a", "b", "c"] { driven.write(name, String(repeating: "x", count: round)) }
                await driven.settle()
            }
            TestFile.removeTree(root.appending("b"))
            driven.source.hint(root.appending("b"), .vanished)
            await driven.settle()
            #expect(try await batches.next()?.map(Self.text) == ["created a 5", "created c 5"])
        }
    }

    @Test func `a slow consumer receives merged moves and replacements and does not delay the others`()
        async throws
    {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root) { $0.events = [.differences, .lifecycle] }
            driven.source.list()
            for name in ["a", "b", "c"] { driven.write(name, name) }
            await driven.settle()
            var slow = driven.observer.batches.makeAsyncIterator()
            #expect(try await slow.next()?.count == 3)
            var quick = driven.observer.batches.makeAsyncIterator()
            var received: [String] = []
            for (from, to) in [("a", "x"), ("x", "y"), ("b", "c")] {
                driven.move(from, to)
                await driven.settle()
                received += try await quick.next()?.map(Self.text) ?? []
            }
            #expect(received == ["moved x 1", "moved y 1", "moved c 1"])
            driven.write("y", "12")
            driven.write("gone", "1")
            await driven.settle()
            TestFile.removeTree(root.appending("gone"))
            driven.source.hint(root.appending("gone"), .vanished)
            await driven.settle()
            let merged = try #require(try await slow.next())
            #expect(merged.map(Self.text) == ["moved y 2", "moved c 1"])
            #expect(merged.first?.from == root.appending("a") && merged.first?.changed == ["extended"])
            #expect(merged.last?.from == root.appending("b") && merged.last?.isReplaced == true)
        }
    }

    @Test func `the snapshot includes events that a slow consumer has not taken`() async throws {
        try await withTemporaryDirectory { root in
            let first = try Driven(root)
            first.source.list()
            first.write("a", "1")
            await first.settle()
            let snapshot = try #require(await first.observer.snapshot())
            await first.observer.stop()
            TestFile.write(root.appending("b"), "1")
            let second = try Driven(root) { $0.resuming = snapshot }
            second.source.list(root.appending("a"), root.appending("b"))
            await second.settle()
            var events = second.observer.batches.makeAsyncIterator()
            #expect(try await events.next()?.map(Self.text) == ["created b 1"])
        }
    }

    @Test func `events before the first iteration are delivered to it`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root)
            driven.source.list()
            driven.write("early", "1")
            await driven.settle()
            var first = driven.observer.events.makeAsyncIterator()
            var second = driven.observer.events.makeAsyncIterator()
            driven.write("late", "1")
            await driven.settle()
            #expect(try await first.next().map(Self.text) == "created early 1")
            #expect(try await first.next().map(Self.text) == "created late 1")
            #expect(try await second.next().map(Self.text) == "created late 1")
        }
    }

    @Test func `a later consumer first receives the known files`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root) { $0.events = [.differences, .lifecycle] }
            for name in ["b/2", "a", "b/1"] { TestFile.write(root.appending(name), "1") }
            driven.source.list(root.appending("b/2"), root.appending("a"), root.appending("b/1"))
            await driven.settle()
            let later = driven.observer.events(existing: true)
            var batch: [FileEvent] = []
            var iterator = later.makeAsyncIterator()
            while batch.last?.kind != .scanEnded, let event = try await iterator.next() { batch.append(event) }
            #expect(batch.map(\.kind) == [.scanStarted, .created, .created, .created, .scanEnded])
            #expect(
                batch.compactMap { $0.path.relative(to: root) }.map { PathBytes($0) } == ["", "a", "b/1", "b/2", ""])
            #expect(batch.allSatisfy { $0.origin == .scan })
            driven.write("c", "1")
            await driven.settle()
            #expect(try await iterator.next().map(Self.text) == "created c 1")
        }
    }

    @Test func `S24 existing files are reported between scan_begin and scan_end, even if none`() async throws {
        try await withTemporaryDirectory { root in
            for names in [["a", "b"], []] {
                let driven = try Driven(root) {
                    $0.events = [.differences, .lifecycle]
                    $0.existing = true
                }
                for name in names { TestFile.write(root.appending(name), "1") }
                let roots = [root]
                driven.source.report(.listing(roots[0], .scan))
                for name in names {
                    driven.source.report(.hint(Hint(path: root.appending(name), signs: .listed, origin: .scan)))
                }
                driven.source.report(.listed(roots[0], .scan), .ready(directories: 1))
                await driven.settle()
                var iterator = driven.observer.batches.makeAsyncIterator()
                let events = try await iterator.next()?.map { "\($0.kind.rawValue) \($0.origin)" }
                #expect(events == ["scan_begin scan"] + names.map { _ in "created scan" } + ["scan_end scan"])
                for name in names { TestFile.removeTree(root.appending(name)) }
            }
        }
    }

    @Test func `changes between two observations are reported`() async throws {
        try await withTemporaryDirectory { root in
            let first = try Driven(root)
            for name in ["kept", "changed", "gone", "moved"] { TestFile.write(root.appending(name), "1") }
            let paths = ["kept", "changed", "gone", "moved"].map { root.appending($0) }
            first.source.list(paths[0], paths[1], paths[2], paths[3])
            await first.observer.catchUp()
            let snapshot = try #require(await first.observer.snapshot())
            #expect(snapshot.entries.map(\.path) == paths.sorted())
            await first.observer.stop()
            #expect(await first.observer.snapshot() == nil)

            TestFile.write(root.appending("changed"), "12")
            TestFile.removeTree(root.appending("gone"))
            _ = paths[3].withCString { from in root.appending("elsewhere").withCString { rename(from, $0) } }
            TestFile.write(root.appending("new"), "1")
            let second = try Driven(root) {
                $0.events = [.differences, .lifecycle]
                $0.resuming = snapshot
            }
            second.source.list(
                root.appending("kept"), root.appending("changed"), root.appending("elsewhere"), root.appending("new"))
            await second.settle()
            var batches = second.observer.batches.makeAsyncIterator()
            var events: [FileEvent] = []
            while events.last?.kind != .scanEnded, let batch = try await batches.next() { events += batch }
            #expect(events.first?.kind == .scanStarted)
            #expect(
                Set(events.dropFirst().dropLast().map(Self.text)) == [
                    "modified changed 2", "deleted gone 1", "moved elsewhere 1", "created new 1",
                ])
            #expect(events.allSatisfy { $0.origin == .scan })
        }
    }

    @Test func `a name that is removed between the listings of two roots is no longer counted`() async throws {
        try await withTemporaryDirectory { root in
            let (one, two) = (root.appending("one"), root.appending("two"))
            for directory in [one, two] { TestFile.makeDirectory(directory) }
            let (name, other) = (one.appending("a"), two.appending("b"))
            let driven = try Driven(root, below: ["one", "two"])
            var events = driven.observer.events.makeAsyncIterator()
            driven.source.list()
            driven.write("one/a", "1")
            await driven.settle()
            #expect(try await events.next()?.snapshot.links == 1)
            #expect(name.withCString { name in other.withCString { link(name, $0) } } == 0)
            driven.source.report(.overflow, .listing(one, .rescan), .listed(one, .rescan))
            await driven.settle()
            #expect(try await events.next()?.snapshot.links == 2)
            await driven.settle()
            _ = other.withCString { unlink($0) }
            driven.source.report(.listing(two, .rescan), .listed(two, .rescan), .rescanned)
            driven.source.hint(other, .vanished)
            await driven.settle()
            #expect(try await events.next()?.snapshot.links == 1)
        }
    }

    @Test func `a cancelled task stops waiting at once, and its observer stops`() async throws {
        try await withTemporaryDirectory { root in
            let source = ManualSource()
            var options = ObservationOptions()
            options.source = source
            let task = Task { [options] in
                var count = 0
                for try await _ in try FileObserver(roots: [root], options: options).events { count += 1 }
                return count
            }
            #expect(await eventually { !source.roots.isEmpty })
            task.cancel()
            let count = try await task.value
            #expect(count == 0)
            // The observer has no more references, so its thread exits.
            #expect(await eventually { source.isStopped })
        }
    }

    @Test func `an iterator that goes out of scope releases its reader`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root)
            #expect(driven.observer.readers == 1)
            do {
                var first = driven.observer.events.makeAsyncIterator()
                let second = driven.observer.batches.makeAsyncIterator()
                driven.source.list()
                driven.write("a", "1")
                await driven.settle()
                #expect(try await first.next().map(Self.text) == "created a 1")
                #expect(driven.observer.readers == 2)
                _ = second
            }
            #expect(await eventually { driven.observer.readers == 0 })
        }
    }

    @Test func `an invalid root ends every sequence with the error`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root) { $0.missing = .fail }
            var events = driven.observer.events.makeAsyncIterator()
            driven.source.report(.rootMissing(root))
            await #expect(throws: ObservationError.missingRoot(root)) { try await driven.observer.waitUntilReady() }
            await #expect(throws: ObservationError.missingRoot(root)) { try await events.next() }
            // A later iterator ends with the same error.
            var later = driven.observer.batches.makeAsyncIterator()
            await #expect(throws: ObservationError.missingRoot(root)) { try await later.next() }
        }
    }

    @Test func `invalid options are thrown with help`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.write(root.appending("file"), "")
            func error(_ roots: [PathBytes], _ change: (inout ObservationOptions) -> Void) -> ObservationError? {
                var options = ObservationOptions()
                change(&options)
                do throws(ObservationError) {
                    _ = try FileObserver(roots: roots, options: options)
                    return nil
                } catch {
                    return error
                }
            }
            #expect(error([]) { _ in } == .noRoots)
            #expect(error([root.appending("file")]) { _ in } == .notDirectory(root.appending("file")))
            #expect(error([root.appending("none")]) { $0.missing = .fail } == .missingRoot(root.appending("none")))
            #expect(error([root.appending("x/y")]) { $0.missing = .create } == nil)
            #expect(TestFile.exists(root.appending("x/y")))
            let glob = try #require(error([root]) { $0.excludes = ["a/{b"] })
            #expect(glob.description == "glob 'a/{b' has no closing '}'" && glob.help.contains("add '}'"))
            #expect(error([root]) { $0.globs = ["/etc/*"] }?.description == "glob '/etc/*' is absolute")
        }
    }

    @Test func `patterns, excludes, depth and hidden names filter by name`() async throws {
        try await withTemporaryDirectory { root in
            let driven = try Driven(root) {
                $0.globs = ["**/*.txt", PathBytes("odd[1]").escapedForGlob]
                $0.excludes = ["out"]
                $0.depth = 1
            }
            driven.source.list()
            for name in ["a.txt", "b.jpg", "in/c.txt", "in/deep/d.txt", "out/e.txt", ".f.txt", "odd[1]"] {
                driven.write(name, "1")
            }
            await driven.settle()
            var batches = driven.observer.batches.makeAsyncIterator()
            #expect(
                try await batches.next()?.map(Self.text) == ["created a.txt 1", "created c.txt 1", "created odd[1] 1"])
        }
    }
}

/// Calls the body with a new temporary directory.
func withTemporaryDirectory<Result>(_ body: (PathBytes) async throws -> Result) async rethrows -> Result {
    let tree = TemporaryTree()
    return try await body(tree.root)
}

/// Waits for a condition without blocking a thread of Swift's pool.
///
/// Returns false if it does not hold in time.
func eventually(within limit: Duration = .seconds(120), _ condition: () async -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + limit
    while await !condition() {
        if ContinuousClock.now > deadline { return false }
        try? await Task.sleep(for: .milliseconds(2))
    }
    return true
}
