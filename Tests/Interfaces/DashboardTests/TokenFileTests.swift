import ControlAPI
import Glibc
import System
import Testing
import TestKit

/// The file that stores the token.
struct TokenFileTests {
    private static func problem(_ path: PathBytes) -> ControlProblem? {
        do throws(ControlProblem) {
            _ = try TokenFile.token(at: path)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the file is created once, for its owner alone, and read afterwards`() throws {
        try withTempTree { tree in
            let path = TokenFile.path(beside: tree.path("journal.db"))
            #expect(path == tree.path("journal.db-token"))
            let token = try TokenFile.token(at: path)
            #expect(token.count == 43)
            #expect(TestFile.text(path) == "\(token)\n")
            var status = stat()
            #expect(path.withCString { lstat($0, &status) } == 0)
            #expect(status.st_mode & 0o7777 == 0o600)
            #expect(try TokenFile.token(at: path) == token)
            #expect(path.withCString { unlink($0) } == 0)
            #expect(try TokenFile.token(at: path) != token)
        }
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o601])
    func `a file that others may access is refused, with a remedy`(mode: Int) throws {
        try withTempTree { tree in
            let path = tree.path("journal.db-token")
            let token = try TokenFile.token(at: path)
            try #require(path.withCString { chmod($0, mode_t(mode)) } == 0)
            let problem = try #require(Self.problem(path))
            #expect(problem.message.hasSuffix("'\(path)' (mode 0\(String(mode, radix: 8)))"), "\(problem.message)")
            #expect(problem.help.hasPrefix("run: chmod 600 '\(path)'; "))
            try #require(path.withCString { chmod($0, 0o600) } == 0)
            #expect(try TokenFile.token(at: path) == token)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root gives files away"))
    func `a file of another user is refused`() throws {
        try withTempTree { tree in
            let path = tree.path("journal.db-token")
            _ = try TokenFile.token(at: path)
            try #require(path.withCString { chown($0, 65534, 65534) } == 0)
            let problem = try #require(Self.problem(path))
            #expect(problem.message.hasSuffix("belongs to user 65534"))
            #expect(problem.help.hasPrefix("delete it"))
        }
    }

    @Test func `a link or a directory in its place is refused, and nothing is created at the target`() throws {
        try withTempTree { tree in
            let path = tree.path("journal.db-token")
            try #require(tree.path("elsewhere").withCString { to in path.withCString { symlink(to, $0) } } == 0)
            #expect(Self.problem(path)?.message.hasSuffix("is a link") == true)
            #expect(!TestFile.exists(tree.path("elsewhere")))
            try #require(path.withCString { unlink($0) } == 0)
            TestFile.makeDirectory(path)
            #expect(Self.problem(path)?.message.hasSuffix("is not a regular file") == true)
            #expect(Self.problem(tree.path("none/token"))?.message.hasPrefix("cannot create the token file") == true)
        }
    }

    @Test(arguments: ["", "\n", "short", String(repeating: "a", count: 257), String(repeating: "a", count: 40) + "; x"])
    func `an invalid token is refused`(text: String) {
        withTempTree { tree in
            let path = tree.path("journal.db-token")
            TestFile.write(path, Array(text.utf8), mode: 0o600)
            #expect(Self.problem(path)?.message == "there is no token in '\(path)'")
        }
    }

    @Test func `a token that was written by hand is accepted`() throws {
        try withTempTree { tree in
            let path = tree.path("journal.db-token")
            let token = String(repeating: "a-_Z", count: 8)
            for text in [token, "\(token)\n"] {
                TestFile.write(path, Array(text.utf8), mode: 0o600)
                let read = try TokenFile.token(at: path)
                #expect(read == token)
            }
        }
    }
}
