import FileEvents
@testable import Globbing
import Rules
import System
import Testing
import TestKit

/// The explanation of a rule for a path, from given observations of the disk.
struct ExplanationTests {
    /// A disk on which only the named paths differ; every other path is an empty directory.
    struct Disk: Sendable {
        var path = DiskProbe.StatResult.present(.sample())
        var writers = DiskProbe.Holders.free
        var locks = DiskProbe.Holders.free
        var directories: [PathBytes: DiskProbe.StatResult] = [:]
        var polled: [PathBytes: PollingReason] = [:]

        var inspection: Explanation.Inspection {
            let (directories, polled) = (directories, polled)
            let inspect: @Sendable (PathBytes) -> DiskProbe.StatResult = {
                directories[$0] ?? .present(.sample(type: .directory))
            }
            return Explanation.Inspection(
                path: path, writers: writers, locks: locks, directory: inspect, root: inspect, polling: { polled[$0] })
        }
    }

    private static func rule(_ change: (inout Rule) -> Void = { _ in }) throws -> Rule {
        var rule = Rule(
            name: "r", location: SourcePosition(file: "rules.yaml", line: 2, column: 5),
            filter: PathFilter(globs: [try Glob("/in/**")]), actions: [])
        change(&rule)
        return rule
    }

    private static func verdict(
        _ path: PathBytes = "/in/x/a.txt", _ disk: Disk = Disk(), isEnabled: Bool = true,
        _ change: (inout Rule) -> Void = { _ in }
    ) throws -> Explanation.Verdict {
        Explanation(try rule(change), isEnabled: isEnabled, path: path, inspection: disk.inspection).verdict
    }

    private static let matched = Explanation.Verdict.matched(Explanation.Location(root: "/in", relative: "x/a.txt"))

    @Test func `a path with a matching name is accepted whether it exists or not`() throws {
        #expect(try Self.verdict() == Self.matched)
        #expect(try Self.verdict("/in/x/a.txt", Disk(path: .absent)) == Self.matched)
    }

    @Test func `a name that does not match is the first reason`() throws {
        let disk = Disk(path: .present(.sample(type: .directory)), directories: ["/in": .absent])
        let verdict = try Self.verdict("/out/a", disk, isEnabled: false)
        let refusal = PathFilter.Refusal(glob: try Glob("/in/**"), reason: .outside)
        #expect(verdict == .unmatched(.name(refusal)))
    }

    @Test func `the state of the disk comes next, then the rule itself`() throws {
        let link = DiskProbe.StatResult.present(.sample(type: .symlink))
        var disk = Disk(path: .present(.sample(type: .directory)), directories: ["/in": .absent, "/in/x": link])
        func verdict() throws -> Explanation.Verdict {
            try Self.verdict("/in/x/a.txt", disk, isEnabled: false) { $0.events = [.rootGone] }
        }
        #expect(try verdict() == .unmatched(.rootMissing("/in")))
        disk.directories["/in"] = .present(.sample())
        #expect(try verdict() == .unmatched(.rootNotDirectory("/in", .file)))
        disk.directories["/in"] = nil
        #expect(try verdict() == .unmatched(.belowLink("/in/x")))
        disk.directories["/in/x"] = nil
        #expect(try verdict() == .unmatched(.type(.directory)))
        disk.path = .unreadable(errno: 13)
        #expect(try verdict() == .unmatched(.unreadable(errno: 13)))
        disk.path = .absent
        #expect(try verdict() == .unmatched(.noEvents))
        #expect(try Self.verdict("/in/x/a.txt", disk, isEnabled: false) == .unmatched(.disabled))
        #expect(try Self.verdict("/in/x/a.txt", disk) == Self.matched)
    }

    @Test func `a path inside a directory handled as one unit is explained as that directory`() throws {
        let verdict = try Self.verdict("/in/drop/x/a.txt") { rule in
            rule.filter.globs = (try? Glob("/in/*")).map { [$0] } ?? []
            rule.filter.isTree = true
            rule.types = [.directory]
        }
        let location = Explanation.Location(root: "/in", relative: "drop/x/a.txt", unit: "/in/drop")
        #expect(verdict == .matched(location))
    }

    @Test func `a root is polled if the rule or a file system above it asks for it`() throws {
        func polling(_ disk: Disk, _ backend: Backend) throws -> PollingReason? {
            let rule = try Self.rule { $0.backend = backend }
            return Explanation(rule, isEnabled: true, path: "/in/x/a", inspection: disk.inspection).polling
        }
        let remote = Disk(polled: ["/in/x": .fileSystem("nfs")])
        #expect(try polling(Disk(), .auto) == nil)
        #expect(try polling(remote, .auto) == .fileSystem("nfs"))
        #expect(try polling(remote, .inotify) == nil)
        #expect(try polling(Disk(), .poll) == .asked)
        #expect(try polling(Disk(polled: ["/in/x/a": .fileSystem("nfs"), "/": .fileSystem("nfs")]), .auto) == nil)
    }

    @Test func `writers and locks delay a path if the rule waits for them`() throws {
        func holds(_ disk: Disk, _ change: (inout Rule) -> Void = { _ in }) throws -> [Explanation.WaitReason] {
            Explanation(try Self.rule(change), isEnabled: true, path: "/in/a", inspection: disk.inspection).holds
        }
        let busy = Disk(writers: .held, locks: .held)
        #expect(try holds(Disk()) == [])
        #expect(try holds(busy) == [.writer])
        #expect(try holds(busy) { $0.settle.locks = .wait } == [.writer, .lock])
        #expect(try holds(busy) { $0.settle.writers = .ignore } == [])
        #expect(try holds(Disk(writers: .unknown)) == [.unknown])
        #expect(try holds(Disk(writers: .unknown)) { $0.settle.stable = StableRounds() } == [])
        #expect(try holds(Disk(path: .absent, writers: .held)) == [])
    }
}
