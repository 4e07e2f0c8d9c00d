import FileEvents
import System
import Testing
import TestKit

@testable import Reconciling

struct DueTableTests {
    private static let now = ContinuousClock.now

    private static func time(_ seconds: Int) -> ContinuousClock.Instant { now + .seconds(seconds) }

    private static func entry(_ number: Int) -> DueTable.Entry {
        DueTable.Entry(
            settled: .absent, signs: .listed, origin: .live, time: Timestamp(seconds: Int64(number), nanoseconds: 0),
            announced: nil, digest: nil, isConfirmed: false)
    }

    /// The due paths in plain tables.
    private struct Model {
        var numbers: [PathBytes: Int] = [:]
        var order: [PathBytes] = []
        var waits: [PathBytes: (wait: DueTable.Wait, limit: Int?)] = [:]

        mutating func detach(_ path: PathBytes) {
            order.removeAll { $0 == path }
            waits[path] = nil
        }

        mutating func wake(where isWoken: (PathBytes, DueTable.Wait, Int?) -> Bool) {
            for path in waits.filter({ isWoken($0, $1.wait, $1.limit) }).keys.sorted() {
                detach(path)
                order.append(path)
            }
        }
    }

    @Test(arguments: 0..<20) func `a table after many changes agrees with plain tables`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = DueTable()
        var model = Model()
        var clock = 0
        for step in 0..<2_000 {
            let names = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                ["a", "ab", "b"].randomElement(using: &random) ?? "a"
            }
            let path = PathBytes("/" + names.joined(separator: "/"))
            switch Int.random(in: 0..<9, using: &random) {
            case 0..<3:
                table.add(path, Self.entry(step))
                model.detach(path)
                model.numbers[path] = step
                model.order.append(path)
            case 3:
                #expect((table.remove(path) != nil) == (model.numbers[path] != nil))
                model.detach(path)
                model.numbers[path] = nil
            case 4:
                table.requeue(path)
                model.detach(path)
                if model.numbers[path] != nil { model.order.append(path) }
            case 5:
                #expect(table.next() == model.order.first)
                model.order = Array(model.order.dropFirst())
            case 6:
                let limit = Bool.random(using: &random) ? clock + Int.random(in: 1..<5, using: &random) : nil
                let waits: [DueTable.Wait] = [
                    .listing, .path("/a"), .gate(Reconciler.Gate("age")), .time(Self.time(clock + 2)),
                ]
                let wait = waits.randomElement(using: &random) ?? .listing
                table.wait(path, for: wait, until: limit.map(Self.time))
                model.detach(path)
                if model.numbers[path] != nil { model.waits[path] = (wait, limit) }
            case 7:
                table.wake(.listing)
                model.wake { _, wait, _ in wait == .listing }
                table.wakeAll()
                model.wake { _, wait, _ in if case .gate = wait { true } else { false } }
            default:
                clock += 1
                table.wake(until: Self.time(clock))
                // Earlier times were woken before.
                model.wake { _, wait, limit in limit == clock || wait == .time(Self.time(clock)) }
            }
            #expect(table.count == model.numbers.count)
            #expect(table.hasNext == !model.order.isEmpty)
            #expect(table.entries.values.count(where: { _ in true }) == model.numbers.count)
            #expect(table[path]?.time.seconds == model.numbers[path].map(Int64.init))
            #expect(table[path]?.wait == model.waits[path]?.wait)
            #expect(table.limit(of: path) == model.waits[path]?.limit.map(Self.time))
        }
        #expect(table.entries.paths == model.numbers.keys.sorted())
        for path in model.order { #expect(table.next() == path) }
        #expect(table.next() == nil)
    }

    @Test func `a path that waits has its announced file, writer and reason`() {
        var table = DueTable()
        let file = FileIdentity(deviceMajor: 1, deviceMinor: 2, inode: 3, birth: 4)
        let other = FileIdentity(deviceMajor: 1, deviceMinor: 2, inode: 5, birth: 6)
        table.add("/a", Self.entry(1))
        table.announce("/a", file)
        table.setWriter("/a", .unknown(.unseen))
        table.wait("/a", for: .listing, Reconciler.Reason("waits", passesSoon: true))
        #expect(table["/a"]?.announced == file)
        #expect(table["/a"]?.file == nil)
        #expect(table["/a"]?.writer == .unknown(.unseen))
        #expect(table["/a"]?.reason?.text == "waits")
        var entry = Self.entry(2)
        entry.file = file
        entry.announced = other
        #expect(entry.file == file)
        #expect(entry.announced == other)
        entry.file = nil
        #expect(entry.announced == other)
        entry.announced = nil
        #expect(entry.announced == nil)
        table.unsettle("/a")
        #expect(table["/a"]?.settled == nil)
        table.wake(.listing)
        #expect(table["/a"]?.reason == nil)
        #expect(table["/a"]?.announced == file)
    }

    @Test func `a table that was large is used again`() {
        #expect(MemoryLayout<DueTable.Entry>.stride <= 88)
        var table = DueTable()
        for number in 0..<2_000 { table.add(PathBytes("/in/\(number)"), Self.entry(number)) }
        for number in 0..<2_000 { table.remove(PathBytes("/in/\(number)")) }
        #expect(table.isEmpty)
        table.add("/in/1", Self.entry(1))
        #expect(table.next() == "/in/1")
    }
}
