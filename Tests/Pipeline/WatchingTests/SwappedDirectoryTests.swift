import FileEvents
import Glibc
import System
import Testing
import TestKit

@testable import Watching

/// Directories below a root that another process replaces with links.
struct SwappedDirectoryTests {
    private static func link(_ path: PathBytes, to target: String) {
        #expect(path.withCString { symlink(target, $0) } == 0)
    }

    @Test func `a directory behind a link below the root is not opened, and a root may be a link`() {
        withTempTree { tree in
            TestFile.write(tree.path("outside/deep/secret"), "x")
            TestFile.makeDirectory(tree.path("in/sub/deep"))
            Self.link(tree.path("in/link"), to: "../outside")
            Self.link(tree.path("in/inner"), to: "sub")
            Self.link(tree.path("way"), to: "in")
            func errno(_ path: String, _ root: String) -> Int32 {
                do throws(SystemError) {
                    _ = try DirectoryReader(PathBytes(path), below: PathBytes(root))
                    return 0
                } catch {
                    return error.errno
                }
            }
            let (root, link) = ("\(tree.path("in"))", "\(tree.path("way"))")
            for name in ["link", "inner"] { #expect(errno("\(root)/\(name)", root) == ENOTDIR) }
            for name in ["link/deep", "inner/deep"] { #expect(errno("\(root)/\(name)", root) == ELOOP) }
            #expect(errno("\(root)/missing/deep", root) == ENOENT)
            #expect(errno("\(root)/sub/deep", root) == 0 && errno(root, root) == 0)
            #expect(errno("\(link)/sub/deep", link) == 0 && errno(link, link) == 0)
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: [Backend.auto, .poll])
    func `directories replaced with links during listing do not lead outside`(backend: Backend) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/sub/deep/a"), "")
            TestFile.write(tree.path("outside/deep/secret"), "")
            let child = RunningProgram.swapping(
                [tree.path("in/sub")], for: tree.path("outside"), in: tree.root,
                meanwhile: "with open(outside + '/deep/secret', 'w') as file: file.write('x')", pause: 0.002)
            defer {
                child.signal(SIGKILL)
                _ = child.wait()
            }
            let watched = try Watched([
                WatchRoot(path: tree.path("in"), backend: backend, interval: .milliseconds(10))
            ])
            var seen = 0
            var secrets: Set<PathBytes> = []
            _ = Deadline.wait {
                watched.rescan()
                watched.take()
                if watched.hints[tree.path("in/sub/deep/a")] != nil { seen += 1 }
                secrets.formUnion(watched.hints.keys.filter { $0.lastComponent.elementsEqual("secret".utf8) })
                watched.clear()
                return seen > 300
            }
            #expect(seen > 0, "the directory was never seen itself")
            #expect(secrets == [])
        }
    }
}
