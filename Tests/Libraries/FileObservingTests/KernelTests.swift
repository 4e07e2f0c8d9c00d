import FileEvents
import FileObserving
import Foundation
import Glibc
import System
import Testing
import TestKit

/// Observers on the real file system.
struct KernelTests {
    static var quick: ObservationOptions {
        var options = ObservationOptions()
        options.settle = .milliseconds(20)
        options.events = .differences
        return options
    }

    @Test func `files, directories and names of any bytes are reported when they have settled`() async throws {
        try await withTemporaryDirectory { root in
            let observer = try FileObserver(roots: [root], options: Self.quick)
            #expect(try await observer.waitUntilReady() == 1)
            var events = observer.events.makeAsyncIterator()
            let odd = root.appending([0x63, 0xE9, 0x0A, 0x20] as [UInt8])
            TestFile.write(odd, "12")
            var event = try #require(try await events.next())
            #expect(event.kind == .created && event.path == odd && event.snapshot.size == 2)
            let below = root.appending("new/folder").appending("file")
            TestFile.write(below, "123")
            event = try #require(try await events.next())
            #expect(event.kind == .created && event.path == below && event.root == root)
            _ = odd.withCString { from in root.appending("b").withCString { rename(from, $0) } }
            event = try #require(try await events.next())
            #expect(event.kind == .moved && event.from == odd && event.path == root.appending("b"))
            TestFile.removeTree(below)
            event = try #require(try await events.next())
            #expect(event.kind == .deleted && event.path == below && event.snapshot.size == 3)
            await observer.stop()
        }
    }

    @Test func `a plain thread receives the same events, and its loop ends with the observer`() async throws {
        try await withTemporaryDirectory { root in
            let observer = try FileObserver(roots: [root], options: Self.quick)
            try await observer.waitUntilReady()
            let names = (0..<3).map { root.appending("\($0)") }
            let received = await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    var received: [PathBytes] = []
                    var result: Result<[PathBytes], ObservationError> = .success([])
                    TestFile.write(names[0], "1")
                    do throws(ObservationError) {
                        try observer.forEachBatch { batch in
                            received += batch.map(\.path)
                            if received.count < names.count {
                                TestFile.write(names[received.count], "1")
                            } else {
                                Task { await observer.stop() }
                            }
                        }
                        result = .success(received)
                    } catch {
                        result = .failure(error)
                    }
                    continuation.resume(returning: result)
                }
            }
            #expect(try received.get() == names)
        }
    }

    @Test func `S31 a file is reported when no process can write to it any more`() async throws {
        try await withTemporaryDirectory { root in
            let observer = try FileObserver(roots: [root], options: Self.quick)
            var events = observer.events.makeAsyncIterator()
            try await observer.waitUntilReady()
            let slow = root.appending("slow").withCString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) }
            TestFile.put(slow, [1])
            TestFile.write(root.appending("quick"), "1")
            #expect(try await events.next()?.path == root.appending("quick"))
            TestFile.put(slow, [2])
            close(slow)
            let event = try #require(try await events.next())
            #expect(event.path == root.appending("slow") && event.snapshot.size == 2)
        }
    }

    @Test func `S11 a single file is observed through its replacement`() async throws {
        try await withTemporaryDirectory { root in
            var options = Self.quick
            options.globs = [PathBytes("app[1].conf").escapedForGlob]
            let observer = try FileObserver(roots: [root], options: options)
            var events = observer.events.makeAsyncIterator()
            try await observer.waitUntilReady()
            let file = root.appending("app[1].conf")
            TestFile.write(root.appending("app1.conf"), "no")
            TestFile.write(file, "1")
            #expect(try await events.next()?.path == file)
            TestFile.write(root.appending("next"), "12")
            _ = root.appending("next").withCString { from in file.withCString { rename(from, $0) } }
            let event = try #require(try await events.next())
            #expect(event.kind == .modified && event.isReplaced && event.snapshot.size == 2)
        }
    }

    @Test func `a slow consumer receives every event of a burst`() async throws {
        try await withTemporaryDirectory { root in
            let observer = try FileObserver(roots: [root], options: Self.quick)
            var batches = observer.batches.makeAsyncIterator()
            try await observer.waitUntilReady()
            for number in 0..<2_000 { TestFile.write(root.appending("d\(number % 7)/\(number)"), "\(number)") }
            var seen: Set<PathBytes> = []
            while seen.count < 2_000, let batch = try await batches.next() {
                for event in batch where event.kind == .created { #expect(seen.insert(event.path).inserted) }
            }
            #expect(seen.count == 2_000)
        }
    }

    @Test func `a root that is created later is observed`() async throws {
        try await withTemporaryDirectory { root in
            var options = Self.quick
            options.events = [.differences, .rootBack]
            let observer = try FileObserver(roots: [root.appending("later")], options: options)
            var events = observer.events.makeAsyncIterator()
            try await observer.waitUntilReady()
            TestFile.write(root.appending("later/a"), "1")
            var kinds: [EventKind] = []
            while kinds.last != .created, let event = try await events.next() { kinds.append(event.kind) }
            #expect(kinds == [.rootBack, .created])
        }
    }

    @Test func `several consumers receive the same events`() async throws {
        try await withTemporaryDirectory { root in
            let observer = try FileObserver(roots: [root], options: Self.quick)
            try await observer.waitUntilReady()
            let names = Set((0..<50).map { root.appending("\($0)") })
            try await withThrowingTaskGroup(of: Set<PathBytes>.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        var seen: Set<PathBytes> = []
                        for try await event in observer.events(existing: true) {
                            seen.insert(event.path)
                            if seen.count == 50 { break }
                        }
                        return seen
                    }
                }
                for name in names { TestFile.write(name, "1") }
                for try await seen in group { #expect(seen == names) }
            }
        }
    }

    @Test func `changes between two observations are reported as one comparison`() async throws {
        try await withTemporaryDirectory { root in
            for name in ["kept", "changed", "gone", "moved"] { TestFile.write(root.appending(name), "1") }
            let first = try FileObserver(roots: [root], options: Self.quick)
            try await first.waitUntilReady()
            await first.catchUp()
            // Files this recent are checked again before they count as known.
            var snapshot: ObservationSnapshot?
            let isKnown = await eventually {
                snapshot = await first.snapshot()
                return snapshot?.entries.count == 4
            }
            #expect(isKnown)
            await first.stop()
            TestFile.write(root.appending("changed"), "12")
            TestFile.removeTree(root.appending("gone"))
            _ = root.appending("moved").withCString { from in root.appending("else").withCString { rename(from, $0) } }
            TestFile.write(root.appending("new"), "1")
            var options = Self.quick
            options.events = [.differences, .lifecycle]
            options.resuming = snapshot
            let second = try FileObserver(roots: [root], options: options)
            var received: [FileEvent] = []
            for try await event in second.events {
                received.append(event)
                if event.kind == .scanEnded { break }
            }
            #expect(received.first?.kind == .scanStarted)
            #expect(
                Set(received.dropFirst().dropLast().map(ObserverTests.text)) == [
                    "modified changed 2", "deleted gone 1", "moved else 1", "created new 1",
                ])
        }
    }

    @Test func `S28 a rescan without changes reports only its start and end`() async throws {
        try await withTemporaryDirectory { root in
            TestFile.write(root.appending("a"), "1")
            var options = Self.quick
            options.events = [.differences, .lifecycle]
            let observer = try FileObserver(roots: [root], options: options)
            try await observer.waitUntilReady()
            var events = observer.events.makeAsyncIterator()
            observer.rescan()
            #expect(try await events.next()?.kind == .scanStarted)
            #expect(try await events.next()?.kind == .scanEnded)
        }
    }

    // MARK: Cleanup

    /// The descriptors (inotify instances and event counters) and the threads that observers use in this process.
    static var held: (descriptors: Int, threads: Int) {
        let descriptors = TestFile.names(in: "/proc/self/fd").compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
        let threads = TestFile.names(in: "/proc/self/task").filter { task in
            let name = TestFile.read(PathBytes("/proc/self/task").appending(task).appending("comm")) ?? []
            return ["file-observer\n", "alight-watch\n"].contains(String(decoding: name, as: UTF8.self))
        }
        return (descriptors.count(where: isOurs), threads.count)
    }

    @Test func `S21 an observer releases all descriptors and threads, however it stops`() async {
        await #expect(processExitsWith: .success) {
            try await withTemporaryDirectory { root in
                // The runtime opens its own event counter at the first sleep and does not close it.
                try await Task.sleep(for: .milliseconds(1))
                let before = KernelTests.held
                let observed = try await withObservation(roots: [root], options: KernelTests.quick) { observer in
                    try await observer.waitUntilReady()
                    return KernelTests.held
                }
                guard observed.descriptors >= before.descriptors + 2, observed.threads == 2 else { exit(2) }
                for round in 0..<50 {
                    let file = root.appending("\(round)")
                    switch round % 4 {
                    case 0:
                        let observer = try FileObserver(roots: [root], options: KernelTests.quick)
                        try await observer.waitUntilReady()
                        await observer.stop()
                        await observer.stop()
                    case 1:
                        _ = try FileObserver(roots: [root], options: KernelTests.quick)
                    case 2:
                        let task = Task {
                            for try await _ in try FileObserver(roots: [root], options: KernelTests.quick).events {}
                        }
                        await Task.yield()
                        task.cancel()
                        try await task.value
                    default:
                        let seen = try await withObservation(roots: [root], options: KernelTests.quick) { observer in
                            try await observer.waitUntilReady()
                            TestFile.write(file, "1")
                            return try await observer.events.first { $0.path == file }
                        }
                        guard seen?.kind == .created else { exit(3) }
                    }
                }
                let isClosed = await eventually {
                    KernelTests.held == before
                }
                if !isClosed { exit(KernelTests.held.threads == before.threads ? 4 : 5) }
            }
        }
    }

    @Test func `S21 consecutive observers of a directory each report the changes of their own time`()
        async throws
    {
        try await withTemporaryDirectory { root in
            for round in 0..<20 {
                let observer = try FileObserver(roots: [root], options: Self.quick)
                var events = observer.events.makeAsyncIterator()
                try await observer.waitUntilReady()
                TestFile.write(root.appending("file"), String(repeating: "x", count: round + 1))
                let event = try #require(try await events.next())
                #expect(event.kind == (round == 0 ? .created : .modified) && event.snapshot.size == UInt64(round + 1))
                await observer.stop()
                #expect(try await events.next() == nil)
            }
        }
    }

    @Test func `descriptors are not inherited`() async throws {
        try await withTemporaryDirectory { root in
            let observer = try FileObserver(roots: [root], options: Self.quick)
            try await observer.waitUntilReady()
            let open = TestFile.names(in: "/proc/self/fd").compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
            for descriptor in open where Self.isOurs(descriptor) {
                #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            }
            #expect(open.contains(where: Self.isOurs))
            await observer.stop()
        }
    }

    private static func isOurs(_ descriptor: Int32) -> Bool {
        var buffer = [CChar](repeating: 0, count: 64)
        let length = readlink("/proc/self/fd/\(descriptor)", &buffer, buffer.count)
        guard length > 0 else { return false }
        let target = String(decoding: buffer[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return target == "anon_inode:inotify" || target == "anon_inode:[eventfd]"
    }
}
