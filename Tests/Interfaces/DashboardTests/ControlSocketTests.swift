import ControlAPI
import Glibc
import System
import Testing
import TestKit

/// The socket file: its owner, and the files that it may replace.
struct ControlSocketTests {
    private static func problem(_ path: PathBytes) -> ControlProblem? {
        do throws(ControlProblem) {
            _ = try ControlSocket(at: path)
            return nil
        } catch {
            return error
        }
    }

    private static func mode(_ path: PathBytes) -> mode_t {
        var status = stat()
        _ = path.withCString { lstat($0, &status) }
        return status.st_mode & 0o7777
    }

    @Test func `the socket belongs to its user alone, and so does a directory created for it`() throws {
        try withTempTree { tree in
            let path = tree.path("run/control.sock")
            _ = try ControlSocket(at: path)
            #expect(Self.mode(path) == 0o600)
            #expect(Self.mode(path.parent) == 0o700)
        }
    }

    @Test func `a socket without a listener is replaced, and a live one never is`() throws {
        try withTempTree { tree in
            let path = tree.path("run/control.sock")
            let operations = StubOperations()
            let feed = EventFeed(now: Timestamp(seconds: 1, nanoseconds: 0))
            // The descriptor is still open, so the socket has a listener.
            let live = try ControlSocket(at: path)
            #expect(Self.problem(path)?.isTaken == true)
            let server = try ControlServer(
                live, routes: Routes(operations), operations: operations, feed: feed, complain: { _ in })
            #expect(Self.problem(path)?.isTaken == true)
            #expect(RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200)
            server.stop()
            Self.leaveDead(path)
            #expect(TestFile.exists(path))
            #expect(Self.problem(path) == nil)
        }
    }

    @Test(arguments: ["control.sock", "run", "moved"])
    func `a socket that has been removed is created again`(removed: String) throws {
        try withTempTree { tree in
            let path = tree.path("run/control.sock")
            let operations = StubOperations()
            let feed = EventFeed(now: Timestamp(seconds: 1, nanoseconds: 0))
            let server = try ControlServer(
                ControlSocket(at: path), routes: Routes(operations), operations: operations, feed: feed,
                renew: { lost, _ in try? ControlSocket(at: lost) }, complain: { _ in })
            for _ in 1...3 {
                switch removed {
                case "run": TestFile.removeTree(path.parent)
                case "moved": #expect(rename(path.parent.description, tree.path("moved").description) == 0)
                default: #expect(path.withCString { unlink($0) } == 0)
                }
                #expect(Deadline.wait { RawHTTP.ask(path, "GET", "/v1/rules")?.status == 200 })
                TestFile.removeTree(tree.path("moved"))
            }
            server.stop()
            #expect(!TestFile.exists(path))
        }
    }

    /// Leaves a socket behind, as a killed program does.
    private static func leaveDead(_ path: PathBytes) {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { buffer in
            for (index, byte) in path.bytes.enumerated() { buffer[index] = byte }
        }
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        listen(descriptor, 1)
        close(descriptor)
    }

    @Test func `a file that is not a socket stays, and a directory that others may write to is refused`() throws {
        withTempTree { tree in
            let path = tree.path("run/control.sock")
            TestFile.write(path, "text")
            #expect(Self.problem(path)?.message.hasSuffix("is not a socket") == true)
            #expect(TestFile.read(path) == Array("text".utf8))
            let open = tree.path("open")
            TestFile.makeDirectory(open)
            _ = open.withCString { chmod($0, 0o777) }
            #expect(Self.problem(open.appending("control.sock"))?.message.contains("other users may write") == true)
        }
    }

    @Test func `a path that is too long for a socket address works as well`() throws {
        try withTempTree { tree in
            let directory = tree.path(String(repeating: "a", count: 200))
            _ = try ControlSocket(at: directory.appending("control.sock"))
            let descriptor = ControlSocket.connected(to: directory.appending("control.sock"))
            #expect(descriptor >= 0)
            close(descriptor)
        }
    }

    @Test func `a directory that another process has locked is waited for, but not indefinitely`() throws {
        withTempTree { tree in
            let path = tree.path("run/control.sock")
            TestFile.makeDirectory(path.parent)
            _ = path.parent.withCString { chmod($0, 0o700) }
            let descriptor = path.parent.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
            #expect(flock(descriptor, LOCK_SH) == 0)
            #expect(Self.problem(path)?.message.contains("is locked") == true)
            #expect(!TestFile.exists(path))
            close(descriptor)
            #expect(Self.problem(path) == nil)
        }
    }

    @Test func `a client of a server that accepts no connections waits only for a limited time`() throws {
        try withTempTree { tree in
            let path = tree.path("run/control.sock")
            let live = try ControlSocket(at: path)
            var callers: [Int32] = []
            for _ in 0..<200 {
                callers.append(ControlSocket.connected(to: path, timeout: 0))
                if callers.last ?? 0 < 0 { break }
            }
            #expect(callers.last == -EAGAIN)
            #expect(ControlSocket.connected(to: path, timeout: 1) == -EAGAIN)
            for caller in callers where caller >= 0 { close(caller) }
            withExtendedLifetime(live) {}
        }
    }

    @Test func `sockets beside the default one are found while they have a listener`() throws {
        try withTempTree { tree in
            let usual = tree.path("run/control.sock")
            let other = ControlSocket.excluding(usual, process: 12)
            let live = try ControlSocket(at: other)
            Self.leaveDead(ControlSocket.excluding(usual, process: 13))
            #expect(ControlSocket.otherSockets(excluding: usual) == [other])
            #expect(ControlSocket.otherSockets(excluding: usual, removingStale: true) == [other])
            #expect(!TestFile.exists(ControlSocket.excluding(usual, process: 13)))
            withExtendedLifetime(live) {}
        }
    }
}
