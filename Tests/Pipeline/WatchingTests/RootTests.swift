import FileEvents
import Glibc
import System
import Testing
import TestKit
import Watching

struct RootTests {
    @Test func `S19: after a directory above it is renamed, a root is missing until it is created again`() throws {
        try withTempTree { tree in
            let root = tree.path("a/b/in")
            TestFile.write(root.appending("file"), "x")
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            Machine.move(tree.path("a"), tree.path("other"))
            let directory = tree.root
            #expect(watched.wait { $0.reports.contains(.rootMissing(root, watching: directory)) })
            watched.clear()
            // Changes in the old directory are not reported.
            TestFile.write(tree.path("other/b/in/old"), "x")
            TestFile.write(root.appending("new"), "x")
            #expect(watched.wait { $0.hints[root.appending("new")] != nil })
            #expect(watched.reports.contains(.rootAppeared(root)))
            #expect(watched.hints[root]?.contains(.subtree) == true)
            #expect(watched.hints[root.appending("old")] == nil)
        }
    }

    @Test func `S19: a root that is moved away and created again at once is a new root`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            TestFile.write(tree.path("next/file"), "x")
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            watched.clear()
            Machine.move(root, tree.path("away"))
            Machine.move(tree.path("next"), root)
            #expect(watched.wait { $0.hints[root.appending("file")] != nil })
            #expect(watched.wait { $0.reports.contains(.listed(root, .live)) })
            let reports = watched.reports
            let missing = try #require(reports.firstIndex { if case .rootMissing = $0 { true } else { false } })
            let appeared = try #require(reports.firstIndex(of: .rootAppeared(root)))
            #expect(missing < appeared)
        }
    }

    @Test func `S19: a root that is deleted while a process uses it is watched when it is created again`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            let held = root.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
            defer { close(held) }
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            TestFile.removeTree(root)
            #expect(watched.wait { $0.reports.contains { if case .rootMissing = $0 { true } else { false } } })
            TestFile.write(root.appending("file"), "x")
            #expect(watched.wait { $0.hints[root.appending("file")] != nil })
        }
    }

    @Test func `S19: a root behind a link follows a change of the link`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("one/in/first"), "x")
            TestFile.write(tree.path("two/in/second"), "x")
            let directory = tree.root
            func point(_ target: String) {
                _ = directory.appending("new").withCString { symlink(target, $0) }
                Machine.move(directory.appending("new"), directory.appending("way"))
            }
            point("one")
            _ = tree.path("root").withCString { symlink("way/in", $0) }
            let watched = try Watched([tree.path("way/in"), tree.path("root")])
            #expect(watched.wait(\.isReady))
            #expect(watched.hints[tree.path("way/in/first")] != nil)
            #expect(watched.hints[tree.path("root/first")] != nil)
            watched.clear()
            point("two")
            #expect(watched.wait { $0.hints[tree.path("way/in/second")] != nil })
            #expect(watched.wait { $0.hints[tree.path("root/second")] != nil })
            watched.clear()
            TestFile.write(tree.path("one/in/first"), "y")
            TestFile.write(tree.path("two/in/second"), "y")
            #expect(watched.wait { $0.hints[tree.path("root/second")]?.contains(.closed) == true })
            #expect(watched.hints[tree.path("root/first")] == nil)
        }
    }

    @Test func `S24: a listing of a root reports its start, the paths that it finds, and its end`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a/b/file"), "x")
            let (root, inner) = (tree.path("in"), tree.path("in/a"))
            let watched = try Watched([root, inner])
            #expect(watched.wait(\.isReady))
            let brackets: [WatchReport] = [
                .listing(inner, .scan), .listed(inner, .scan), .listing(root, .scan), .listed(root, .scan),
                .ready(directories: 3),
            ]
            #expect(watched.reports == brackets)
            #expect(watched.hints[inner.appending("b/file")] == .listed)
            watched.clear()
            watched.rescan()
            #expect(watched.wait { $0.reports.last == .rescanned })
            #expect(watched.reports.prefix(2) == [.listing(inner, .rescan), .listed(inner, .rescan)])
            #expect(watched.hints[root] == .subtree)
            watched.clear()
            TestFile.removeTree(root)
            TestFile.write(inner.appending("again"), "x")
            #expect(watched.wait { $0.reports.contains(.listed(root, .live)) })
            #expect(watched.wait { $0.hints[inner.appending("again")] != nil })
        }
    }

    @Test func `S20: a root that becomes a file is reported as such, and waited for`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            TestFile.removeTree(root)
            TestFile.write(root, "x")
            #expect(watched.wait { $0.reports.contains { if case .rootMissing = $0 { true } else { false } } })
            _ = root.withCString { unlink($0) }
            TestFile.write(root.appending("file"), "x")
            #expect(watched.wait { $0.hints[root.appending("file")] != nil })
        }
    }
}

/// Mounts in a private namespace that ends with the test.
@Suite(.enabled(if: Machine.isRoot, "mounting needs root"))
struct MountTests {
    private static func start(_ arguments: [String], _ tree: borrowing TemporaryTree) -> WatchHints {
        WatchHints(arguments, in: tree.root, prefix: ["/usr/bin/unshare", "-m", "--propagation", "private"])
    }

    /// Runs a command with the mounts of the watcher.
    private static func enter(_ hints: WatchHints, _ command: [String]) {
        #expect(Machine.run("nsenter", ["-t", "\(hints.program.pid)", "-m"] + command) == 0)
    }

    /// Retries, because the file system is busy while the watcher has one of its directories open for listing.
    private static func unmount(_ hints: WatchHints, _ path: String) {
        #expect(Deadline.wait { Machine.run("nsenter", ["-t", "\(hints.program.pid)", "-m", "umount", path]) == 0 })
    }

    @Test func `S08: a file system that is mounted and unmounted below a root is reported`() {
        withTempTree { tree in
            let sub = tree.path("in/sub")
            TestFile.write(sub.appending("under"), "x")
            let hints = Self.start(["\(tree.path("in"))"], tree)
            Self.enter(hints, ["mount", "-t", "tmpfs", "none", "\(sub)"])
            #expect(hints.wait(for: "report mounted \(sub)"))
            #expect(hints.wait(for: "hint live subtree \(sub)"))
            Self.enter(hints, ["touch", "\(sub)/inside"])
            #expect(hints.wait(for: "hint live ", " \(sub)/inside"))
            Self.unmount(hints, "\(sub)")
            #expect(hints.wait(for: "report unmounted \(sub) at \(sub)"))
            TestFile.write(sub.appending("later"), "x")
            #expect(hints.wait(for: "hint live ", " \(sub)/later"))
            #expect(hints.count("report unmounted") == 1)
            #expect(hints.count("report mounted") == 1)
        }
    }

    @Test func `S08: a file system that is mounted and unmounted on the root is reported`() {
        withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("under"), "x")
            let hints = Self.start(["\(root)"], tree)
            Self.enter(hints, ["mount", "-t", "tmpfs", "none", "\(root)"])
            #expect(hints.wait(for: "report mounted \(root)"))
            #expect(hints.wait(for: "report listed live \(root)"))
            Self.enter(hints, ["touch", "\(root)/inside"])
            #expect(hints.wait(for: "hint live ", " \(root)/inside"))
            let before = hints.count("hint live subtree")
            Self.unmount(hints, "\(root)")
            #expect(hints.wait(for: "report unmounted \(root) at \(root)"))
            #expect(hints.wait { $0.count { $0 == "report listed live \(root)" } == 2 })
            // The known files are not compared with the directory below the mount.
            #expect(hints.count("hint live subtree") == before)
            #expect(hints.count("report unmounted") == 1)
            #expect(hints.count("report rootMissing") == 0)
        }
    }

    @Test func `S08: an unmount above a root names the mount point`() {
        withTempTree { tree in
            let point = tree.path("m")
            let root = point.appending("in")
            TestFile.makeDirectory(root)
            let hints = Self.start(["\(root)"], tree)
            Self.enter(hints, ["mount", "-t", "tmpfs", "none", "\(point)"])
            #expect(hints.wait(for: "report rootMissing \(root) \(point)"))
            Self.enter(hints, ["mkdir", "\(root)"])
            #expect(hints.wait(for: "report listed live \(root)"))
            Self.unmount(hints, "\(point)")
            #expect(hints.wait(for: "report unmounted \(root) at \(point)"))
            #expect(hints.count("report unmounted") == 1)
        }
    }

    @Test func `S08 S47: a bind mount is another path to the same directory, and its unmount is reported`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in/copy"))
            TestFile.write(tree.path("in/real/file"), "x")
            let hints = Self.start(["\(tree.path("in"))"], tree)
            Self.enter(hints, ["mount", "--bind", "\(tree.path("in/real"))", "\(tree.path("in/copy"))"])
            #expect(hints.wait(for: "report mounted \(tree.path("in/copy"))"))
            #expect(hints.wait(for: "hint live ", " \(tree.path("in/copy/file"))"))
            TestFile.write(tree.path("in/real/both"), "x")
            #expect(hints.wait(for: "hint live ", " \(tree.path("in/copy/both"))"))
            #expect(hints.wait(for: "hint live ", " \(tree.path("in/real/both"))"))
            Self.unmount(hints, "\(tree.path("in/copy"))")
            #expect(hints.wait(for: "report unmounted \(tree.path("in/copy")) at \(tree.path("in/copy"))"))
            TestFile.write(tree.path("in/real/later"), "x")
            #expect(hints.wait(for: "hint live ", " \(tree.path("in/real/later"))"))
            let gone = tree.path("in/copy/later")
            #expect(!hints.program.lines.contains { $0.hasSuffix(" \(gone)") })
        }
    }

    @Test func `S55: a mounted file system without events is polled`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in/proc"))
            let hints = Self.start(["\(tree.path("in"))"], tree)
            Self.enter(hints, ["mount", "-t", "cgroup2", "none", "\(tree.path("in/proc"))"])
            #expect(hints.wait(for: "report polling cgroup2 \(tree.path("in/proc"))"))
            #expect(hints.wait { $0.contains { $0.hasPrefix("hint live appeared,listed,polled") } })
        }
    }
}
