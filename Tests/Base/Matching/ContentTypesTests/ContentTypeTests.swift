import ContentTypes
import Glibc
import System
import Testing
import TestKit

struct ContentTypeTests {
    private static func find(_ path: PathBytes) -> ContentType.Finding {
        let opened = path.withCString { open($0, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) }
        return ContentType.find(opened: opened >= 0 ? opened : -errno)
    }

    @Test(arguments: [
        ("a.txt", Array("plain words\n".utf8), "text/plain"),
        ("lies.txt", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8), "image/png"),
        ("b.bin", Array("%PDF-1.7\n%\u{E2}\n1 0 obj\n".utf8), "application/pdf"),
        ("c", [], "inode/x-empty"), ("d", [0], "application/octet-stream"),
        ("e", Array("#!/bin/sh\necho\n".utf8), "text/x-shellscript"),
        ("caf\u{E9}\n$(x)", [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3], "application/gzip"),
    ])
    func `the content type follows from the bytes, not from the name`(name: String, bytes: [UInt8], type: String) {
        withTempTree { tree in
            let path = tree.root.appending(name)
            TestFile.write(path, bytes)
            #expect(Self.find(path) == .type(type))
        }
    }

    @Test func `a path that is not a regular file is neither opened for reading nor waited for`() {
        withTempTree { tree in
            let root = tree.root
            #expect(Self.find(root.appending("missing")) == .absent)
            #expect(Self.find(root) == .notRegular)
            let pipe = root.appending("pipe")
            #expect(pipe.withCString { mkfifo($0, 0o600) } == 0)
            #expect(Self.find(pipe) == .notRegular)
            let link = root.appending("link")
            #expect(link.withCString { symlink("/etc/passwd", $0) } == 0)
            #expect(Self.find(link) == .notRegular)
        }
    }

    @Test func `several threads can detect types at the same time`() async throws {
        try await withThrowingTaskGroup(of: ContentType.Finding.self) { group in
            for _ in 0..<64 { group.addTask { Self.find("/etc/passwd") } }
            for try await finding in group { #expect(finding == .type("text/plain")) }
        }
    }
}
