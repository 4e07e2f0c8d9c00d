import Glibc
import System
import Testing
import TestKit

struct WatchedPathsTests {
    private func link(_ path: PathBytes, to target: String) { #expect(path.withCString { symlink(target, $0) } == 0) }

    private func isPresent(_ inspected: DiskProbe.StatResult) -> Bool {
        if case .present = inspected { true } else { false }
    }

    @Test func `nothing behind a link below the root is visible or readable`() {
        withTempTree { tree in
            TestFile.write(tree.path("outside/secret"), "x")
            TestFile.makeDirectory(tree.path("in/sub"))
            link(tree.path("in/link"), to: "../outside")
            link(tree.path("in/inner"), to: "sub")
            link(tree.path("in/file"), to: "../outside/secret")
            let root = tree.path("in")
            let files = WatchedPaths(roots: [root])
            let writer = tree.path("outside/secret").withCString { open($0, O_WRONLY) }
            defer { close(writer) }
            for name in ["link/secret", "inner/.", "missing/x"] {
                #expect(files.inspect(at: root.appending(name)) == .absent)
                #expect(files.writers(of: root.appending(name)) == .unknown)
                #expect(DiskProbe.openForReading(root.appending(name), below: root) < 0)
            }
            #expect(files.isBehindLink(root.appending("link/secret"), root: root))
            #expect(!files.isBehindLink(root.appending("missing/x"), root: root))
            #expect(!files.isBehindLink(root.appending("link"), root: root))
            // The link itself is an entry.
            #expect(isPresent(files.inspect(at: root.appending("link"), readingExtended: true)))
            #expect(DiskProbe.openForReading(root.appending("file"), below: root) == -ELOOP)
            for name in ["link", "inner", "link/x", "file"] {
                let found = #expect(throws: SystemError.self) { try files.names(in: root.appending(name)) }
                #expect(found?.errno == ELOOP, "\(name)")
            }
        }
    }

    @Test func `names are listed in a root that is a link, below it, and outside all roots`() {
        withTempTree { tree in
            TestFile.write(tree.path("real/sub/a"), "x")
            link(tree.path("root"), to: "real")
            let files = WatchedPaths(roots: [tree.path("root")])
            func names(_ directory: PathBytes) -> [PathBytes]? { try? files.names(in: directory) }
            #expect(names(tree.path("root")) == ["sub"])
            #expect(names(tree.path("root/sub")) == ["a"])
            #expect(names(tree.path("real/sub")) == ["a"])
        }
    }

    @Test func `a root that is a link is followed, also inside another root`() {
        withTempTree { tree in
            TestFile.write(tree.path("real/sub/a"), "x")
            TestFile.makeDirectory(tree.path("in"))
            link(tree.path("in/root"), to: "../real")
            let (outer, inner) = (tree.path("in"), tree.path("in/root"))
            #expect(isPresent(WatchedPaths(roots: [outer, inner]).inspect(at: inner.appending("sub/a"))))
            #expect(WatchedPaths(roots: [outer]).inspect(at: inner.appending("sub/a")) == .absent)
        }
    }

    @Test func `a replaced directory is found after the cached answers were dropped`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/sub/a"), "x")
            TestFile.write(tree.path("outside/b"), "x")
            let files = WatchedPaths(roots: [tree.path("in")])
            #expect(isPresent(files.inspect(at: tree.path("in/sub/a"))))
            #expect(tree.path("in/sub").withCString { from in tree.path("old").withCString { rename(from, $0) } } == 0)
            link(tree.path("in/sub"), to: "../outside")
            #expect(files.inspect(at: tree.path("in/sub/b")) == .absent)
            files.forget()
            #expect(files.inspect(at: tree.path("in/sub/a")) == .absent)
            #expect(files.inspect(at: tree.path("in/sub/b")) == .absent)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `directories that are swapped for links during the check lead nowhere`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/sub/deep/a"), "mine")
            TestFile.write(tree.path("outside/deep/a"), "secret text")
            TestFile.write(tree.path("outside/deep/secret"), "")
            let writer = tree.path("outside/deep/a").withCString { open($0, O_WRONLY) }
            defer { close(writer) }
            let child = RunningProgram.swapping([tree.path("in/sub")], for: tree.path("outside"), in: tree.root)
            defer {
                child.signal(SIGKILL)
                _ = child.wait()
            }
            let root = tree.path("in")
            let path = root.appending("sub/deep/a")
            let files = WatchedPaths(roots: [root])
            var seen = 0
            var missed = 0
            let hasMet = Deadline.wait {
                for _ in 0..<1_000 {
                    files.forget()
                    switch files.inspect(at: path) {
                    case .present(let snapshot):
                        seen += 1
                        #expect(snapshot.size == 4)
                    default: missed += 1
                    }
                    files.forget()
                    #expect(files.writers(of: path) != .held)
                    files.forget()
                    if let names = try? files.names(in: path.parent) { #expect(names == ["a"]) }
                    let opened = DiskProbe.openForReading(path, below: root)
                    guard opened >= 0 else { continue }
                    var status = stat()
                    #expect(fstat(opened, &status) == 0 && status.st_size == 4)
                    close(opened)
                }
                return seen > 5_000 && missed > 1_000
            }
            #expect(hasMet, "\(seen) \(missed)")
        }
    }
}
