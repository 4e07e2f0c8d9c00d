import Glibc
import System
import Testing
import TestKit

/// The limits of inotify, lowered in a separate user namespace.
@Suite(.enabled(if: Machine.hasUserNamespaces, "user namespaces are needed to lower the limits"))
struct LimitTests {
    private static func start(
        _ arguments: [String], _ tree: borrowing TemporaryTree, watches: Int? = nil, instances: Int? = nil
    ) -> WatchHints {
        let shell = [("watches", watches), ("instances", instances)].compactMap { name, value in
            value.map { "echo \($0) > /proc/sys/user/max_inotify_\(name)" }
        }.joined(separator: " && ")
        return WatchHints(arguments, in: tree.root, prefix: ["/usr/bin/unshare", "-Ur"], shell: shell)
    }

    private static func shortage(_ hints: WatchHints) -> String? {
        hints.program.lines.first { $0.hasPrefix("report limited") }
    }

    @Test func `S52: directories without a watch are polled, and the need is reported once`() {
        withTempTree { tree in
            let root = tree.path("in")
            for number in 0..<20 { TestFile.write(root.appending("sub\(number)/file"), "x") }
            let hints = Self.start(["\(root)"], tree, watches: 10)
            // The path to the root needs watches as well: `/`, `/tmp` and the directory of the test.
            #expect(Self.shortage(hints) == "report limited user.max_inotify_watches=10 needed=24 polled=14")
            for number in 0..<20 { TestFile.write(root.appending("sub\(number)/new"), "x") }
            for number in 0..<20 { #expect(hints.wait(for: "hint", " \(root)/sub\(number)/new")) }
            #expect(hints.count("hint poll") > 0)
            #expect(hints.count("report limited") == 1)
        }
    }

    @Test func `S52: new directories beyond the limit are polled, and the need is reported`() {
        withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            let hints = Self.start(["\(root)"], tree, watches: 10)
            #expect(Self.shortage(hints) == nil)
            for number in 0..<20 { TestFile.write(root.appending("sub\(number)/deep/file"), "x") }
            for number in 0..<20 { #expect(hints.wait(for: "hint ", " \(root)/sub\(number)/deep/file")) }
            #expect(hints.wait { _ in Self.shortage(hints) != nil })
            for number in 0..<20 { TestFile.write(root.appending("sub\(number)/deep/new"), "x") }
            for number in 0..<20 { #expect(hints.wait(for: "hint ", " \(root)/sub\(number)/deep/new")) }
        }
    }

    @Test func `S52: a watch that becomes free is used`() {
        withTempTree { tree in
            let root = tree.path("in")
            for name in ["a", "b", "c", "d"] { TestFile.makeDirectory(root.appending(name)) }
            // Four watches are free for the root and three of its directories.
            let hints = Self.start(["\(root)"], tree, watches: 7)
            #expect(Self.shortage(hints) == "report limited user.max_inotify_watches=7 needed=8 polled=1")
            var live: Set<String> = []
            for name in ["a", "b", "c", "d"] {
                TestFile.write(root.appending("\(name)/1"), "x")
                #expect(hints.wait(for: "hint ", " \(root)/\(name)/1"))
                if hints.program.lines.contains(where: { $0.hasPrefix("hint live") && $0.hasSuffix("\(name)/1") }) {
                    live.insert(name)
                }
            }
            #expect(live.count == 3)
            let polled = Set(["a", "b", "c", "d"]).subtracting(live)
            for name in live { TestFile.removeTree(root.appending(name)) }
            for name in polled {
                #expect(
                    Deadline.wait {
                        TestFile.write(root.appending("\(name)/2"), "again")
                        return hints.program.lines.contains { $0.hasPrefix("hint live") && $0.hasSuffix("\(name)/2") }
                    })
            }
        }
    }

    @Test func `S52: a directory without a watch is compared after it was removed or replaced`() {
        withTempTree { tree in
            let root = tree.path("in")
            for name in ["gone", "made anew"] { TestFile.write(root.appending("\(name)/deep/file"), "x") }
            // One watch is free for the root, after three for the path to it.
            let hints = Self.start(["\(root)"], tree, watches: 4)
            #expect(Self.shortage(hints) == "report limited user.max_inotify_watches=4 needed=8 polled=4")
            for name in ["gone", "made anew"] { TestFile.removeTree(root.appending(name)) }
            TestFile.makeDirectory(root.appending("made anew"))
            for name in ["gone", "made anew"] {
                #expect(
                    hints.wait { lines in
                        lines.contains { $0.contains("subtree") && $0.hasSuffix(" \(root)/\(name)") }
                    })
            }
        }
    }

    @Test func `S52: without an instance everything is polled, also a root that is missing`() {
        withTempTree { tree in
            let (root, later) = (tree.path("in"), tree.path("later/deep"))
            TestFile.write(root.appending("sub/file"), "x")
            let hints = Self.start(["\(root)", "\(later)"], tree, instances: 0)
            #expect(Self.shortage(hints) == "report limited user.max_inotify_instances=0 needed=1 polled=2")
            TestFile.write(root.appending("sub/new"), "x")
            #expect(hints.wait(for: "hint poll appeared,listed,polled \(root)/sub/new"))
            TestFile.write(later.appending("new"), "x")
            #expect(hints.wait(for: "report rootAppeared \(later)"))
            #expect(hints.wait(for: "hint live ", " \(later)/new"))
        }
    }

    @Test func `S51: an overflow is reported once, and nothing is lost`() {
        withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            let hints = WatchHints(["\(root)"], in: tree.root, prefix: ["/usr/bin/env"])
            kill(hints.program.pid, SIGSTOP)
            for number in 0..<9_000 { TestFile.write(root.appending("file\(number)"), "x") }
            kill(hints.program.pid, SIGCONT)
            #expect(hints.wait(for: "report rescanned"))
            #expect(hints.count("report overflow") == 1)
            #expect(hints.count("report rescanned") == 1)
            let hinted = Set(hints.program.lines.compactMap { $0.split(separator: " ").last.map(String.init) })
            let lost = (0..<9_000).filter { !hinted.contains("\(root)/file\($0)") }
            #expect(lost.isEmpty)
            #expect(hints.program.lines.contains("hint rescan subtree \(root)"))
        }
    }
}
