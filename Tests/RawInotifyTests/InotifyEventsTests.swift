import FileEvents
import Glibc
import RawInotify
import Synchronization
import TestKit
import Testing

@Suite struct InotifyEventsTests {
    private static var queueSize: Int {
        let text = String(decoding: TestFile.read("/proc/sys/fs/inotify/max_queued_events") ?? [], as: UTF8.self)
        return Int(text.filter(\.isNumber)) ?? 0
    }

    @Test func `a task that waits is told of what happens`() async throws {
        let tree = TemporaryTree()
        let inotify = try Inotify()
        try inotify.add(path: tree.root, mask: .closeWrite)
        var events = inotify.events.makeAsyncIterator()
        let root = tree.root
        for number in 0..<20 {
            async let writing: Void = {
                await Task.yield()
                TestFile.write(root.appending("\(number)"), "x")
            }()
            #expect(try await events.next()?.name == PathBytes("\(number)"))
            await writing
        }
    }

    @Test func `what nobody takes stays in the kernel's queue, and its overflow is told`() async throws {
        let tree = TemporaryTree()
        let size = Self.queueSize
        try #require(size > 0)
        let inotify = try Inotify()
        let files = [tree.path("1"), tree.path("2")]
        for file in files { TestFile.write(file, "x") }
        try inotify.add(path: tree.root, mask: [.attrib, .create])
        var events = inotify.events.makeAsyncIterator()
        TestFile.write(tree.path("first"), "x")
        #expect(try await events.next()?.name == "first")
        // Equal events in a row would be merged.
        for turn in 0..<size + 100 { _ = files[turn % 2].withCString { chmod($0, turn % 4 < 2 ? 0o600 : 0o644) } }
        var count = 0
        while let event = try await events.next(), !event.isOverflow { count += 1 }
        #expect(count == size)
        TestFile.write(tree.path("after"), "x")
        #expect(try await events.next()?.name == "after")
    }

    @Test func `each event goes to one of several iterators, and all end with the instance`() async throws {
        let tree = TemporaryTree()
        let inotify = try Inotify()
        try inotify.add(path: tree.root, mask: .create)
        let taken = Counter()
        let root = tree.root
        let names = try await withThrowingTaskGroup(of: [PathBytes].self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var names: [PathBytes] = []
                    for try await event in inotify.events {
                        names.append(event.name)
                        if taken.next() == 200 { inotify.close() }
                    }
                    return names
                }
            }
            for number in 0..<200 {
                TestFile.write(root.appending("\(number)"), "x")
                if number.isMultiple(of: 10) { await Task.yield() }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(names.count == 200)
        #expect(Set(names) == Set((0..<200).map { PathBytes("\($0)") }))
    }

    @Test func `cancellation ends an iteration at once, and closes every descriptor`() async {
        await #expect(processExitsWith: .success) {
            let before = Held.now
            let inotify = try Inotify()
            try inotify.add(path: "/", mask: .create)
            // No thread until somebody waits.
            guard Held.now == Held(inotify: 1, threads: 0), Held.areClosedOnExec else { exit(2) }
            let task = Task {
                for try await _ in inotify.events {}
                return inotify
            }
            guard Deadline.wait(until: { Held.now.threads == 1 }) else { exit(3) }
            task.cancel()
            let ended = try await task.value
            #expect(throws: InotifyError.closed) { try ended.add(path: "/", mask: .create) }
            guard Deadline.wait(until: { Held.now == before }) else { exit(4) }
        }
    }

    @Test func `an instance that nobody has any more gives everything back`() async {
        await #expect(processExitsWith: .success) {
            let before = Held.now
            let counters = Held.counters
            for _ in 0..<50 {
                let tree = TemporaryTree()
                let inotify = try Inotify()
                try inotify.add(path: tree.root, mask: .create)
                let path = tree.path("file")
                let task = Task {
                    for try await event in inotify.events { return event.name }
                    return "none"
                }
                TestFile.write(path, "x")
                guard try await task.value == "file" else { exit(2) }
            }
            guard Deadline.wait(until: { Held.now == before }) else { exit(3) }
            // The runtime has some of its own, and makes them when it likes.
            guard Deadline.wait(until: { Held.counters < counters + 25 }) else { exit(4) }
        }
    }
}

/// Counts for several tasks.
private final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock {
            $0 += 1
            return $0
        }
    }
}

/// What this process holds for instances.
private struct Held: Equatable {
    var inotify = 0
    var threads = 0

    static var now: Held {
        var held = Held()
        held.inotify = links.count { $0.1 == "anon_inode:inotify" }
        for thread in TestFile.names(in: "/proc/self/task") {
            let name = TestFile.read(PathBytes("/proc/self/task").appending(thread).appending("comm")) ?? []
            if String(decoding: name, as: UTF8.self) == "raw-inotify\n" { held.threads += 1 }
        }
        return held
    }

    static var counters: Int { links.count { $0.1.hasPrefix("anon_inode:[eventfd") } }

    static var areClosedOnExec: Bool {
        links.allSatisfy { descriptor, target in
            !target.hasPrefix("anon_inode:inotify") || fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0
        }
    }

    private static var links: [(Int32, String)] {
        TestFile.names(in: "/proc/self/fd").compactMap { name in
            guard let descriptor = Int32(String(decoding: name, as: UTF8.self)) else { return nil }
            var buffer = [UInt8](repeating: 0, count: 256)
            let length = buffer.withUnsafeMutableBytes { bytes in
                bytes.withMemoryRebound(to: CChar.self) { text in
                    text.baseAddress.map { readlink("/proc/self/fd/\(descriptor)", $0, text.count) } ?? 0
                }
            }
            return length > 0 ? (descriptor, String(decoding: buffer[..<length], as: UTF8.self)) : nil
        }
    }
}
