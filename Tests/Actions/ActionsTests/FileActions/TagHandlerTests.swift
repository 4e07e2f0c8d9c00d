import ActionAPI
import FileActions
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Changes of extended attributes by `tag`.
struct TagHandlerTests {
    private func attributes(_ path: PathBytes) -> [String: String] {
        guard case .present(let snapshot) = KernelFileSystem().stat(path, readingExtended: true) else { return [:] }
        let pairs = (snapshot.extended ?? []).map { ("\($0.name)", String(decoding: $0.value, as: UTF8.self)) }
        return Dictionary(pairs) { first, _ in first }
    }

    @Test func `attributes are set with placeholders, replaced and removed`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, TagHandler())
            TestFile.write(rule.path("a.txt"), "text")
            let outcome = rule.run("a.txt", ["set": ["user.xdg.tags": "new,${extension}", "user.number": 5]])
            #expect(outcome.result == .succeeded)
            #expect(outcome.message == "set user.number, set user.xdg.tags")
            #expect(attributes(rule.path("a.txt")) == ["user.xdg.tags": "new,txt", "user.number": "5"])
            let second = rule.run(
                "a.txt", ["set": ["user.xdg.tags": "old"], "remove": ["user.number", "user.missing"]])
            #expect(second.message == "set user.xdg.tags, removed user.number")
            #expect(attributes(rule.path("a.txt")) == ["user.xdg.tags": "old"])
        }
    }

    /// Otherwise a rule for attribute changes would trigger itself.
    @Test func `an attribute that already has the value is not written`() throws {
        try withTempTree { tree in
            let rule = ContentRule(tree.root, TagHandler())
            TestFile.write(rule.path("a.txt"), "text")
            let with: JSONValue = ["set": ["user.a": "1", "user.empty": ""], "remove": ["user.b"]]
            #expect(rule.run("a.txt", with).message == "set user.a, set user.empty")
            let before = try metadata(rule.path("a.txt"))
            #expect(rule.run("a.txt", with).message == "already tagged")
            #expect(try metadata(rule.path("a.txt")) == before)
        }
    }

    @Test func `a directory can be tagged, and a link is not followed`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, TagHandler())
            TestFile.makeDirectory(rule.path("sub"))
            #expect(rule.run("sub", ["set": ["user.a": "1"]]).result == .succeeded)
            #expect(attributes(rule.path("sub")) == ["user.a": "1"])
            TestFile.write(tree.path("outside"), "text")
            _ = tree.path("outside").withCString { to in rule.path("link").withCString { symlink(to, $0) } }
            let outcome = rule.run("link", ["set": ["user.a": "1"]])
            #expect(outcome.result == .failed)
            #expect(attributes(tree.path("outside")) == [:])
        }
    }

    @Test func `a message explains why an attribute cannot be set`() {
        withTempTree { tree in
            let rule = ContentRule(tree.root, TagHandler())
            TestFile.write(rule.path("a.txt"), "text")
            let named = rule.run("a.txt", ["set": ["security.x": "1"]])
            #expect(named.result == .failed)
            #expect(named.message.contains("'security.x' can't be set; write a name that starts with 'user.'"))
            let large = rule.run("a.txt", ["set": ["user.x": .string(String(repeating: "x", count: 70_000))]])
            #expect(large.result == .failed)
            #expect(large.message.contains("there is no space for 'user.x'"))
            #expect(rule.run("missing", ["set": ["user.x": "1"]]).result == .skipped)
            // The kernel's own file systems do not support extended attributes.
            let proc = rule.handler.run(rule.invocation("/proc/self/comm", ["set": ["user.x": "1"]]))
            #expect(proc.result == .failed)
            #expect(proc.message.contains("'/proc/self/comm' does not support extended attributes"))
        }
    }
}
